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

package integration_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
	"pvc-protection-operator/test/rbac"
)

// away is when the API server was away. As long as one that has just started does not know its roles yet, it forbids
// everything.
var away periods

type period struct{ from, to time.Time }

type periods []period

func (p periods) includes(moment time.Time) bool {
	for _, period := range p {
		if !moment.Before(period.from) && !moment.After(period.to) {
			return true
		}
	}
	return false
}

// isLiveList tells a live list of pods from an informer's list, which leaves no pod out, and from the further pages of
// a live list.
func isLiveList(event *cluster.AuditEvent, query url.Values) bool {
	return event.Verb == "list" && event.ObjectRef.Resource == "pods" &&
		strings.Contains(query.Get("fieldSelector"), "spec.nodeName") && !query.Has("continue")
}

// forEachRequest calls visit with every request for a resource that the operator's ServiceAccount has made.
func forEachRequest(visit func(event *cluster.AuditEvent, query url.Values)) error {
	var failed error
	err := suite.cluster.AuditEvents(func(event cluster.AuditEvent) bool {
		if event.User.Username != harness.Username || event.ObjectRef == nil {
			return true
		}
		requestURL, err := url.Parse(event.RequestURI)
		if err != nil {
			failed = err
			return false
		}
		visit(&event, requestURL.Query())
		return true
	})
	return errors.Join(err, failed)
}

// liveLists returns how many live lists of the namespaces there were so far.
func liveLists(e *env, namespaces ...string) int {
	e.Helper()
	count := 0
	e.fatalIf(forEachRequest(func(event *cluster.AuditEvent, query url.Values) {
		if isLiveList(event, query) && slices.Contains(namespaces, event.ObjectRef.Namespace) {
			count++
		}
	}))
	return count
}

// patchesOf returns how many times the operator has written to the claim of that name.
func patchesOf(e *env, name string) int {
	e.Helper()
	count := 0
	e.fatalIf(forEachRequest(func(event *cluster.AuditEvent, _ url.Values) {
		ref := event.ObjectRef
		if event.Verb == "patch" && ref.Resource == "persistentvolumeclaims" && ref.Subresource == "" &&
			ref.Namespace == e.namespace && ref.Name == name {
			count++
		}
	}))
	return count
}

// checkAuditLog checks what must hold for every request that the operator has made in the tests, and reports the
// permissions that were used. If all tests have run, and passed, each permission must have been.
func checkAuditLog(report io.Writer, passed bool) error {
	used := map[string]int{}
	var errs []error
	err := forEachRequest(func(event *cluster.AuditEvent, query url.Values) {
		ref := event.ObjectRef
		resource := strings.TrimSuffix(ref.Resource+"/"+ref.Subresource, "/")
		used[rbac.Permission{Verb: event.Verb, Object: rbac.Resource(ref.APIGroup, resource)}.Action()]++
		if !event.Allowed() && !withoutPermission() && !away.includes(event.RequestReceivedTimestamp.Time) {
			errs = append(errs, fmt.Errorf("the operator's request %s %s was forbidden", event.Verb, event.RequestURI))
		}
		if isLiveList(event, query) && (query.Has("resourceVersion") || query.Has("resourceVersionMatch")) {
			errs = append(errs, fmt.Errorf("the live list %s may be answered with what was there before", event.RequestURI))
		}
	})
	errs = append(errs, err, checkEvidence())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return reportPermissions(report, used, passed && allTests())
}

// checkEvidence checks that every release of a claim comes after a live list that began after the claim's deletion did.
func checkEvidence() error {
	type key struct{ namespace, name string }
	deletions := map[key][]cluster.AuditEvent{}
	lists := map[string][]cluster.AuditEvent{}
	var patches []cluster.AuditEvent
	err := suite.cluster.AuditEvents(func(event cluster.AuditEvent) bool {
		if event.ObjectRef == nil || event.ResponseStatus == nil || event.ResponseStatus.Code != http.StatusOK {
			return true
		}
		claim := event.ObjectRef.Resource == "persistentvolumeclaims" && event.ObjectRef.Subresource == ""
		requestURL, err := url.Parse(event.RequestURI)
		switch {
		case claim && event.Verb == "delete":
			of := key{event.ObjectRef.Namespace, event.ObjectRef.Name}
			deletions[of] = append(deletions[of], event)
		case claim && event.Verb == "patch" && event.User.Username == harness.Username:
			patches = append(patches, event)
		case err == nil && isLiveList(&event, requestURL.Query()):
			lists[event.ObjectRef.Namespace] = append(lists[event.ObjectRef.Namespace], event)
		}
		return true
	})
	if err != nil {
		return err
	}

	var errs []error
	for _, patch := range patches {
		began := patch.RequestReceivedTimestamp.Time
		var deleted time.Time // the last time before the patch, a claim may have been recreated
		for _, deletion := range deletions[key{patch.ObjectRef.Namespace, patch.ObjectRef.Name}] {
			if at := deletion.RequestReceivedTimestamp.Time; at.Before(began) && at.After(deleted) {
				deleted = at
			}
		}
		if deleted.IsZero() {
			continue // it protects the claim
		}
		if !slices.ContainsFunc(lists[patch.ObjectRef.Namespace], func(list cluster.AuditEvent) bool {
			return list.RequestReceivedTimestamp.After(deleted) && !list.StageTimestamp.After(began)
		}) {
			errs = append(errs, fmt.Errorf("claim %s/%s was released without a live list from after its deletion",
				patch.ObjectRef.Namespace, patch.ObjectRef.Name))
		}
	}
	const most = 10
	if more := len(errs) - most; more > 0 {
		errs = append(errs[:most], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// reportPermissions writes how often each permission was used. If all tests have run, one that never was is an error.
func reportPermissions(report io.Writer, used map[string]int, all bool) error {
	granted, err := rbac.Of(suite.manifests)
	if err != nil {
		return err
	}
	var errs []error
	for _, permission := range granted {
		if all && used[permission.Action()] == 0 && permission.Role != "metrics-reader" { // which is for who reads them
			errs = append(errs, fmt.Errorf("config/rbac grants what was never used: %s", permission))
		}
	}
	for _, action := range slices.Sorted(maps.Keys(used)) {
		_, err := fmt.Fprintf(report, "%7d  %s\n", used[action], action)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
