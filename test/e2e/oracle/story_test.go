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

package oracle_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/e2e/oracle"
	"pvc-protection-operator/test/harness"
)

const (
	namespace = "default"
	foreign   = "example.com/foreign"
)

// story is a history by hand: every step takes a revision.
type story struct {
	t        *testing.T
	revision int64
	changes  []oracle.Change
	events   []cluster.AuditEvent
}

func newStory(t *testing.T) *story {
	t.Helper()
	return &story{t: t}
}

// tell adds a change, of which the object gets the revision.
func (s *story) tell(change watch.EventType, object client.Object) {
	s.revision++
	object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.changes = append(s.changes, oracle.Change{Type: change, Object: object.DeepCopyObject().(client.Object)})
}

// claim creates a protected claim.
func (s *story) claim(uid types.UID, finalizers ...string) *corev1.PersistentVolumeClaim {
	claim := harness.Claim(namespace, "data")
	claim.UID = uid
	claim.Finalizers = append(finalizers, harness.Finalizer)
	s.tell(watch.Added, claim)
	return claim
}

// claimOf creates the protected claim of the pod's ephemeral volume.
func (s *story) claimOf(pod *corev1.Pod) *corev1.PersistentVolumeClaim {
	claim := harness.EphemeralClaim(pod, "data")
	claim.UID = "of-" + pod.UID
	claim.Finalizers = []string{harness.Finalizer}
	s.tell(watch.Added, claim)
	return claim
}

// pod creates a pod.
func (s *story) pod(uid types.UID, options ...harness.PodOption) *corev1.Pod {
	pod := harness.Pod(namespace, "web", options...)
	pod.UID = uid
	s.tell(watch.Added, pod)
	return pod
}

func (s *story) bind(pod *corev1.Pod) {
	pod.Spec.NodeName = "node"
	s.tell(watch.Modified, pod)
}

// mark asks for the deletion of what a finalizer or a kubelet keeps.
func (s *story) mark(object client.Object, grace int64) {
	object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	object.SetDeletionGracePeriodSeconds(&grace)
	s.tell(watch.Modified, object)
}

func (s *story) gone(object client.Object) {
	s.tell(watch.Deleted, object)
}

// list is a live list of the operator.
func (s *story) list() {
	s.revision++
	s.audit("list", harness.Username, "pods", "?fieldSelector=spec.nodeName!%3D&limit=500", &corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(s.revision, 10)},
	})
}

// release takes the finalizer off, as the operator or somebody else.
func (s *story) release(claim *corev1.PersistentVolumeClaim, username string) {
	answer := claim.DeepCopy()
	answer.Finalizers = nil
	for _, finalizer := range claim.Finalizers {
		if finalizer != harness.Finalizer {
			answer.Finalizers = append(answer.Finalizers, finalizer)
		}
	}
	answer.TypeMeta = metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"}
	if len(answer.Finalizers) == 0 {
		s.gone(claim) // and the answer has the revision from before
	} else {
		claim.Finalizers = answer.Finalizers
		s.tell(watch.Modified, claim)
		answer.ResourceVersion = claim.ResourceVersion
	}
	s.audit("patch", username, "persistentvolumeclaims", "/"+claim.Name, answer)
}

func (s *story) audit(verb, username, resource, rest string, response any) {
	s.t.Helper()
	body, err := json.Marshal(response)
	if err != nil {
		s.t.Fatal(err)
	}
	text := fmt.Sprintf(`{"stage": "ResponseComplete", "verb": %q, "requestURI": "/api/v1/namespaces/default/%s%s",
		"user": {"username": %q}, "objectRef": {"resource": %q, "namespace": "default"}, "responseStatus": {"code": 200}}`,
		verb, resource, rest, username, resource)
	event := cluster.AuditEvent{}
	if err := json.Unmarshal([]byte(text), &event); err != nil {
		s.t.Fatal(err)
	}
	event.ResponseObject = body
	s.events = append(s.events, event)
}

// judge has the story judged, told from its end to its beginning: order is no help.
func (s *story) judge() *oracle.Report {
	s.t.Helper()
	changes := slices.Clone(s.changes)
	slices.Reverse(changes)
	audit, err := oracle.ReadAudit(harness.Username, harness.Finalizer, s.yieldEvents)
	if err != nil {
		s.t.Fatal(err)
	}
	report, err := oracle.Judge(changes, audit, harness.Finalizer)
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}
