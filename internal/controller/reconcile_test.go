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
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReadsEveryClaimBeforeTheList is S1: evidence for one claim must not free
// another that was deleted after the list had started.
func TestReadsEveryClaimBeforeTheList(t *testing.T) {
	objects := append(candidates("c1", "c2", "c3"), claimWith("new"), claimWith("protected", testFinalizer))
	inWorld(t, func(w *world) {
		w.pages = [][]corev1.Pod{{podOf("p1", "other")}, {podOf("p2", "c2")}}
		w.add("c1", "protected", "c2", "new", "missing", "c3")
		got := w.seen("")
		last := max(0, len(got)-2)
		slices.Sort(got[last:]) // Writes go out together.
		want := []string{
			"read c1", "read protected", "read c2", "read new", "read missing", "read c3",
			"protect new",
			"look up c1", "look up c2", "look up c3",
			"list 0", "list 1",
			"release c1", "release c3",
		}
		if !slices.Equal(got, want) {
			t.Errorf("the calls were %q, want %q", got, want)
		}
		w.expect("gone", "c1", "c3")
		w.expect(testFinalizer, "c2", "new", "protected")
	}, objects...)
}

// TestDeletionDuringTheList is S1 as it would hurt: the list has passed when a pod
// starts to use a claim that is deleted then.
func TestDeletionDuringTheList(t *testing.T) {
	inWorld(t, func(w *world) {
		late := claimWith("late", testFinalizer)
		w.onList = func(ctx context.Context, _ int) error {
			w.set(func() { w.onList = nil })
			if err := w.server.Delete(ctx, late); err != nil {
				return err
			}
			w.feed.Add(requestOf("late"))
			<-time.After(time.Second)
			return nil
		}
		w.onPatch = func(context.Context, string) error {
			w.set(func() { w.pages = [][]corev1.Pod{{podOf("pod", "late")}} })
			return nil
		}
		w.add("c1", "late")
		w.wait(4 * time.Second) // sooner than a recheck
		want := []string{"list 0", "release c1", "list 0"}
		if got := w.seen("list", "release"); !slices.Equal(got, want) {
			t.Errorf("the calls were %q, want %q", got, want)
		}
		w.expect("gone", "c1")
		w.expect(testFinalizer, "late")
		if got := w.failed(); len(got) > 0 {
			t.Errorf("Reconcile() failed: %v", got)
		}
	}, candidate("c1"), claimWith("late", testFinalizer))
}

func TestNothingToDo(t *testing.T) {
	terminating := claimWith("terminating", "example.com/other")
	terminating.DeletionTimestamp = new(metav1.Now())
	inWorld(t, func(w *world) {
		w.add("protected", "terminating", "missing")
		want := []string{"read protected", "read terminating", "read missing"}
		if got := w.seen(""); !slices.Equal(got, want) {
			t.Errorf("the calls were %q, want %q", got, want)
		}
		w.wait(time.Hour)
		if got := w.seen(""); got != nil {
			t.Errorf("later calls were %q, want none", got)
		}
	}, claimWith("protected", testFinalizer), terminating)
}

func TestProtects(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("bare", "owned")
		w.expect(testFinalizer, "bare")
		w.expect("example.com/other,"+testFinalizer, "owned")
		if got := w.seen("look up", "list", "release"); got != nil {
			t.Errorf("protecting called %q", got)
		}
	}, claimWith("bare"), claimWith("owned", "example.com/other"))
}

// TestBlockedByTheCache proves that a holder in the cache costs no API call at
// first, one event, and little later (L2).
func TestBlockedByTheCache(t *testing.T) {
	pod := podOf("pod", "c1")
	inWorld(t, func(w *world) {
		w.pages = [][]corev1.Pod{{pod}}
		w.add("c1", "c2")
		want := []string{"list 0", "release c2"}
		if got := w.seen("list", "release"); !slices.Equal(got, want) {
			t.Errorf("the calls were %q, want %q", got, want)
		}
		w.wait(20 * w.Options.RecheckInterval)
		calls := map[string]int{}
		for _, call := range w.seen("") {
			calls[call]++
		}
		if looks, lists := calls["look up c1"], calls["list 0"]; looks < 19 || looks > 21 || lists < 9 || lists > 11 {
			t.Errorf("in 20 intervals, the calls were %v, want a look at each and a list at every second one", calls)
		}
		event := recordedEvent{
			claim: "c1", pod: "pod", kind: "Normal", reason: "DeletionBlocked", action: "KeepFinalizer",
			note: "The claim stays until it is not used any more by pod pod on node node (scheduled)",
		}
		if got := w.said(EventReasonBlocked); !slices.Equal(got, []recordedEvent{event}) {
			t.Errorf("the events are %q, want once %q", got, event)
		}
		if got := blockedClaims(); got != 1 {
			t.Errorf("%v claims are reported as blocked, want 1", got)
		}

		if err := w.server.Delete(w.ctx, &pod); err != nil {
			t.Fatal(err)
		}
		w.set(func() { w.pages = nil })
		w.add("c1")
		w.expect("gone", "c1")
		if got := blockedClaims(); got != 0 {
			t.Errorf("%v claims are still reported as blocked", got)
		}
	}, append(candidates("c1", "c2"), &pod)...)
}

// TestHolderThatTheCacheLacks is L1: no event may ever come for it.
func TestHolderThatTheCacheLacks(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pages = [][]corev1.Pod{{podOf("pod", "c1")}}
		w.add("c1")
		w.expect(testFinalizer, "c1")
		if got := w.said(EventReasonBlocked); len(got) != 1 || got[0].pod != "pod" {
			t.Errorf("the events are %q, want one about the pod", got)
		}
		lost := lostEvents(t)
		w.set(func() { w.pages = nil }) // The pod goes, and nobody says so.
		w.wait(w.Options.RecheckInterval + w.Options.RecheckInterval/10)
		w.expect("gone", "c1")
		w.wait(lostAfter)
		if got := lostEvents(t) - lost; got != 1 {
			t.Errorf("%v events count as lost, want 1", got)
		}
	}, candidate("c1"))
}

// TestNoEventLost proves that a claim that an event frees does not count as one that
// a recheck found, however often it was rechecked before.
func TestNoEventLost(t *testing.T) {
	pod := podOf("pod", "c1")
	inWorld(t, func(w *world) {
		lost := lostEvents(t)
		w.pages = [][]corev1.Pod{{pod}}
		w.add("c1")
		w.wait(5*w.Options.RecheckInterval + w.Options.RecheckInterval/2)
		if err := w.server.Delete(w.ctx, &pod); err != nil {
			t.Fatal(err)
		}
		w.set(func() { w.pages = nil })
		w.add("c1")
		w.expect("gone", "c1")
		w.wait(lostAfter)
		if got := lostEvents(t) - lost; got != 0 {
			t.Errorf("%v events count as lost", got)
		}
	}, candidate("c1"), &pod)
}

// TestLateEvent proves that an event that comes shortly before or after the recheck
// that finds the claim free does not count as lost.
func TestLateEvent(t *testing.T) {
	for name, early := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				pod := podOf("pod", "c1")
				lost := lostEvents(t)
				w.pages = [][]corev1.Pod{{pod}}
				w.add("c1")
				w.set(func() { w.pages = nil })
				if early { // Its request is still on its way.
					w.notifiedClaims(w.ctx, &pod)
				}
				for w.finalizers("c1") != "gone" {
					w.wait(time.Second)
				}
				if !early {
					w.notifiedClaims(w.ctx, &pod)
				}
				w.wait(time.Hour)
				if got := lostEvents(t) - lost; got != 0 {
					t.Errorf("%v events count as lost", got)
				}
			}, candidate("c1"))
		})
	}
}

// TestHolderThatTheCacheKeeps is L1 the other way: a cache that has missed the end
// of a pod for good does not keep its claims forever, and one list is enough for
// all of them.
func TestHolderThatTheCacheKeeps(t *testing.T) {
	pod := podOf("pod", "c1", "c2", "c3")
	inWorld(t, func(w *world) {
		w.add("c1")
		w.add("c2", "c3")
		if got := w.seen("list"); got != nil {
			t.Errorf("the calls were %q, want none while the cache has a holder", got)
		}
		w.wait(3 * w.Options.RecheckInterval)
		w.expect("gone", "c1", "c2", "c3")
		if got := w.seen("list"); len(got) != 1 {
			t.Errorf("%d lists were made, want one", len(got))
		}
	}, append(candidates("c1", "c2", "c3"), &pod)...)
}

// TestCacheFails is L3: a claim that fails holds up no other, and comes back by
// itself.
func TestCacheFails(t *testing.T) {
	failOnce := func(name string) func(context.Context, string) error {
		var once sync.Once
		return func(_ context.Context, claim string) (err error) {
			if claim == name {
				once.Do(func() { err = errTest })
			}
			return err
		}
	}
	for name, set := range map[string]func(*world){
		"on a read":    func(w *world) { w.onRead = failOnce("c1") },
		"on a look-up": func(w *world) { w.onLookUp = failOnce("c1") },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				set(w)
				w.add("c1", "c2", "c3")
				want := []string{"list 0", "list 0", "release c1", "release c2", "release c3"}
				if got := w.seen("list", "release"); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
					t.Errorf("the calls were %q, want %q", got, want)
				}
				w.expect("gone", "c1", "c2", "c3")
				errs := w.failed()
				if len(errs) != 1 || !errors.Is(errs[0], errTest) || !strings.Contains(errs[0].Error(), "ns/c1") {
					t.Errorf("Reconcile() failed with %v, want one error about the claim", errs)
				}
			}, candidates("c1", "c2", "c3")...)
		})
	}
}

// TestPanic proves that a reconciler that panics loses no claim.
func TestPanic(t *testing.T) {
	inWorld(t, func(w *world) {
		w.onList = func(context.Context, int) error {
			w.set(func() { w.onList = nil })
			panic("in the middle of a batch")
		}
		w.add("c1", "c2")
		w.expect("gone", "c1", "c2")
		if got := w.failed(); len(got) != 1 {
			t.Errorf("Reconcile() failed with %v, want the panic", got)
		}
	}, candidates("c1", "c2")...)
}

// TestPanicOfAWrite proves that a panic beside Reconcile, in one of its writes, neither
// ends the process nor loses the claim.
func TestPanicOfAWrite(t *testing.T) {
	inWorld(t, func(w *world) {
		w.onPatch = func(_ context.Context, claim string) error {
			if claim != "c1" {
				return nil
			}
			w.set(func() { w.onPatch = nil })
			panic("in a write")
		}
		w.add("c1", "c2")
		if got := w.failed(); len(got) != 1 || !strings.Contains(got[0].Error(), "panic: in a write") {
			t.Errorf("Reconcile() failed with %v, want the panic", got)
		}
		w.expect("gone", "c1", "c2")
	}, candidates("c1", "c2")...)
}
