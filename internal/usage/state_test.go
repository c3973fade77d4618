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

package usage_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pvc-protection-operator/internal/usage"
)

func TestStateOf(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{}
	for name, test := range map[string]struct {
		phase    corev1.PodPhase
		deleted  bool
		want     string
		ofTheirs bool
	}{
		"running":               {phase: corev1.PodRunning, want: "running"},
		"about to start":        {phase: corev1.PodPending, want: "scheduled"},
		"without a phase":       {want: "scheduled"},
		"deleted":               {phase: corev1.PodRunning, deleted: true, want: "shutting down"},
		"succeeded":             {phase: corev1.PodSucceeded, want: "ended, but holds its volume until it is deleted"},
		"failed and deleted":    {phase: corev1.PodFailed, deleted: true, want: "ended, but holds its volume until it is deleted"},
		"with ephemeral volume": {phase: corev1.PodRunning, ofTheirs: true, want: "running; the claim is its ephemeral volume"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}, Status: corev1.PodStatus{Phase: test.phase}}
			if test.deleted {
				pod.DeletionTimestamp = new(metav1.Now())
			}
			owned := claim.DeepCopy()
			if test.ofTheirs {
				owned.OwnerReferences = []metav1.OwnerReference{{UID: pod.UID, Controller: new(true)}}
			}
			if got := usage.StateOf(pod, owned); got != test.want {
				t.Errorf("StateOf() = %q, want %q", got, test.want)
			}
		})
	}
}
