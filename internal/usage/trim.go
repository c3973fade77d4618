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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TrimPod is a cache transform. It keeps what this package's rules and the
// messages about holders need of a pod: identity, deletion, node, phase, and
// the volumes that name a claim.
//
// Most pods of a cluster name none. What is left of such a pod is its identity,
// since an informer cannot drop objects, and as a PartialObjectMetadata, which is a
// quarter of an empty Pod. So not every object of a cache with this transform is a
// Pod: use CachedPod, and list by PodClaimIndex only.
//
// Objects of other types, such as tombstones, are returned as they are. It is
// idempotent, as client-go asks of transforms.
func TrimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	identity := metav1.ObjectMeta{
		Name:            pod.Name,
		Namespace:       pod.Namespace,
		UID:             pod.UID,
		ResourceVersion: pod.ResourceVersion,
	}
	if !NamesClaims(pod) {
		return &metav1.PartialObjectMetadata{ObjectMeta: identity}, nil
	}
	trimmed := &corev1.Pod{ObjectMeta: identity}
	trimmed.DeletionTimestamp = pod.DeletionTimestamp
	trimmed.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
	trimmed.Spec.NodeName = pod.Spec.NodeName
	trimmed.Status.Phase = pod.Status.Phase
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if claimName(pod, volume) == "" {
			continue
		}
		kept := corev1.Volume{Name: volume.Name}
		if volume.PersistentVolumeClaim != nil {
			kept.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: volume.PersistentVolumeClaim.ClaimName,
			}
		} else {
			kept.Ephemeral = &corev1.EphemeralVolumeSource{}
		}
		trimmed.Spec.Volumes = append(trimmed.Spec.Volumes, kept)
	}
	return trimmed, nil
}

// CachedPod returns the pod that an object of a cache with TrimPod stands for.
func CachedPod(obj client.Object) *corev1.Pod {
	if pod, ok := obj.(*corev1.Pod); ok {
		return pod
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name:            obj.GetName(),
		Namespace:       obj.GetNamespace(),
		UID:             obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(),
	}}
}

// TrimClaim is a cache transform. It keeps what this package's rules and the
// patches need of a claim: identity, owners, deletion, finalizers, phase, and the
// status of the Unused condition.
//
// Objects of other types, such as tombstones, are returned as they are. It is
// idempotent, as client-go asks of transforms.
func TrimClaim(obj any) (any, error) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return obj, nil
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:                       claim.Name,
			Namespace:                  claim.Namespace,
			UID:                        claim.UID,
			ResourceVersion:            claim.ResourceVersion,
			CreationTimestamp:          claim.CreationTimestamp,
			DeletionTimestamp:          claim.DeletionTimestamp,
			DeletionGracePeriodSeconds: claim.DeletionGracePeriodSeconds,
			OwnerReferences:            claim.OwnerReferences,
			Finalizers:                 claim.Finalizers,
		},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase:      claim.Status.Phase,
			Conditions: unusedConditions[UnusedStatus(claim)],
		},
	}, nil
}

// unusedConditions are the conditions of trimmed claims, by the status of Unused.
// All claims share them, so they cost no memory: nothing may change an object of
// the cache. A status that is neither true nor false says as little as none.
var unusedConditions = map[corev1.ConditionStatus][]corev1.PersistentVolumeClaimCondition{
	corev1.ConditionTrue:  {{Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue}},
	corev1.ConditionFalse: {{Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionFalse}},
}
