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

package usage

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// Refers reports whether the pod is a use of the claim in the sense of the claim's
// Unused condition. Both must be of the same namespace.
//
// It is another question than Holds, which is about what could be lost. A pod
// refers to its claims from its creation on, scheduled or not, until it has ended.
// A generic ephemeral volume counts only for the pod that owns its claim.
func Refers(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if Ended(pod) || pod.Namespace != claim.Namespace {
		return false
	}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if claimName(pod, volume) == claim.Name &&
			(volume.PersistentVolumeClaim != nil || ephemeral.VolumeIsForPod(pod, claim) == nil) {
			return true
		}
	}
	return false
}

// MayRefer reports whether the pod refers to any claim, so that the claims that it
// names need a look when it comes. Whose an ephemeral volume's claim is, the claim
// tells.
func MayRefer(pod *corev1.Pod) bool {
	return !Ended(pod) && NamesClaims(pod)
}

// MayReferOtherwise reports whether the pod may refer to other claims after the
// change from old to updated than before, so that the claims of both need a look.
// The two may be different pods, see MayHoldLess.
func MayReferOtherwise(old, updated *corev1.Pod) bool {
	return (old.UID != updated.UID || Ended(old) != Ended(updated)) && (NamesClaims(old) || NamesClaims(updated))
}

// WantsUnused reports whether the claim's Unused condition is to be kept current:
// the claim is bound and not being deleted. Another claim keeps the condition that
// it has, if any.
func WantsUnused(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound
}

// UnusedStatus returns the status of the claim's Unused condition, or the empty
// string if it has none.
func UnusedStatus(claim *corev1.PersistentVolumeClaim) corev1.ConditionStatus {
	for i := range claim.Status.Conditions {
		if condition := &claim.Status.Conditions[i]; condition.Type == corev1.PersistentVolumeClaimUnused {
			return condition.Status
		}
	}
	return ""
}
