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

package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/usage"
)

func TestUnusedClaimEvents(t *testing.T) {
	pending, bound := claimWith("c"), boundClaim("c")
	another, deleted := boundClaim("c"), boundClaim("c")
	another.UID = "another"
	deleted.DeletionTimestamp = &earlier
	events := unusedClaimEvents()

	for name, test := range map[string]struct {
		old, updated *corev1.PersistentVolumeClaim // old is nil for one that is new
		want         bool
	}{
		"new, pending":      {nil, pending, false},
		"new, bound":        {nil, bound, true},
		"new, deleted":      {nil, deleted, false},
		"bound now":         {pending, bound, true},
		"still pending":     {pending, pending, false},
		"used now":          {bound, boundClaim("c", unusedIs(corev1.ConditionFalse)), true},
		"not known now":     {boundClaim("c", unusedIs(corev1.ConditionTrue)), bound, true},
		"changed":           {bound, bound, true},
		"another one":       {deleted, another, true},
		"deleted":           {bound, deleted, false},
		"not bound anymore": {bound, pending, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := false
			if test.old == nil {
				got = events.Create(event.TypedCreateEvent[*corev1.PersistentVolumeClaim]{Object: test.updated})
			} else {
				got = events.Update(event.TypedUpdateEvent[*corev1.PersistentVolumeClaim]{
					ObjectOld: test.old, ObjectNew: test.updated,
				})
			}
			if got != test.want {
				t.Errorf("the event passes: %v, want %v", got, test.want)
			}
		})
	}
}

func TestUnusedPodEvents(t *testing.T) {
	running := inPhase(corev1.PodRunning, podOf("web", "c"))
	pending := inPhase(corev1.PodPending, podOf("web", "c"))
	pending.Spec.NodeName = ""
	failed := inPhase(corev1.PodFailed, podOf("web", "c"))
	another := inPhase(corev1.PodRunning, podOf("web"))
	another.UID = "another"
	idle, idleFailed := inPhase(corev1.PodRunning, podOf("web")), inPhase(corev1.PodFailed, podOf("web"))
	events := unusedPodEvents()

	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{"running": {running, true}, "pending": {pending, true}, "ended": {failed, false}, "without claims": {idle, false}} {
		if got := events.Create(event.CreateEvent{Object: test.pod}); got != test.want {
			t.Errorf("a new pod that is %s passes: %v, want %v", name, got, test.want)
		}
		if events.Create(event.CreateEvent{Object: test.pod, IsInInitialList: true}) {
			t.Errorf("a pod of the initial list that is %s passes", name)
		}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{"running": {running, true}, "ended": {failed, true}, "without claims": {idle, false}} {
		if got := events.Delete(event.DeleteEvent{Object: test.pod}); got != test.want {
			t.Errorf("the deletion of a pod that is %s passes: %v, want %v", name, got, test.want)
		}
	}
	for name, test := range map[string]struct {
		old, updated *corev1.Pod
		want         bool
	}{
		"scheduled":             {pending, running, false},
		"as before":             {running, running, false},
		"ended":                 {running, failed, true},
		"ended before":          {failed, failed, false},
		"another":               {running, another, true},
		"ended, without claims": {idle, idleFailed, false},
	} {
		if got := events.Update(event.UpdateEvent{ObjectOld: test.old, ObjectNew: test.updated}); got != test.want {
			t.Errorf("a pod that is %s passes: %v, want %v", name, got, test.want)
		}
	}
}

// TestUnusedConverges plays random histories in which the cache lags behind, skips
// states, and shows pods and claims in any order, in which writes fail, and other
// writers change the claims. When all is seen in the end, every condition is right.
func TestUnusedConverges(t *testing.T) {
	const histories, steps = 60, 40
	w := newUnusedWorld(t)
	for seed := range histories {
		h := &unusedHistory{
			unusedWorld: w, random: rand.New(rand.NewPCG(uint64(seed), 0)), waiting: map[reconcile.Request]bool{},
		}
		h.onPatch = func() error {
			if h.random.IntN(4) == 0 {
				return errTest
			}
			return nil
		}
		for range steps { // Each history starts from where the one before has settled.
			h.step()
		}
		h.onPatch = nil
		h.settle()
		h.check()
		patches := h.patches
		if h.settle(); h.patches > patches {
			t.Error("patches go on although every condition is right")
		}
		if t.Failed() {
			t.Fatalf("history %d:\n%s", seed, h.log)
		}
	}
}

type unusedHistory struct {
	*unusedWorld
	random  *rand.Rand
	waiting map[reconcile.Request]bool // the controller's queue
	log     string
}

var (
	historyClaims = []string{"a", "b", "web-v"}
	historyPods   = []string{"web", "job"}
)

func pick[T any](h *unusedHistory, from ...T) T { return from[h.random.IntN(len(from))] }

func (h *unusedHistory) step() {
	claim, pod := claimWith(pick(h, historyClaims...)), podOf(pick(h, historyPods...))
	switch step := h.random.IntN(10); step {
	case 0, 1, 2:
		h.see(claim)
	case 3, 4:
		h.see(&pod)
	case 5, 6:
		h.changePod(&pod)
	case 7:
		h.changeClaim(claim)
	default:
		h.work()
	}
}

// changePod creates or deletes the pod, or ends it.
func (h *unusedHistory) changePod(pod *corev1.Pod) {
	err := h.server.Get(h.t.Context(), client.ObjectKeyFromObject(pod), pod)
	switch {
	case err != nil:
		*pod = podOf(pod.Name, pick(h, historyClaims...), pick(h, historyClaims...))
		if h.random.IntN(2) == 0 {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{},
			}}}
		}
		pod.UID = h.uid()
		h.do("create", pod, h.server.Create(h.t.Context(), pod))
	case h.random.IntN(2) == 0:
		pod.Status.Phase = pick(h, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed)
		h.do("become "+string(pod.Status.Phase), pod, h.server.Status().Update(h.t.Context(), pod))
	default:
		h.do("delete", pod, h.server.Delete(h.t.Context(), pod))
	}
}

// changeClaim creates or deletes the claim, or changes its status as others do.
func (h *unusedHistory) changeClaim(claim *corev1.PersistentVolumeClaim) {
	err := h.server.Get(h.t.Context(), client.ObjectKeyFromObject(claim), claim)
	if err != nil {
		claim = claimWith(claim.Name)
		claim.UID = h.uid()
		pod := podOf("web")
		if h.server.Get(h.t.Context(), client.ObjectKeyFromObject(&pod), &pod) == nil {
			claim.OwnerReferences = append(claim.OwnerReferences,
				*metav1.NewControllerRef(&pod, corev1.SchemeGroupVersion.WithKind("Pod")))
		}
		h.do("create", claim, h.server.Create(h.t.Context(), claim))
		return
	}
	switch h.random.IntN(5) {
	case 0:
		h.do("delete", claim, h.server.Delete(h.t.Context(), claim))
		return
	case 1:
		claim.Status.Phase = corev1.ClaimLost
	case 2:
		claim.Status.Conditions = nil
		unusedIs(pick(h, corev1.ConditionTrue, corev1.ConditionFalse))(claim)
	default:
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Conditions = nil
	}
	h.do(fmt.Sprintf("become %s %q", claim.Status.Phase, usage.UnusedStatus(claim)), claim,
		h.server.Status().Update(h.t.Context(), claim))
}

func (h *unusedHistory) uid() types.UID { return types.UID(fmt.Sprint(h.random.Uint64())) }

func (h *unusedHistory) do(what string, object client.Object, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%s %T %s: %v", what, object, object.GetName(), err)
	}
	h.log += fmt.Sprintf("%s %T %s\n", what, object, object.GetName())
}

// see shows the object to the cache, and its event to the controller. That something
// was deleted in between is not seen.
func (h *unusedHistory) see(object client.Object) {
	h.log += fmt.Sprintf("see %T %s\n", object, object.GetName())
	var requests []reconcile.Request
	switch name := object.GetName(); object.(type) {
	case *corev1.PersistentVolumeClaim:
		old := h.claims[name]
		h.show(object)
		if passes(unusedClaimEvents(), old, h.claims[name]) {
			requests = []reconcile.Request{requestOf(name)}
		}
	case *corev1.Pod:
		old := h.pods[name]
		h.show(object)
		if updated := h.pods[name]; passes(unusedPodEvents(), old, updated) {
			for _, pod := range []client.Object{old, updated} {
				if pod != nil {
					requests = append(requests, claimsOfPod(h.t.Context(), pod)...)
				}
			}
		}
	}
	for _, request := range requests {
		h.waiting[request] = true
	}
}

func passes[T client.Object](events predicate.TypedPredicate[T], old, updated T) bool {
	var none T
	switch exists, existed := any(updated) != any(none), any(old) != any(none); {
	case exists && existed:
		if old.GetUID() == updated.GetUID() && old.GetResourceVersion() == updated.GetResourceVersion() {
			return false // There is no event of what has not changed.
		}
		return events.Update(event.TypedUpdateEvent[T]{ObjectOld: old, ObjectNew: updated})
	case exists:
		return events.Create(event.TypedCreateEvent[T]{Object: updated})
	case existed:
		return events.Delete(event.TypedDeleteEvent[T]{Object: old})
	default:
		return false
	}
}

// work reconciles one of the claims that wait.
func (h *unusedHistory) work() {
	waiting := slices.SortedFunc(maps.Keys(h.waiting), func(a, b reconcile.Request) int {
		return strings.Compare(a.Name, b.Name)
	})
	if len(waiting) == 0 {
		return
	}
	request := pick(h, waiting...)
	delete(h.waiting, request)
	err := h.reconcile(h.t.Context(), request.Name)
	h.log += fmt.Sprintf("reconcile %s: %v\n", request.Name, err)
	if err != nil {
		h.waiting[request] = true
	}
}

// settle shows everything to the cache, and works until nothing waits.
func (h *unusedHistory) settle() {
	for _, name := range historyPods {
		pod := podOf(name)
		h.see(&pod)
	}
	for _, name := range historyClaims {
		h.see(claimWith(name))
	}
	for len(h.waiting) > 0 {
		h.work()
	}
}

// check compares the conditions on the server with the pods on the server.
func (h *unusedHistory) check() {
	for _, name := range historyClaims {
		claim := claimWith(name)
		if h.server.Get(h.t.Context(), client.ObjectKeyFromObject(claim), claim) != nil || !usage.WantsUnused(claim) {
			continue
		}
		want := corev1.ConditionTrue
		for _, name := range historyPods {
			pod := podOf(name)
			if h.server.Get(h.t.Context(), client.ObjectKeyFromObject(&pod), &pod) == nil && usage.Refers(&pod, claim) {
				want = corev1.ConditionFalse
			}
		}
		if got := usage.UnusedStatus(claim); got != want {
			h.t.Errorf("the condition of claim %s is %q, want %q", name, got, want)
		}
	}
}
