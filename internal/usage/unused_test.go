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

	"pvc-protection-operator/internal/usage"
)

func bound(c *corev1.PersistentVolumeClaim)   { c.Status.Phase = corev1.ClaimBound }
func unbound(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }
func lost(c *corev1.PersistentVolumeClaim)    { c.Status.Phase = corev1.ClaimLost }

// condition adds a condition that says more than its type and status.
func condition(kind corev1.PersistentVolumeClaimConditionType, status corev1.ConditionStatus) claimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: kind, Status: status, Reason: "Reason", Message: "text", LastTransitionTime: deletedAt,
		})
	}
}

func unusedIs(status corev1.ConditionStatus) claimOption {
	return condition(corev1.PersistentVolumeClaimUnused, status)
}

func TestRefers(t *testing.T) {
	named := newClaim("claim", bound)
	ephemeral := newClaim("pod-v", bound, controlledBy("pod-uid"))
	tests := map[string]struct {
		pod   *corev1.Pod
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"names the claim":           {newPod(claims("claim")), named, true},
		"names it among others":     {newPod(otherVolumes, claims("a", "claim")), named, true},
		"names another claim":       {newPod(claims("claim2", "clai")), named, false},
		"has no claims":             {newPod(otherVolumes), named, false},
		"of another namespace":      {newPod(inNamespace("other"), claims("claim")), named, false},
		"not scheduled":             {newPod(unscheduled, pending, claims("claim")), named, true},
		"scheduled but pending":     {newPod(pending, claims("claim")), named, true},
		"without a phase":           {newPod(func(p *corev1.Pod) { p.Status.Phase = "" }, claims("claim")), named, true},
		"succeeded":                 {newPod(succeeded, claims("claim")), named, false},
		"failed":                    {newPod(failed, claims("claim")), named, false},
		"failed, never scheduled":   {newPod(unscheduled, failed, claims("claim")), named, false},
		"being deleted":             {newPod(deleted(30), claims("claim")), named, true},
		"shut down":                 {newPod(shutDown, claims("claim")), named, true},
		"shut down and ended":       {newPod(shutDown, failed, claims("claim")), named, false},
		"names another's ephemeral": {newPod(claims("other-v")), newClaim("other-v", controlledBy("x")), true},

		"ephemeral":                         {newPod(ephemeralVolume("v")), ephemeral, true},
		"ephemeral, not scheduled":          {newPod(unscheduled, ephemeralVolume("v")), ephemeral, true},
		"ephemeral, shut down":              {newPod(shutDown, ephemeralVolume("v")), ephemeral, true},
		"ephemeral, succeeded":              {newPod(succeeded, ephemeralVolume("v")), ephemeral, false},
		"ephemeral of another name":         {newPod(ephemeralVolume("w")), ephemeral, false},
		"ephemeral, of another namespace":   {newPod(inNamespace("x"), ephemeralVolume("v")), ephemeral, false},
		"ephemeral, of the pod before":      {newPod(withUID("new"), ephemeralVolume("v")), ephemeral, false},
		"ephemeral, without an owner":       {newPod(ephemeralVolume("v")), newClaim("pod-v"), false},
		"ephemeral, owner not a controller": {newPod(ephemeralVolume("v")), newClaim("pod-v", owner("pod-uid", nil)), false},
		"ephemeral and named too": {
			newPod(withUID("new"), ephemeralVolume("v"), claims("pod-v")), ephemeral, true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usage.Refers(test.pod, test.claim); got != test.want {
				t.Errorf("Refers() = %v, want %v", got, test.want)
			}
			if oracle := plainRefers(test.pod, test.claim); oracle != test.want {
				t.Errorf("the tests' own statement says %v, want %v", oracle, test.want)
			}
			if test.want && !usage.MayRefer(test.pod) {
				t.Error("MayRefer() = false, but the pod refers to the claim")
			}
		})
	}
}

func TestMayRefer(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"running":          {newPod(claims("a")), true},
		"not scheduled":    {newPod(claims("a"), unscheduled, pending), true},
		"ephemeral":        {newPod(ephemeralVolume("v")), true},
		"shut down":        {newPod(claims("a"), shutDown), true},
		"succeeded":        {newPod(claims("a"), succeeded), false},
		"failed":           {newPod(claims("a"), failed), false},
		"no claims":        {newPod(otherVolumes), false},
		"a nameless claim": {newPod(claims("")), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usage.MayRefer(test.pod); got != test.want {
				t.Errorf("MayRefer() = %v, want %v", got, test.want)
			}
		})
	}
}

func TestMayReferOtherwise(t *testing.T) {
	used := claims("claim")
	tests := map[string]struct {
		old, updated *corev1.Pod
		want         bool
	}{
		"nothing changed":              {newPod(used), newPod(used), false},
		"scheduled":                    {newPod(used, unscheduled, pending), newPod(used, pending), false},
		"started":                      {newPod(used, pending), newPod(used), false},
		"deleted with grace":           {newPod(used), newPod(used, deleted(30)), false},
		"shut down":                    {newPod(used), newPod(used, shutDown), false},
		"succeeded":                    {newPod(used), newPod(used, succeeded), true},
		"failed":                       {newPod(used), newPod(used, failed), true},
		"failed before it started":     {newPod(used, unscheduled, pending), newPod(used, unscheduled, failed), true},
		"ended before":                 {newPod(used, succeeded), newPod(used, succeeded, shutDown), false},
		"not ended after all":          {newPod(used, failed), newPod(used), true},
		"ephemeral, ended":             {newPod(ephemeralVolume("v")), newPod(ephemeralVolume("v"), failed), true},
		"no claims, ended":             {newPod(otherVolumes), newPod(otherVolumes, succeeded), false},
		"another pod, the same claims": {newPod(used), newPod(used, withUID("new")), true},
		"another pod, other claims":    {newPod(used), newPod(claims("other"), withUID("new")), true},
		"another pod without claims":   {newPod(used), newPod(withUID("new")), true},
		"another pod, new claims":      {newPod(), newPod(used, withUID("new")), true},
		"another pod, never any claim": {newPod(otherVolumes), newPod(withUID("new")), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usage.MayReferOtherwise(test.old, test.updated); got != test.want {
				t.Errorf("MayReferOtherwise() = %v, want %v", got, test.want)
			}
		})
	}
}

func TestUnusedOfClaims(t *testing.T) {
	const (
		yes, no = corev1.ConditionTrue, corev1.ConditionFalse
		none    = corev1.ConditionStatus("")
	)
	resizing := condition(corev1.PersistentVolumeClaimResizing, yes)
	tests := map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		wants  bool
		status corev1.ConditionStatus
	}{
		"new":                   {newClaim("c"), false, none},
		"pending":               {newClaim("c", unbound), false, none},
		"bound":                 {newClaim("c", bound), true, none},
		"bound, resizing":       {newClaim("c", bound, resizing), true, none},
		"bound and unused":      {newClaim("c", bound, resizing, unusedIs(yes)), true, yes},
		"bound and used":        {newClaim("c", bound, unusedIs(no), resizing), true, no},
		"lost":                  {newClaim("c", lost, unusedIs(yes)), false, yes},
		"terminating":           {newClaim("c", bound, terminating), false, none},
		"terminating, was used": {newClaim("c", bound, terminating, unusedIs(no)), false, no},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for state, claim := range map[string]*corev1.PersistentVolumeClaim{
				"whole": test.claim, "trimmed": trimmedClaim(t, test.claim),
			} {
				if got := usage.WantsUnused(claim); got != test.wants {
					t.Errorf("WantsUnused() of the %s claim = %v, want %v", state, got, test.wants)
				}
				if got := usage.UnusedStatus(claim); got != test.status {
					t.Errorf("UnusedStatus() of the %s claim = %q, want %q", state, got, test.status)
				}
			}
		})
	}
}

// FuzzRefers decodes two states of a pod, and a claim. If the pod refers to the claim
// in one of them only, the claim must get a look.
func FuzzRefers(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &decoder{data}
		old := d.pod()
		updated := old.DeepCopy()
		d.state(updated)
		if old.UID != updated.UID {
			updated.Spec.Volumes = d.pod().Spec.Volumes // Those of one pod cannot be changed.
		}
		claim := d.claim()
		trimmedOld, trimmedUpdated := trimmedPod(t, old), trimmedPod(t, updated)

		for whole, trimmed := range map[*corev1.Pod]*corev1.Pod{old: trimmedOld, updated: trimmedUpdated} {
			got := usage.Refers(whole, claim)
			if want := plainRefers(whole, claim); got != want {
				t.Errorf("Refers() = %v, want %v", got, want)
			}
			if got && (!usage.MayRefer(whole) || !slices.Contains(usage.IndexPodByClaim(whole), claim.Name)) {
				t.Errorf("the pod refers to claim %.50q, which gets no look when the pod comes", claim.Name)
			}
			if again := usage.Refers(trimmed, trimmedClaim(t, claim)); again != got {
				t.Errorf("Refers() of the trimmed objects = %v, want %v", again, got)
			}
			if got, want := usage.MayRefer(trimmed), usage.MayRefer(whole); got != want {
				t.Errorf("MayRefer() of the trimmed pod = %v, want %v", got, want)
			}
		}

		got := usage.MayReferOtherwise(old, updated)
		if again := usage.MayReferOtherwise(trimmedOld, trimmedUpdated); again != got {
			t.Errorf("MayReferOtherwise() of the trimmed pods = %v, want %v", again, got)
		}
		if !got && plainRefers(old, claim) != plainRefers(updated, claim) {
			t.Error("MayReferOtherwise() = false, but the pod refers to a claim in one of its states only")
		}
	})
}
