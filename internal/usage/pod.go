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
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// ClaimNames yields the name of the claim behind each of the pod's volumes, in
// the order of the volumes. A claim that several volumes share is yielded
// several times. Volumes without a claim, and claims without a name, are
// skipped.
//
// It does not look at where or whether the pod runs, so it also yields the
// claims of pods that hold nothing; see Holds.
func ClaimNames(pod *corev1.Pod) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range pod.Spec.Volumes {
			if name := claimName(pod, &pod.Spec.Volumes[i]); name != "" && !yield(name) {
				return
			}
		}
	}
}

// Holds reports whether the pod uses the claim, so that the claim must not be
// released. Both must be of the same namespace.
//
// A pod that was never scheduled does not hold: no kubelet has seen it, and
// kubelets start no pod whose claim is being deleted. The phase does not
// matter: the volumes of a pod that ended may still be mounted.
//
// A generic ephemeral volume counts only for the pod that owns its claim, and
// only until that pod is shut down. Otherwise a pod that waits for its claim
// to go, and the claim that waits for its pod, would wait for each other
// forever.
func Holds(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" || pod.Namespace != claim.Namespace {
		return false
	}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if claimName(pod, volume) != claim.Name {
			continue
		}
		if volume.PersistentVolumeClaim != nil {
			return true
		}
		if !ShutDown(pod) && ephemeral.VolumeIsForPod(pod, claim) == nil {
			return true
		}
	}
	return false
}

// Ended reports whether all containers of the pod have stopped for good.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ShutDown reports whether nothing but finalizers keeps the pod: it is being
// deleted with a grace period of zero. The kubelet has confirmed that its
// volumes are gone, or somebody has deleted it by force.
func ShutDown(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil &&
		pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}

func claimName(pod *corev1.Pod, volume *corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, volume)
	default:
		return ""
	}
}
