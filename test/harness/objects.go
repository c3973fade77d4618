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

package harness

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer is what the operator puts on claims unless it is told otherwise.
const Finalizer = "kubernetes.io/pvc-protection"

// Claim returns a small claim without a finalizer.
func Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       claimSpec(),
	}
}

// EphemeralClaim returns the claim of a pod's ephemeral volume, which belongs to the pod. On a cluster with its
// controllers, one of them makes it.
func EphemeralClaim(pod *corev1.Pod, volume string) *corev1.PersistentVolumeClaim {
	claim := Claim(pod.Namespace, pod.Name+"-"+volume)
	claim.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod")),
	}
	return claim
}

// PodOption makes a pod differ from the one that Pod returns without any.
type PodOption func(*corev1.Pod)

// Pod returns a pod that is not scheduled and has no volumes. No option is needed for it to be admitted.
func Pod(namespace, name string, options ...PodOption) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			// A scheduler, if there is one, has no say unless WithScheduler lets it.
			SchedulerName:                "none",
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{{Name: "main", Image: "example.com/main"}},
		},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

// OnNode schedules the pod.
func OnNode(name string) PodOption {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = name }
}

// WithScheduler leaves the pod to the default scheduler.
func WithScheduler() PodOption {
	return func(pod *corev1.Pod) { pod.Spec.SchedulerName = corev1.DefaultSchedulerName }
}

// WithFinalizer keeps the pod once it is deleted.
func WithFinalizer(name string) PodOption {
	return func(pod *corev1.Pod) { pod.Finalizers = append(pod.Finalizers, name) }
}

// WithClaim adds a volume, named like the claim, to the pod and mounts it.
func WithClaim(name string) PodOption {
	return withVolume(name, corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	})
}

// WithEphemeral adds a generic ephemeral volume to the pod and mounts it. Its claim is EphemeralClaim.
func WithEphemeral(volume string) PodOption {
	return withVolume(volume, corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec()},
		},
	})
}

func withVolume(name string, source corev1.VolumeSource) PodOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		container := &pod.Spec.Containers[0]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
}

func claimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
		},
	}
}
