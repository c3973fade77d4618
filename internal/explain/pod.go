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

package explain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pvc-protection-operator/internal/usage"
)

func (f *Facts) pod(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) Pod {
	holds := usage.Holds(pod, claim)
	return Pod{
		Name:       pod.Name,
		Node:       pod.Spec.NodeName,
		Phase:      pod.Status.Phase,
		Holds:      holds,
		State:      podState(pod, claim, holds),
		Since:      since(pod),
		Overdue:    overdue(pod, f.Now),
		Finalizers: pod.Finalizers,
		Owners:     f.owners(pod),
		ended:      usage.Ended(pod),
		deleted:    pod.DeletionTimestamp != nil,
		shutDown:   usage.ShutDown(pod),
		refers:     usage.Refers(pod, claim),
	}
}

// podState says why a pod that names the claim holds it or does not. For holders
// it has the words of the operator's events.
func podState(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, holds bool) string {
	switch {
	case holds:
		return usage.StateOf(pod, claim)
	case pod.Spec.NodeName == "":
		return "not scheduled"
	case usage.ShutDown(pod):
		return "shut down"
	default:
		return "names a claim that is not its own" // for an ephemeral volume
	}
}

// since returns when the pod came into the state that podState has words for.
func since(pod *corev1.Pod) *metav1.Time {
	switch {
	case usage.Ended(pod):
		return endedAt(pod)
	case pod.DeletionTimestamp != nil:
		return new(metav1.NewTime(pod.DeletionTimestamp.Add(-gracePeriod(pod))))
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return &condition.LastTransitionTime
		}
	}
	// It is not scheduled, or it had its node from the start.
	return &pod.CreationTimestamp
}

// endedAt returns when the last container has ended, or nil if that is not known.
func endedAt(pod *corev1.Pod) *metav1.Time {
	var last *metav1.Time
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil && (last == nil || last.Before(&ended.FinishedAt)) {
			last = &ended.FinishedAt
		}
	}
	return last
}

// overdue returns when the pod should have ended, if that is over. A pod with a
// grace period of zero is not expected to.
func overdue(pod *corev1.Pod, now time.Time) *metav1.Time {
	if pod.DeletionTimestamp == nil || gracePeriod(pod) == 0 || !pod.DeletionTimestamp.Time.Before(now) {
		return nil
	}
	return pod.DeletionTimestamp
}

// gracePeriod returns what deletionTimestamp lies after the request to delete.
func gracePeriod(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}

// maxOwners ends a chain of owners that never ends.
const maxOwners = 5

func (f *Facts) owners(pod *corev1.Pod) []Owner {
	owners := []Owner{}
	for ref := metav1.GetControllerOf(pod); ref != nil && len(owners) < maxOwners; {
		owners = append(owners, Owner{Kind: ref.Kind, Name: ref.Name})
		if f.ControllerOf == nil {
			break
		}
		ref = f.ControllerOf(pod.Namespace, ref)
	}
	return owners
}
