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

package model

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pvc-protection-operator/internal/usage"
)

// matters reports whether a change of the pod in the cache puts its claims into the
// queue. It asks the rules of package usage in the way of the controller's
// predicate.
func (m Recheck) matters(from, to stage) bool {
	before, after := podIn(from), podIn(to)
	switch {
	case before == nil && after == nil:
		return false // A whole life was skipped: there is nothing to see.
	case before == nil:
		return usage.MayNotHold(after)
	case after == nil:
		return usage.NamesClaims(before)
	case m.IgnoresReplaced && before.UID != after.UID:
		return false
	default:
		return usage.MayHoldLess(before, after)
	}
}

// podIn returns the pod object in the given stage, or nil if there is none.
func podIn(s stage) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "1"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
	}}}
	switch s {
	case bound:
		pod.Spec.NodeName = "node"
	case reused:
		pod.UID, pod.Spec.NodeName, pod.Spec.Volumes = "2", "node", nil
	case absent, gone:
		return nil
	}
	return pod
}
