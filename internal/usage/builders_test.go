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
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	namespace = "ns"
	finalizer = "example.com/protection"
)

var deletedAt = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

type podOption func(*corev1.Pod)

// newPod returns a pod that is scheduled and named "pod", unless the options say
// otherwise.
func newPod(options ...podOption) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod", UID: "pod-uid"},
		Spec:       corev1.PodSpec{NodeName: "node"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func inNamespace(name string) podOption { return func(p *corev1.Pod) { p.Namespace = name } }
func withUID(uid types.UID) podOption   { return func(p *corev1.Pod) { p.UID = uid } }
func onNode(name string) podOption      { return func(p *corev1.Pod) { p.Spec.NodeName = name } }
func unscheduled(p *corev1.Pod)         { p.Spec.NodeName = "" }
func pending(p *corev1.Pod)             { p.Status.Phase = corev1.PodPending }
func succeeded(p *corev1.Pod)           { p.Status.Phase = corev1.PodSucceeded }
func failed(p *corev1.Pod)              { p.Status.Phase = corev1.PodFailed }
func shutDown(p *corev1.Pod)            { deleted(0)(p) }

// deleted is what the API server makes of a deletion with that grace period.
func deleted(seconds int64) podOption {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = new(deletedAt)
		p.DeletionGracePeriodSeconds = new(seconds)
	}
}

func volume(v corev1.Volume) podOption {
	return func(p *corev1.Pod) {
		if v.Name == "" {
			v.Name = fmt.Sprintf("volume-%d", len(p.Spec.Volumes))
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
}

// claims adds a volume for each claim that it names.
func claims(names ...string) podOption {
	return func(p *corev1.Pod) {
		for _, name := range names {
			volume(corev1.Volume{VolumeSource: claimSource(name)})(p)
		}
	}
}

func claimSource(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

// ephemeralVolume adds a generic ephemeral volume; its claim is <pod>-<name>.
func ephemeralVolume(name string) podOption {
	return volume(corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}},
	}})
}

// otherVolumes adds volumes that have no claim.
func otherVolumes(p *corev1.Pod) {
	for _, source := range []corev1.VolumeSource{
		{}, // of a kind that this program does not know
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "claim"}},
		{CSI: &corev1.CSIVolumeSource{Driver: "claim"}},
	} {
		volume(corev1.Volume{VolumeSource: source})(p)
	}
}

type claimOption func(*corev1.PersistentVolumeClaim)

func newClaim(name string, options ...claimOption) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
	}
	for _, option := range options {
		option(claim)
	}
	return claim
}

func terminating(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(deletedAt) }

func finalizers(names ...string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Finalizers = names }
}

// controlledBy makes the pod of that UID the controller of the claim.
func controlledBy(uid types.UID) claimOption { return owner(uid, new(true)) }

func owner(uid types.UID, controller *bool) claimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "Pod", Name: "pod", UID: uid, Controller: controller,
		})
	}
}
