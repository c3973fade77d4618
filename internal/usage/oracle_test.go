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
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The rules of the design, stated once more: plainly, slowly, and without the code
// under test or its helpers. The fuzz tests compare both.

// plainNames returns the claims that the pod names, and those of its generic
// ephemeral volumes.
func plainNames(pod *corev1.Pod) (named, ephemeral []string) {
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			if v.PersistentVolumeClaim.ClaimName != "" {
				named = append(named, v.PersistentVolumeClaim.ClaimName)
			}
		case v.Ephemeral != nil:
			ephemeral = append(ephemeral, pod.Name+"-"+v.Name)
		}
	}
	return named, ephemeral
}

func plainNamesAny(pod *corev1.Pod) bool {
	named, ephemeral := plainNames(pod)
	return len(named)+len(ephemeral) > 0
}

func plainHolds(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	scheduled := pod.Spec.NodeName != ""
	sameNamespace := pod.Namespace == claim.Namespace
	named, ephemeral := plainNames(pod)
	byName := slices.Contains(named, claim.Name)
	asOwner := slices.Contains(ephemeral, claim.Name) && plainOwns(pod, claim) && !plainShutDown(pod)
	return scheduled && sameNamespace && (byName || asOwner)
}

func plainRefers(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	named, ephemeral := plainNames(pod)
	byName := slices.Contains(named, claim.Name)
	asOwner := slices.Contains(ephemeral, claim.Name) && plainOwns(pod, claim)
	return pod.Namespace == claim.Namespace && !plainEnded(pod) && (byName || asOwner)
}

// plainOwns: there is one controller at most, so the first one decides.
func plainOwns(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	for _, owner := range claim.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return owner.UID == pod.UID
		}
	}
	return false
}

func plainShutDown(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return false
	}
	return *pod.DeletionGracePeriodSeconds == 0
}

func plainEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == "Succeeded" || pod.Status.Phase == "Failed"
}

func plainMayHoldLess(old, updated *corev1.Pod) bool {
	if old.UID != updated.UID {
		return plainNamesAny(old) || plainNamesAny(updated)
	}
	unscheduled := old.Spec.NodeName != "" && updated.Spec.NodeName == ""
	shutDown := !plainShutDown(old) && plainShutDown(updated)
	ended := !plainEnded(old) && plainEnded(updated)
	return plainNamesAny(updated) && (unscheduled || shutDown || ended)
}

func plainMayNotHold(pod *corev1.Pod) bool {
	return plainNamesAny(pod) && (pod.Spec.NodeName == "" || plainEnded(pod) || plainShutDown(pod))
}
