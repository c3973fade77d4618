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
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/internal/usage"
)

func TestTrimPod(t *testing.T) {
	bloat := func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "x"}
		p.Annotations = map[string]string{"a": "b"}
		p.ResourceVersion = "7"
		p.Generation = 3
		p.CreationTimestamp = deletedAt
		p.Finalizers = []string{finalizer}
		p.OwnerReferences = []metav1.OwnerReference{{UID: "set"}}
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "A", Value: "B"}}}}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c"}}
		p.Status.Message = "text"
	}
	withVersion := func(p *corev1.Pod) { p.ResourceVersion = "7" }
	bare := func(p *corev1.Pod) { p.Spec, p.Status = corev1.PodSpec{}, corev1.PodStatus{} }
	readOnly := volume(corev1.Volume{Name: "ro", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "ro", ReadOnly: true},
	}})
	tests := map[string]struct{ pod, want *corev1.Pod }{
		"with claims": {
			newPod(bloat, deleted(30), claims("a"), readOnly),
			newPod(withVersion, deleted(30), claims("a"), volume(corev1.Volume{Name: "ro", VolumeSource: claimSource("ro")})),
		},
		"volumes without a claim": {
			newPod(bloat, volume(corev1.Volume{Name: "a", VolumeSource: claimSource("a")}), otherVolumes),
			newPod(withVersion, volume(corev1.Volume{Name: "a", VolumeSource: claimSource("a")})),
		},
		"ephemeral volumes lose their template": {
			newPod(bloat, ephemeralVolume("v")),
			newPod(withVersion, volume(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{},
			}})),
		},
		"no claims":              {newPod(bloat, otherVolumes, deleted(0)), newPod(withVersion, bare)},
		"a claim without a name": {newPod(bloat, claims("")), newPod(withVersion, bare)},
		"no volumes":             {newPod(bloat), newPod(withVersion, bare)},
		"empty":                  {&corev1.Pod{}, &corev1.Pod{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := test.pod.DeepCopy()
			got := trimmedPod(t, test.pod)
			if !apiequality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("TrimPod() = %s\nwant %s", asJSON(got), asJSON(test.want))
			}
			if !apiequality.Semantic.DeepEqual(test.pod, before) {
				t.Errorf("TrimPod() changed its input to %s\nfrom %s", asJSON(test.pod), asJSON(before))
			}
		})
	}
}

// TestTrimPodLetsGo proves that the trimmed pod does not keep alive what it drops:
// the array of all volumes, or a source with fields that nobody reads.
func TestTrimPodLetsGo(t *testing.T) {
	pod := newPod(otherVolumes, claims("a"), ephemeralVolume("v"))
	trimmed := trimmedPod(t, pod)
	if got := len(trimmed.Spec.Volumes); got != 2 {
		t.Fatalf("%d volumes are left, want 2", got)
	}
	for i := range trimmed.Spec.Volumes {
		kept := &trimmed.Spec.Volumes[i]
		for j := range pod.Spec.Volumes {
			original := &pod.Spec.Volumes[j]
			if kept == original ||
				kept.PersistentVolumeClaim != nil && kept.PersistentVolumeClaim == original.PersistentVolumeClaim ||
				kept.Ephemeral != nil && kept.Ephemeral == original.Ephemeral {
				t.Errorf("volume %s is shared with the pod that was trimmed", kept.Name)
			}
		}
	}
	trimmed.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "changed"
	if got := pod.Spec.Volumes[5].PersistentVolumeClaim.ClaimName; got != "a" {
		t.Errorf("a change of the trimmed pod made the claim's name %q in the other", got)
	}
}

// TestTrimPodIsSmall proves that a pod without claims, as most are, is not kept as a
// Pod, and that the fields of a Pod that it has are those of CachedPod.
func TestTrimPodIsSmall(t *testing.T) {
	trimmed, err := usage.TrimPod(newPod(otherVolumes))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := trimmed.(*metav1.PartialObjectMetadata); !ok {
		t.Errorf("TrimPod() of a pod without claims = %T, want its metadata alone", trimmed)
	}
	if again, err := usage.TrimPod(trimmed); err != nil || again != trimmed {
		t.Errorf("a second TrimPod() = (%v, %v), want it as it is", again, err)
	}
	pod := newPod(claims("a"))
	if got := usage.CachedPod(pod); got != pod {
		t.Errorf("CachedPod() of a pod = %s, want it as it is", asJSON(got))
	}
}

func TestTrimClaim(t *testing.T) {
	kept := func(c *corev1.PersistentVolumeClaim) {
		c.ResourceVersion = "7"
		c.CreationTimestamp = deletedAt
		c.DeletionGracePeriodSeconds = new(int64(0))
	}
	bloat := func(c *corev1.PersistentVolumeClaim) {
		c.Labels = map[string]string{"app": "x"}
		c.Annotations = map[string]string{"a": "b"}
		c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
		c.Spec.VolumeName = "pv"
		c.Spec.StorageClassName = new("fast")
		c.Status.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		condition(corev1.PersistentVolumeClaimResizing, corev1.ConditionTrue)(c)
	}
	trimmedTo := func(status corev1.ConditionStatus) claimOption {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
				{Type: corev1.PersistentVolumeClaimUnused, Status: status},
			}
		}
	}
	tests := map[string]struct{ claim, want *corev1.PersistentVolumeClaim }{
		"new": {newClaim("c", kept, bloat), newClaim("c", kept)},
		"a candidate": {
			newClaim("c", kept, bloat, terminating, finalizers("a/b", finalizer), owner("x", nil), controlledBy("y")),
			newClaim("c", kept, terminating, finalizers("a/b", finalizer), owner("x", nil), controlledBy("y")),
		},
		"bound":          {newClaim("c", kept, bloat, bound), newClaim("c", kept, bound)},
		"lost":           {newClaim("c", kept, bloat, lost), newClaim("c", kept, lost)},
		"bound, unused":  {newClaim("c", bloat, bound, unusedIs("True")), newClaim("c", bound, trimmedTo("True"))},
		"bound, used":    {newClaim("c", bound, unusedIs("False"), bloat), newClaim("c", bound, trimmedTo("False"))},
		"bound, unknown": {newClaim("c", bound, unusedIs("Unknown")), newClaim("c", bound)},
		"empty":          {&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := test.claim.DeepCopy()
			got := trimmedClaim(t, test.claim)
			if !apiequality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("TrimClaim() = %s\nwant %s", asJSON(got), asJSON(test.want))
			}
			if !apiequality.Semantic.DeepEqual(test.claim, before) {
				t.Errorf("TrimClaim() changed its input to %s\nfrom %s", asJSON(test.claim), asJSON(before))
			}
			if again := trimmedClaim(t, got); !apiequality.Semantic.DeepEqual(again, got) {
				t.Errorf("a second TrimClaim() = %s\nwant no change to %s", asJSON(again), asJSON(got))
			}
		})
	}
}

// TestTrimClaimIsCheap proves that what a claim keeps of its status takes no memory
// of its own.
func TestTrimClaimIsCheap(t *testing.T) {
	claim := newClaim("c", bound, unusedIs(corev1.ConditionTrue))
	allocations := func(c *corev1.PersistentVolumeClaim) float64 {
		return testing.AllocsPerRun(100, func() { trimmedClaim(t, c) })
	}
	if got, want := allocations(claim), allocations(newClaim("c")); got != want {
		t.Errorf("TrimClaim() of a claim with the condition allocates %v times, want %v as without", got, want)
	}
	if &trimmedClaim(t, claim).Status.Conditions[0] == &claim.Status.Conditions[0] {
		t.Error("the trimmed claim keeps the other's conditions alive")
	}
}

func TestTrimsPassOtherObjects(t *testing.T) {
	pod, claim := newPod(claims("a")), newClaim("a")
	pod.Labels = map[string]string{"a": "b"}
	claim.Labels = pod.Labels
	for name, object := range map[string]any{
		"nothing":            nil,
		"a tombstone":        cache.DeletedFinalStateUnknown{Key: "ns/pod", Obj: pod},
		"an empty tombstone": cache.DeletedFinalStateUnknown{Key: "ns/pod"},
		"another kind":       &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}},
		"no object":          "pod",
	} {
		for trim, transform := range map[string]cache.TransformFunc{"TrimPod": usage.TrimPod, "TrimClaim": usage.TrimClaim} {
			if got, err := transform(object); err != nil || got != object {
				t.Errorf("%s of %s = (%v, %v), want it as it is", trim, name, got, err)
			}
		}
	}
	if got, err := usage.TrimPod(claim); err != nil || got != any(claim) {
		t.Errorf("TrimPod of a claim = (%v, %v), want it as it is", got, err)
	}
	if got, err := usage.TrimClaim(pod); err != nil || got != any(pod) {
		t.Errorf("TrimClaim of a pod = (%v, %v), want it as it is", got, err)
	}
}

func asJSON(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func trimmedPod(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	trimmed, err := usage.TrimPod(pod)
	if err != nil {
		t.Fatalf("TrimPod() failed: %v", err)
	}
	return usage.CachedPod(trimmed.(client.Object))
}

func trimmedClaim(t *testing.T, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	t.Helper()
	trimmed, err := usage.TrimClaim(claim)
	if err != nil {
		t.Fatalf("TrimClaim() failed: %v", err)
	}
	return trimmed.(*corev1.PersistentVolumeClaim)
}
