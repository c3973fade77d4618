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
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// decoder makes objects of the bytes of a fuzz test. It takes names from a small
// set, so that pods and claims meet, and reads zeros once the bytes are used up.
type decoder struct{ data []byte }

func (d *decoder) next(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

var huge = strings.Repeat("a", 10_000)

// name returns a name that may be empty, huge, invalid, or the ephemeral claim's
// of a pod and a volume of other names.
func (d *decoder) name() string {
	names := []string{"", "a", "b", "a-a", "a-b", "a-a-a", "b-a", "-", "a-", "-a", "\x00", "Ä/ ", huge, "a-" + huge}
	return names[d.next(len(names))]
}

func (d *decoder) namespace() string { return []string{"a", "b", ""}[d.next(3)] }
func (d *decoder) uid() types.UID    { return types.UID([]string{"1", "2", ""}[d.next(3)]) }

func (d *decoder) time() *metav1.Time {
	return []*metav1.Time{nil, {}, new(deletedAt)}[d.next(3)]
}

func (d *decoder) grace() *int64 {
	return []*int64{nil, new(int64(0)), new(int64(30)), new(int64(-1))}[d.next(4)]
}

func (d *decoder) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace(), Name: d.name()}}
	d.state(pod)
	for range d.next(8) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, d.volume())
	}
	if d.next(256) == 255 {
		for i := range 3000 {
			filler := corev1.Volume{Name: fmt.Sprint(i)}
			if i%2 == 0 {
				filler.VolumeSource = claimSource(fmt.Sprint("filler-", i))
			}
			pod.Spec.Volumes = append(pod.Spec.Volumes, filler)
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, d.volume())
	}
	return pod
}

// state sets what changes in the life of a pod, and its UID.
func (d *decoder) state(pod *corev1.Pod) {
	phases := []corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, "New"}
	pod.UID = d.uid()
	pod.Spec.NodeName = []string{"", "node", "other", huge}[d.next(4)]
	pod.Status.Phase = phases[d.next(len(phases))]
	pod.DeletionTimestamp = d.time()
	pod.DeletionGracePeriodSeconds = d.grace()
}

func (d *decoder) volume() corev1.Volume {
	v := corev1.Volume{Name: d.name()}
	switch d.next(6) {
	case 0:
		v.VolumeSource = claimSource(d.name())
	case 1:
		v.Ephemeral = &corev1.EphemeralVolumeSource{}
	case 2:
		v.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}},
		}}
	case 3:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case 4: // of two kinds, which the API server refuses
		v.VolumeSource = claimSource(d.name())
		v.Ephemeral = &corev1.EphemeralVolumeSource{}
	default: // of a kind that this program does not know
	}
	return v
}

// claim returns a claim with a name: the API server knows no others.
func (d *decoder) claim() *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.namespace(), Name: d.name(), UID: d.uid(), DeletionTimestamp: d.time(),
	}}
	if claim.Name == "" {
		claim.Name = "a"
	}
	for range d.next(4) {
		claim.OwnerReferences = append(claim.OwnerReferences, metav1.OwnerReference{
			UID: d.uid(), Controller: []*bool{nil, new(true), new(false)}[d.next(3)],
		})
	}
	for range d.next(4) {
		claim.Finalizers = append(claim.Finalizers, []string{finalizer, "", "a/b", finalizer + "2"}[d.next(4)])
	}
	claim.Status.Phase = []corev1.PersistentVolumeClaimPhase{"", corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost}[d.next(4)]
	for range d.next(3) {
		claim.Status.Conditions = append(claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: []corev1.PersistentVolumeClaimConditionType{
				corev1.PersistentVolumeClaimUnused, corev1.PersistentVolumeClaimResizing, "",
			}[d.next(3)],
			Status:             []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, ""}[d.next(3)],
			LastTransitionTime: deletedAt,
		})
	}
	return claim
}
