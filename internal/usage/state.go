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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StateOf says in a few words, for people, what a pod that holds the claim is
// doing and why it counts.
func StateOf(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	state := "scheduled"
	switch {
	case Ended(pod):
		state = "ended, but holds its volume until it is deleted"
	case pod.DeletionTimestamp != nil:
		state = "shutting down"
	case pod.Status.Phase == corev1.PodRunning:
		state = "running"
	}
	if metav1.IsControlledBy(claim, pod) {
		state += "; the claim is its ephemeral volume"
	}
	return state
}
