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
)

// NamesClaims reports whether any of the pod's volumes names a claim. Events of
// other pods never matter.
func NamesClaims(pod *corev1.Pod) bool {
	for range ClaimNames(pod) {
		return true
	}
	return false
}

// MayHoldLess reports whether the pod may hold less after the change from old
// to updated than before, so that the claims of both need a look.
//
// The two may be different pods: an informer that missed a deletion reports the
// successor of the same name as an update. The old pod is gone then.
//
// Reaching a final phase counts although Holds ignores the phase. It changes
// why a claim is held, and it costs one look in a pod's life.
func MayHoldLess(old, updated *corev1.Pod) bool {
	switch {
	case old.UID != updated.UID:
		return NamesClaims(old) || NamesClaims(updated)
	case !NamesClaims(updated):
		return false
	case old.Spec.NodeName != "" && updated.Spec.NodeName == "":
		return true
	case !ShutDown(old) && ShutDown(updated):
		return true
	default:
		return !Ended(old) && Ended(updated)
	}
}

// MayNotHold reports whether a pod that is seen for the first time may already
// hold less than an older state of it did, which only a live list may have
// shown: it is not scheduled, has ended or is shut down.
func MayNotHold(pod *corev1.Pod) bool {
	return NamesClaims(pod) && (pod.Spec.NodeName == "" || Ended(pod) || ShutDown(pod))
}
