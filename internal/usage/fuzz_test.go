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
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"pvc-protection-operator/internal/usage"
)

// seeds are bytes that decode to objects that meet, in the cases of §4. The pod is
// "a" in namespace "a"; see decoder.pod, decoder.state and decoder.claim.
func seeds(f *testing.F) {
	const (
		running, notScheduled, gone = "\x00\x01\x02\x00\x00", "\x00\x00\x01\x00\x00", "\x00\x01\x02\x02\x01"
		ended, another              = "\x00\x01\x03\x00\x00", "\x01\x01\x02\x00\x00"

		pod       = "\x00\x01"
		named     = "\x01\x00\x00\x01\x00" // one volume, of claim "a"
		ephemeral = "\x01\x01\x01\x00"     // one volume, "a", of claim "a-a"
		hugeMany  = "\x01\x0c\x00\x0c\xff\x01\x00\x03"

		claimA, claimHuge = "\x00\x01\x00\x02\x00\x02\x02\x00", "\x00\x0c"
		claimOfPod        = "\x00\x03\x00\x00\x01\x00\x01"
		claimOfAnother    = "\x00\x03\x00\x00\x02\x00\x00\x01\x01"
	)
	for _, seed := range []string{
		"",
		pod + running + named + claimA,
		pod + notScheduled + named + claimA,
		pod + ended + named + claimA,
		pod + gone + named + claimA,
		pod + running + ephemeral + claimOfPod,
		pod + running + ephemeral + claimOfAnother,
		pod + gone + ephemeral + claimOfPod,
		pod + running + hugeMany + claimHuge,
		// Two states of a pod, for FuzzMayHoldLess.
		pod + running + named + ended + claimA,
		pod + running + named + notScheduled + claimA,
		pod + running + ephemeral + gone + claimOfPod,
		pod + running + named + another + pod + running + ephemeral + claimA,
		claimA, claimOfPod, claimHuge, // for FuzzTrimClaim
	} {
		f.Add([]byte(seed))
	}
}

func FuzzHolds(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &decoder{data}
		pod, claim := d.pod(), d.claim()
		got := usage.Holds(pod, claim)
		if want := plainHolds(pod, claim); got != want {
			t.Errorf("Holds() = %v, want %v", got, want)
		}
		if got && !slices.Contains(usage.IndexPodByClaim(pod), claim.Name) {
			t.Errorf("the pod holds claim %.50q, which its index lacks", claim.Name)
		}
		if trimmed := usage.Holds(trimmedPod(t, pod), trimmedClaim(t, claim)); trimmed != got {
			t.Errorf("Holds() of the trimmed objects = %v, want %v", trimmed, got)
		}
	})
}

func FuzzIndexPodByClaim(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		pod := (&decoder{data}).pod()
		named, ephemeral := plainNames(pod)
		want := slices.Concat(named, ephemeral)
		slices.Sort(want)
		got := usage.IndexPodByClaim(pod)
		trimmed := usage.IndexPodByClaim(trimmedPod(t, pod))
		if !slices.Equal(trimmed, got) {
			t.Errorf("the index of the trimmed pod has %d entries, want %d", len(trimmed), len(got))
		}
		slices.Sort(got)
		if !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("the index has %d entries, want %d", len(got), len(want))
		}
	})
}

func FuzzTrimPod(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		pod := (&decoder{data}).pod()
		before := pod.DeepCopy()
		trimmed := trimmedPod(t, pod)
		if !apiequality.Semantic.DeepEqual(pod, before) {
			t.Error("TrimPod() changed its input")
		}
		if again := trimmedPod(t, trimmed); !apiequality.Semantic.DeepEqual(again, trimmed) {
			t.Error("a second TrimPod() changed the pod again")
		}
		if trimmed.Name != pod.Name || trimmed.Namespace != pod.Namespace || trimmed.UID != pod.UID {
			t.Error("TrimPod() lost the identity of the pod")
		}
		if got, want := usage.NamesClaims(trimmed), plainNamesAny(pod); got != want {
			t.Fatalf("NamesClaims() of the trimmed pod = %v, want %v", got, want)
		} else if !want {
			return // Nothing else matters of a pod without claims.
		}
		if got, want := usage.ShutDown(trimmed), plainShutDown(pod); got != want {
			t.Errorf("ShutDown() of the trimmed pod = %v, want %v", got, want)
		}
		if got, want := usage.Ended(trimmed), plainEnded(pod); got != want {
			t.Errorf("Ended() of the trimmed pod = %v, want %v", got, want)
		}
		got, want := slices.Collect(usage.ClaimNames(trimmed)), slices.Collect(usage.ClaimNames(pod))
		if !slices.Equal(got, want) {
			t.Errorf("ClaimNames() of the trimmed pod yields %d names, want %d", len(got), len(want))
		}
	})
}

func FuzzTrimClaim(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		claim := (&decoder{data}).claim()
		before := claim.DeepCopy()
		trimmed := trimmedClaim(t, claim)
		if !apiequality.Semantic.DeepEqual(claim, before) {
			t.Error("TrimClaim() changed its input")
		}
		if again := trimmedClaim(t, trimmed); !apiequality.Semantic.DeepEqual(again, trimmed) {
			t.Error("a second TrimClaim() changed the claim again")
		}
		protected := slices.Contains(claim.Finalizers, finalizer)
		deleted := claim.DeletionTimestamp != nil
		for _, c := range []*corev1.PersistentVolumeClaim{claim, trimmed} {
			if got, want := usage.NeedsProtection(c, finalizer), !deleted && !protected; got != want {
				t.Errorf("NeedsProtection() = %v, want %v", got, want)
			}
			if got, want := usage.IsCandidate(c, finalizer), deleted && protected; got != want {
				t.Errorf("IsCandidate() = %v, want %v", got, want)
			}
		}
		if got, want := usage.WantsUnused(trimmed), usage.WantsUnused(claim); got != want {
			t.Errorf("WantsUnused() of the trimmed claim = %v, want %v", got, want)
		}
		if got, want := usage.UnusedStatus(trimmed), usage.UnusedStatus(claim); got != want {
			t.Errorf("UnusedStatus() of the trimmed claim = %q, want %q", got, want)
		}
	})
}

// FuzzMayHoldLess decodes two states of a pod, and a claim. If the pod held the
// claim and does not any more, the claim must get a look.
func FuzzMayHoldLess(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &decoder{data}
		old := d.pod()
		updated := old.DeepCopy()
		d.state(updated)
		samePod := old.UID == updated.UID
		if !samePod {
			updated.Spec.Volumes = d.pod().Spec.Volumes // Those of one pod cannot be changed.
		}
		claim := d.claim()

		got := usage.MayHoldLess(old, updated)
		if want := plainMayHoldLess(old, updated); got != want {
			t.Errorf("MayHoldLess() = %v, want %v", got, want)
		}
		if trimmed := usage.MayHoldLess(trimmedPod(t, old), trimmedPod(t, updated)); trimmed != got {
			t.Errorf("MayHoldLess() of the trimmed pods = %v, want %v", trimmed, got)
		}
		freed := plainHolds(old, claim) && !plainHolds(updated, claim)
		if freed && !got {
			t.Error("MayHoldLess() = false, but the pod held a claim and does not any more")
		}

		first := usage.MayNotHold(updated)
		if want := plainMayNotHold(updated); first != want {
			t.Errorf("MayNotHold() = %v, want %v", first, want)
		}
		if trimmed := usage.MayNotHold(trimmedPod(t, updated)); trimmed != first {
			t.Errorf("MayNotHold() of the trimmed pod = %v, want %v", trimmed, first)
		}
		if freed && samePod && !first {
			t.Error("MayNotHold() = false, but an older state of the pod held a claim that this one does not")
		}
	})
}
