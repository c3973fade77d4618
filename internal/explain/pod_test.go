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
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pvc-protection-operator/internal/explain"
)

func TestPods(t *testing.T) {
	data := claim("data")
	owner := pod("web", scratch)
	shutDown := pod("web", scratch, podDeleted(time.Minute, 0))
	tests := map[string]struct {
		claim *corev1.PersistentVolumeClaim
		pod   *corev1.Pod
		holds bool
		state string
		since time.Duration // ago; less than 0 is unknown
	}{
		"on a node from the start":  {data, pod("web"), true, "running", time.Hour},
		"scheduled":                 {data, pod("web", scheduled(time.Minute)), true, "running", time.Minute},
		"not scheduled":             {data, pod("web", unscheduled), false, "not scheduled", time.Hour},
		"ended, nobody knows when":  {data, pod("web", ended()), true, "ended, but holds its volume until it is deleted", -1},
		"ended, two containers":     {data, pod("web", ended(3, 1, 2)), true, "ended, but holds its volume until it is deleted", 1},
		"shutting down":             {data, pod("web", podDeleted(time.Minute, time.Hour)), true, "shutting down", time.Minute},
		"shut down, names it":       {data, pod("web", podDeleted(time.Minute, 0)), true, "shutting down", time.Minute},
		"ephemeral":                 {scratchOf(owner), owner, true, "running; the claim is its ephemeral volume", time.Hour},
		"ephemeral, shut down":      {scratchOf(shutDown), shutDown, false, "shut down", time.Minute},
		"ephemeral, not of the pod": {claim("web-scratch"), owner, false, "names a claim that is not its own", time.Hour},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := report(test.claim, test.pod).Items[0].Pods[0]
			if got.Holds != test.holds || got.State != test.state {
				t.Errorf("holds %t, %q, want %t, %q", got.Holds, got.State, test.holds, test.state)
			}
			want := now.Add(-test.since)
			if unknown := test.since < 0; unknown != (got.Since == nil) || !unknown && !got.Since.Time.Equal(want) {
				t.Errorf("since %v, want %v", got.Since, want)
			}
		})
	}
}

func TestOverdue(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want *metav1.Time
	}{
		"not deleted":   {pod("web"), nil},
		"in time":       {pod("web", podDeleted(time.Second, time.Minute)), nil},
		"not in time":   {pod("web", podDeleted(time.Hour, time.Minute)), new(ago(59 * time.Minute))},
		"shut down":     {pod("web", podDeleted(time.Hour, 0)), nil},
		"at the moment": {pod("web", podDeleted(time.Minute, time.Minute)), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := report(claim("data"), test.pod).Items[0].Pods[0].Overdue; !got.Equal(test.want) {
				t.Errorf("overdue since %v, want %v", got, test.want)
			}
		})
	}
}

func TestOwners(t *testing.T) {
	endless := func(string, *metav1.OwnerReference) *metav1.OwnerReference {
		return &metav1.OwnerReference{Kind: "Loop", Name: "loop"}
	}
	tests := map[string]struct {
		pod          *corev1.Pod
		controllerOf func(string, *metav1.OwnerReference) *metav1.OwnerReference
		want         int
		last         string
	}{
		"nobody's":                 {pod("web"), controllerOf, 0, ""},
		"of a StatefulSet":         {pod("web", ownedBy(statefulSet, "db")), controllerOf, 1, "db"},
		"of a Deployment":          {pod("web", ownedBy(replicaSet, "web-1")), controllerOf, 2, "web"},
		"of a CronJob":             {pod("web", ownedBy(job, "nightly-1")), controllerOf, 2, "nightly"},
		"nobody looks further":     {pod("web", ownedBy(replicaSet, "web-1")), nil, 1, "web-1"},
		"of what is its own owner": {pod("web", ownedBy(replicaSet, "web-1")), endless, 5, "loop"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := explain.New(&explain.Facts{
				Finalizer: finalizer, Now: now, ControllerOf: test.controllerOf,
				Claims: []*corev1.PersistentVolumeClaim{claim("data")}, Pods: []*corev1.Pod{test.pod},
			})
			got := r.Items[0].Pods[0].Owners
			if len(got) != test.want || len(got) > 0 && got[len(got)-1].Name != test.last {
				t.Errorf("the owners are %v, want %d, the last %q", got, test.want, test.last)
			}
		})
	}
}
