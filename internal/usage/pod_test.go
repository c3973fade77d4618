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

func TestClaimNames(t *testing.T) {
	both := corev1.Volume{Name: "v", VolumeSource: claimSource("claim")}
	both.Ephemeral = &corev1.EphemeralVolumeSource{}
	tests := map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"no volumes":                     {newPod(), nil},
		"volumes without a claim":        {newPod(otherVolumes), nil},
		"claims in the volumes' order":   {newPod(claims("b", "a"), otherVolumes, claims("c")), []string{"b", "a", "c"}},
		"a shared claim once per volume": {newPod(claims("a", "b", "a")), []string{"a", "b", "a"}},
		"an ephemeral volume":            {newPod(ephemeralVolume("scratch")), []string{"pod-scratch"}},
		"ephemeral and by name":          {newPod(ephemeralVolume("v"), claims("pod-v")), []string{"pod-v", "pod-v"}},
		"claims without a name":          {newPod(claims("", "a", "")), []string{"a"}},
		"a volume of two kinds":          {newPod(volume(both)), []string{"claim"}},
		"an unscheduled pod":             {newPod(unscheduled, pending, claims("a")), []string{"a"}},
		"a pod that has ended":           {newPod(succeeded, claims("a")), []string{"a"}},
		"a pod that is shut down":        {newPod(shutDown, ephemeralVolume("v")), []string{"pod-v"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := slices.Collect(usage.ClaimNames(test.pod)); !slices.Equal(got, test.want) {
				t.Errorf("ClaimNames() = %q, want %q", got, test.want)
			}
			if got, want := usage.NamesClaims(test.pod), len(test.want) > 0; got != want {
				t.Errorf("NamesClaims() = %v, want %v", got, want)
			}
		})
	}
}

func TestClaimNamesStopsWhenAsked(t *testing.T) {
	var got []string
	for name := range usage.ClaimNames(newPod(claims("a", "b", "c"))) {
		if got = append(got, name); name == "b" {
			break
		}
	}
	if want := []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q before the break, want %q", got, want)
	}
}

func TestHolds(t *testing.T) {
	named := newClaim("claim")
	ephemeral := newClaim("pod-v", controlledBy("pod-uid"))
	tests := map[string]struct {
		pod   *corev1.Pod
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		// Claims that are named.
		"names the claim":              {newPod(claims("claim")), named, true},
		"names it among others":        {newPod(otherVolumes, claims("a", "claim")), named, true},
		"names another claim":          {newPod(claims("claim2", "clai")), named, false},
		"has no volumes":               {newPod(), named, false},
		"has no claims":                {newPod(otherVolumes), named, false},
		"names none":                   {newPod(claims("")), named, false},
		"of another namespace":         {newPod(inNamespace("other"), claims("claim")), named, false},
		"not scheduled":                {newPod(unscheduled, claims("claim")), named, false},
		"scheduled but pending":        {newPod(pending, claims("claim")), named, true},
		"succeeded":                    {newPod(succeeded, claims("claim")), named, true},
		"failed":                       {newPod(failed, claims("claim")), named, true},
		"without a phase":              {newPod(func(p *corev1.Pod) { p.Status.Phase = "" }, claims("claim")), named, true},
		"being deleted":                {newPod(deleted(30), claims("claim")), named, true},
		"shut down":                    {newPod(shutDown, claims("claim")), named, true},
		"shut down and ended":          {newPod(shutDown, failed, claims("claim")), named, true},
		"owned by somebody else":       {newPod(claims("claim")), newClaim("claim", controlledBy("x")), true},
		"itself being deleted":         {newPod(claims("claim")), newClaim("claim", terminating), true},
		"names another's ephemeral":    {newPod(claims("other-v")), newClaim("other-v", controlledBy("x")), true},
		"names its own ephemeral":      {newPod(shutDown, claims("pod-v")), ephemeral, true},
		"by name and as ephemeral too": {newPod(shutDown, ephemeralVolume("v"), claims("pod-v")), ephemeral, true},

		// Generic ephemeral volumes.
		"ephemeral":                         {newPod(ephemeralVolume("v")), ephemeral, true},
		"ephemeral among others":            {newPod(claims("a"), otherVolumes, ephemeralVolume("v")), ephemeral, true},
		"ephemeral of another name":         {newPod(ephemeralVolume("w")), ephemeral, false},
		"ephemeral, not scheduled":          {newPod(unscheduled, ephemeralVolume("v")), ephemeral, false},
		"ephemeral, succeeded":              {newPod(succeeded, ephemeralVolume("v")), ephemeral, true},
		"ephemeral, failed":                 {newPod(failed, ephemeralVolume("v")), ephemeral, true},
		"ephemeral, of another namespace":   {newPod(inNamespace("x"), ephemeralVolume("v")), ephemeral, false},
		"ephemeral, deleted with grace":     {newPod(deleted(30), ephemeralVolume("v")), ephemeral, true},
		"ephemeral, grace of one second":    {newPod(deleted(1), ephemeralVolume("v")), ephemeral, true},
		"ephemeral, shut down":              {newPod(shutDown, ephemeralVolume("v")), ephemeral, false},
		"ephemeral, of the pod before":      {newPod(withUID("new"), ephemeralVolume("v")), ephemeral, false},
		"ephemeral, without an owner":       {newPod(ephemeralVolume("v")), newClaim("pod-v"), false},
		"ephemeral, owner not a controller": {newPod(ephemeralVolume("v")), newClaim("pod-v", owner("pod-uid", nil)), false},
		"ephemeral, owner says false": {
			newPod(ephemeralVolume("v")), newClaim("pod-v", owner("pod-uid", new(false))), false,
		},
		"ephemeral, controller after an owner": {
			newPod(ephemeralVolume("v")), newClaim("pod-v", owner("x", nil), controlledBy("pod-uid")), true,
		},
		"ephemeral, another's controller": {
			newPod(ephemeralVolume("v")), newClaim("pod-v", owner("pod-uid", nil), controlledBy("x")), false,
		},
		"ephemeral, a template that is nil": {
			newPod(volume(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{},
			}})), ephemeral, true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usage.Holds(test.pod, test.claim); got != test.want {
				t.Errorf("Holds() = %v, want %v", got, test.want)
			}
			if oracle := plainHolds(test.pod, test.claim); oracle != test.want {
				t.Errorf("the tests' own statement says %v, want %v", oracle, test.want)
			}
		})
	}
}

func TestShutDown(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"running":                   {newPod(), false},
		"ended":                     {newPod(failed), false},
		"deleted with grace":        {newPod(deleted(30)), false},
		"deleted with one second":   {newPod(deleted(1)), false},
		"deleted without grace":     {newPod(deleted(0)), true},
		"grace without a deletion":  {newPod(func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64(0)) }), false},
		"a deletion without grace":  {newPod(func(p *corev1.Pod) { p.DeletionTimestamp = new(deletedAt) }), false},
		"of a negative grace":       {newPod(deleted(-1)), false},
		"not scheduled, no grace":   {newPod(unscheduled, deleted(0)), true},
		"not scheduled and running": {newPod(unscheduled), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usage.ShutDown(test.pod); got != test.want {
				t.Errorf("ShutDown() = %v, want %v", got, test.want)
			}
		})
	}
}

func TestEnded(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]bool{
		"":                  false,
		corev1.PodPending:   false,
		corev1.PodRunning:   false,
		corev1.PodUnknown:   false,
		corev1.PodSucceeded: true,
		corev1.PodFailed:    true,
	} {
		if got := usage.Ended(newPod(func(p *corev1.Pod) { p.Status.Phase = phase })); got != want {
			t.Errorf("Ended() in phase %q = %v, want %v", phase, got, want)
		}
	}
}
