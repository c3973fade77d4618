/*
Copyright 2026.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"pvc-protection-operator/test/cluster"
)

// Audit is what the audit log tells.
type Audit struct {
	// Lists are the revisions of the lists of pods that the operator has made without a cache, by namespace.
	Lists map[string][]int64
	// Removals are the writes to each claim that were answered with a claim that has no finalizer of the operator's. Not
	// all of them have taken it off: there may have been none before.
	Removals map[types.UID][]Removal
	// written are the objects that writers were answered with.
	written map[version]string
}

// Removal is a write after which a claim lacks the operator's finalizer.
type Removal struct {
	ByOperator bool
	// Revision is the one of the answer. If the claim was deleted by the write, that is from before.
	Revision int64
}

// audited is the part of an object that counts.
type audited struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name            string    `json:"name"`
		Namespace       string    `json:"namespace"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
		Finalizers      []string  `json:"finalizers"`
	} `json:"metadata"`
}

// ReadAudit reads the audit log, which has to hold the objects of requests and responses: of all that write pods and
// claims, and of what the operator, a user of the given name, does.
func ReadAudit(
	operator, finalizer string, events func(yield func(cluster.AuditEvent) bool) error,
) (*Audit, error) {
	a := &Audit{Lists: map[string][]int64{}, Removals: map[types.UID][]Removal{}, written: map[version]string{}}
	var wrong error
	err := events(func(event cluster.AuditEvent) bool {
		wrong = a.add(&event, event.User.Username == operator, finalizer)
		return wrong == nil
	})
	return a, errors.Join(wrong, err)
}

func (a *Audit) add(event *cluster.AuditEvent, byOperator bool, finalizer string) error {
	if event.Stage != "ResponseComplete" || event.ObjectRef == nil || event.ObjectRef.APIGroup != "" ||
		event.ResponseStatus == nil || event.ResponseStatus.Code >= 300 {
		return nil
	}
	uri, err := url.Parse(event.RequestURI)
	if err != nil {
		return fmt.Errorf("audit event %s: %w", event.AuditID, err)
	}
	query := uri.Query()
	isPod, isClaim := event.ObjectRef.Resource == "pods", event.ObjectRef.Resource == "persistentvolumeclaims"
	switch event.Verb {
	case "list":
		// The pages of a list show the state of the first one.
		if byOperator && isPod && query.Get("resourceVersion") == "" && query.Get("continue") == "" {
			return a.addList(event)
		}
	case "create", "update", "patch", "delete":
		if (isPod || isClaim) && !query.Has("dryRun") {
			return a.addWrite(event, byOperator, isClaim && event.Verb != "create", finalizer)
		}
	}
	return nil
}

func (a *Audit) addList(event *cluster.AuditEvent) error {
	list, revision, err := decode(event)
	if err != nil {
		return err
	}
	if list.Kind != "PodList" {
		return fmt.Errorf("audit event %s: a list of pods is answered with kind %q", event.AuditID, list.Kind)
	}
	namespace := event.ObjectRef.Namespace
	a.Lists[namespace] = append(a.Lists[namespace], revision)
	return nil
}

func (a *Audit) addWrite(event *cluster.AuditEvent, byOperator, isClaim bool, finalizer string) error {
	object, revision, err := decode(event)
	if err != nil {
		return err
	}
	if object.Kind != "Pod" && object.Kind != "PersistentVolumeClaim" {
		return nil // a Status, a Binding
	}
	uid := object.Metadata.UID
	if isClaim && !slices.Contains(object.Metadata.Finalizers, finalizer) {
		a.Removals[uid] = append(a.Removals[uid], Removal{byOperator, revision})
	}
	if revision == 0 {
		return nil // a deletion that took effect at once may be answered with none
	}
	a.written[version{uid, revision}] = fmt.Sprintf("%s of %s %s/%s (UID %s) at revision %d by %s, audit ID %s", event.Verb,
		object.Kind, object.Metadata.Namespace, object.Metadata.Name, uid, revision, event.User.Username, event.AuditID)
	return nil
}

// decode returns the object of the response, and its revision if it has one.
func decode(event *cluster.AuditEvent) (object audited, revision int64, err error) {
	if len(event.ResponseObject) == 0 {
		return object, 0, fmt.Errorf("audit event %s, a %s of %s, lacks its response", event.AuditID, event.Verb, event.RequestURI)
	}
	if err := json.Unmarshal(event.ResponseObject, &object); err != nil {
		return object, 0, fmt.Errorf("audit event %s: response: %w", event.AuditID, err)
	}
	if text := object.Metadata.ResourceVersion; text != "" {
		if revision, err = strconv.ParseInt(text, 10, 64); err != nil {
			return object, 0, fmt.Errorf("audit event %s: resource version: %w", event.AuditID, err)
		}
	}
	return object, revision, nil
}
