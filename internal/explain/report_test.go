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

package explain_test

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/internal/explain"
)

func TestStates(t *testing.T) {
	pods := []*corev1.Pod{pod("web")}
	owner := pod("web", scratch)
	elsewhere := pod("web")
	elsewhere.Namespace = "bar"
	tests := map[string]struct {
		claim        *corev1.PersistentVolumeClaim
		pods         []*corev1.Pod
		want         explain.State
		held, unused bool
	}{
		"new":                       {claim("data", withFinalizers()), nil, explain.Unprotected, false, true},
		"of others only":            {claim("data", withFinalizers(foreign)), pods, explain.Unprotected, false, false},
		"protected, unused":         {claim("data"), nil, explain.Protected, false, true},
		"protected, in use":         {claim("data"), pods, explain.Protected, false, false},
		"protected, foreign":        {claim("data", withFinalizers(foreign, finalizer)), nil, explain.Protected, false, true},
		"used by an ended pod":      {claim("data"), []*corev1.Pod{pod("web", ended())}, explain.Protected, false, true},
		"named by an unscheduled":   {claim("data"), []*corev1.Pod{pod("web", unscheduled)}, explain.Protected, false, false},
		"deleted, in use":           {claim("data", deleted(0)), pods, explain.Blocked, true, false},
		"deleted, ended pod":        {claim("data", deleted(0)), []*corev1.Pod{pod("web", ended())}, explain.Blocked, true, true},
		"deleted, unscheduled pod":  {claim("data", deleted(0)), []*corev1.Pod{pod("web", unscheduled)}, explain.Waiting, false, false},
		"deleted, pod of another":   {claim("other", deleted(0)), pods, explain.Waiting, false, true},
		"deleted, elsewhere":        {claim("data", deleted(0), inNamespace("bar")), pods, explain.Waiting, false, true},
		"deleted, pod elsewhere":    {claim("data", deleted(0)), []*corev1.Pod{elsewhere}, explain.Waiting, false, true},
		"deleted, foreign, too":     {claim("data", deleted(0), withFinalizers(foreign, finalizer)), nil, explain.Waiting, true, true},
		"deleted, foreign only":     {claim("data", deleted(0), withFinalizers(foreign)), nil, explain.OtherFinalizer, true, true},
		"deleted, foreign and used": {claim("data", deleted(0), withFinalizers(foreign)), pods, explain.OtherFinalizer, true, false},
		"ephemeral, in use":         {scratchOf(owner), []*corev1.Pod{owner}, explain.Protected, false, false},
		"of the name of a scratch":  {claim("web-scratch", deleted(0)), []*corev1.Pod{owner}, explain.Waiting, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := report(test.claim, test.pods...)
			got := &r.Items[0]
			if got.State != test.want || got.Unused() != test.unused || r.Held() != test.held {
				t.Errorf("state %s, unused %t, held %t, want %s, %t, %t",
					got.State, got.Unused(), r.Held(), test.want, test.unused, test.held)
			}
		})
	}
}

// TestHeldByNobody has a claim that waits for somebody to serve its finalizer.
func TestHeldByNobody(t *testing.T) {
	facts := explain.Facts{
		Finalizer: foreign, Now: now,
		Claims:  []*corev1.PersistentVolumeClaim{claim("data", deleted(0), withFinalizers(foreign))},
		Serving: &explain.Serving{},
	}
	if r := explain.New(&facts); r.Items[0].State != explain.Waiting || !r.Held() {
		t.Errorf("state %s, held %t", r.Items[0].State, r.Held())
	}
}

func TestOrderAndKeep(t *testing.T) {
	r := explain.New(&explain.Facts{Finalizer: finalizer, Now: now, Claims: []*corev1.PersistentVolumeClaim{
		claim("b"), claim("a", deleted(0)), claim("c", inNamespace("bar")),
	}})
	names := func() (text string) {
		for i := range r.Items {
			text += r.Items[i].Namespace + "/" + r.Items[i].Name + " "
		}
		return text
	}
	if got, want := names(), "bar/c shop/a shop/b "; got != want {
		t.Errorf("the claims are %s, want %s", got, want)
	}
	r.Keep(func(c *explain.Claim) bool { return c.Deleted == nil })
	if got, want := names(), "bar/c shop/b "; got != want {
		t.Errorf("the claims kept are %s, want %s", got, want)
	}
}

// TestJSON pins what scripts read.
func TestJSON(t *testing.T) {
	r := report(claim("data", deleted(time.Minute), withFinalizers(foreign, finalizer)),
		pod("web", ownedBy(replicaSet, "web-1"), podDeleted(time.Hour, time.Minute), podFinalizers(foreign)))
	got, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "finalizer": "kubernetes.io/pvc-protection",
  "items": [
    {
      "namespace": "shop",
      "name": "data",
      "state": "Blocked",
      "created": "2026-01-02T01:04:05Z",
      "deleted": "2026-01-02T03:03:05Z",
      "finalizers": [
        "example.com/backup",
        "kubernetes.io/pvc-protection"
      ],
      "otherFinalizers": [
        "example.com/backup"
      ],
      "pods": [
        {
          "name": "web",
          "node": "node-1",
          "phase": "Running",
          "holds": true,
          "state": "shutting down",
          "since": "2026-01-02T02:04:05Z",
          "overdue": "2026-01-02T02:05:05Z",
          "finalizers": [
            "example.com/backup"
          ],
          "owners": [
            {
              "kind": "ReplicaSet",
              "name": "web-1"
            },
            {
              "kind": "Deployment",
              "name": "web"
            }
          ]
        }
      ],
      "servedBy": {
        "by": "InTree",
        "evidence": "no operator serves this finalizer, it is the in-tree controller's"
      },
      "nextStep": "Look at node node-1 (pod web should have ended 59m ago): then there are still the finalizers of others."
    }
  ]
}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestJSONOfNothing has lists that are empty, not null, and no explanation.
func TestJSONOfNothing(t *testing.T) {
	r := explain.New(&explain.Facts{Finalizer: finalizer, Claims: []*corev1.PersistentVolumeClaim{
		claim("data", withFinalizers()),
	}})
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"finalizer":"kubernetes.io/pvc-protection","items":[{"namespace":"shop","name":"data","state":"Unprotected",` +
		`"created":"2026-01-02T01:04:05Z","finalizers":[],"otherFinalizers":[],"pods":[]}]}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
