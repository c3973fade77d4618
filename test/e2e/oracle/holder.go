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

package oracle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// holds tells whether the pod uses the claim, as design.md §4 has it.
func holds(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	scheduled := pod.Spec.NodeName != ""
	if !scheduled || pod.Namespace != claim.Namespace {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		if volume.PersistentVolumeClaim != nil {
			return volume.PersistentVolumeClaim.ClaimName == claim.Name
		}
		return volume.Ephemeral != nil && pod.Name+"-"+volume.Name == claim.Name &&
			owns(pod, claim) && !isShutDown(pod)
	})
}

// owns tells whether this very pod is the claim's controller.
func owns(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	for _, owner := range claim.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return owner.UID == pod.UID
		}
	}
	return false
}

func isShutDown(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && grace != nil && *grace == 0
}
