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
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/e2e/oracle"
	"pvc-protection-operator/test/harness"
)

func TestReadAudit(t *testing.T) {
	pods := func(revision string) metav1.PartialObjectMetadataList {
		return metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: revision},
		}
	}
	claim := func(uid types.UID, revision string, finalizers ...string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: revision, Finalizers: finalizers},
		}
	}
	const list, patch, claims = "list", "patch", "persistentvolumeclaims"

	s := newStory(t)
	s.audit(list, harness.Username, "pods", "", pods("1"))
	s.audit(list, harness.Username, "pods", "?limit=500&continue=abc", pods("2"))
	s.audit(list, harness.Username, "pods", "?resourceVersion=0", pods("3"))
	s.audit(list, somebody, "pods", "", pods("4"))
	s.audit(list, harness.Username, "pods", "", pods("5"))
	s.events[len(s.events)-1].ResponseStatus.Code = 500
	s.audit(patch, harness.Username, claims, "/a", claim("protected", "6", harness.Finalizer))
	s.audit(patch, harness.Username, claims, "/b", claim("released twice", "8"))
	s.audit(patch, harness.Username, claims, "/b", claim("released twice", "9"))
	s.audit(patch, harness.Username, claims, "/c?dryRun=All", claim("not released", "10"))
	s.audit(patch, somebody, claims, "/d", claim("released", "11"))
	audit, err := oracle.ReadAudit(harness.Username, harness.Finalizer, s.yieldEvents)
	if err != nil {
		t.Fatal(err)
	}
	if got := audit.Lists[namespace]; !slices.Equal(got, []int64{1}) {
		t.Errorf("got lists %v", got)
	}
	want := map[types.UID][]oracle.Removal{
		"released twice": {{ByOperator: true, Revision: 9}, {ByOperator: true, Revision: 8}},
		"released":       {{ByOperator: false, Revision: 11}},
	}
	if !reflect.DeepEqual(audit.Removals, want) {
		t.Errorf("got removals %v, want %v", audit.Removals, want)
	}
}

// TestReadAuditWithoutObjects has a log that cannot be judged.
func TestReadAuditWithoutObjects(t *testing.T) {
	s := newStory(t)
	s.audit("patch", harness.Username, "persistentvolumeclaims", "/a", nil)
	s.events[0].ResponseObject = nil
	if _, err := oracle.ReadAudit(harness.Username, harness.Finalizer, s.yieldEvents); err == nil {
		t.Error("no error")
	}
}

// yieldEvents yields the audit log from its end to its beginning: order is no help.
func (s *story) yieldEvents(yield func(cluster.AuditEvent) bool) error {
	for _, event := range slices.Backward(s.events) {
		if !yield(event) {
			break
		}
	}
	return nil
}
