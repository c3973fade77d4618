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
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStaleEvidence is S3: no release is sent on a list that is too old, however
// slow the writes are. The claims that are left get a list of their own.
func TestStaleEvidence(t *testing.T) {
	names := []string{"c1", "c2", "c3", "c4", "c5"}
	inWorld(t, func(w *world) {
		w.Options.ConcurrentWrites = 1
		var listed time.Time
		w.onList = func(context.Context, int) error {
			listed = time.Now()
			return nil
		}
		w.onPatch = func(_ context.Context, claim string) error {
			if age := time.Since(listed); age > 10*time.Second {
				t.Errorf("claim %s is released on evidence of %s ago", claim, age)
			}
			<-time.After(6 * time.Second)
			return nil
		}
		w.add(names...)
		w.wait(time.Minute)
		w.expect("gone", names...)
		if got := len(w.seen("list")); got != 3 {
			t.Errorf("%d lists were made, want 3: each is good for two writes of 6 s", got)
		}
		if errs := w.failed(); len(errs) > 0 {
			t.Errorf("Reconcile() failed: %v", errs)
		}
		if len(w.backOffs) > 0 {
			t.Errorf("claims backed off: %v", w.backOffs)
		}
	}, candidates(names...)...)
}

// TestStaleBeforeTheFirstWrite is S3, if the process was held up between the list
// and the writes. A pod that came meanwhile is seen by the next list.
func TestStaleBeforeTheFirstWrite(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pages = [][]corev1.Pod{{podOf("a", "c1")}}
		w.onLog = func() {
			<-time.After(writeWindow + 1)
			w.set(func() {
				w.pages = [][]corev1.Pod{{podOf("a", "c1"), podOf("b", "c2")}}
				w.onLog = nil
			})
		}
		w.add("c1", "c2", "c3")
		w.wait(writeWindow + time.Second)
		want := []string{"list 0", "list 0", "release c3"}
		if got := w.seen("list", "release"); !slices.Equal(got, want) {
			t.Errorf("the calls were %q, want %q", got, want)
		}
		w.expect(testFinalizer, "c1", "c2")
	}, candidates("c1", "c2", "c3")...)
}

// TestSlowProtection proves that protection that takes too long gives up its turn,
// and is not lost.
func TestSlowProtection(t *testing.T) {
	names := []string{"c1", "c2", "c3", "c4", "c5"}
	var objects []client.Object
	for _, name := range names {
		objects = append(objects, claimWith(name))
	}
	inWorld(t, func(w *world) {
		w.Options.ConcurrentWrites = 1
		w.onPatch = func(context.Context, string) error {
			<-time.After(6 * time.Second)
			return nil
		}
		w.add(names...)
		w.wait(time.Minute)
		w.expect(testFinalizer, names...)
		calls := map[string]int{}
		for _, call := range w.seen("") {
			calls[strings.Fields(call)[0]]++
		}
		// Each turn writes two claims; the others are read again in the next.
		if reads, writes := calls["read"], calls["protect"]; reads != 5+3+1 || writes != len(names) {
			t.Errorf("the calls were %v, want 9 reads and a write for each of 5 claims", calls)
		}
		if len(w.backOffs) > 0 {
			t.Errorf("claims backed off: %v", w.backOffs)
		}
	}, objects...)
}

func TestLate(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for after, want := range map[time.Duration]bool{
		-time.Hour: false, 0: false, writeWindow: false, writeWindow + 1: true, time.Hour: true,
	} {
		r := &PersistentVolumeClaimReconciler{Clock: clocktesting.NewFakePassiveClock(since.Add(after))}
		if got := r.late(since); got != want {
			t.Errorf("late() after %s = %v, want %v", after, got, want)
		}
	}
}

// TestStopFinishesWhatIsInFlight proves that when the manager stops no write starts,
// and that those that were sent are waited for.
func TestStopFinishesWhatIsInFlight(t *testing.T) {
	names := []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7"}
	inWorld(t, func(w *world) {
		answer := make(chan struct{})
		w.onPatch = func(ctx context.Context, claim string) error {
			<-answer
			if ctx.Err() != nil {
				t.Errorf("the write of claim %s in flight was cancelled: %v", claim, ctx.Err())
			}
			return nil
		}
		w.add(names...)
		inFlight := w.seen("release")
		if len(inFlight) != w.Options.ConcurrentWrites {
			t.Fatalf("in flight are %q, want %d writes", inFlight, w.Options.ConcurrentWrites)
		}
		w.cancel()
		w.wait(time.Second)
		close(answer)
		w.wait(time.Second)
		if got := w.seen("release"); got != nil {
			t.Errorf("after the end, the calls were %q, want none", got)
		}
		for _, name := range names {
			want := testFinalizer
			if slices.Contains(inFlight, "release "+name) {
				want = "gone"
			}
			w.expect(want, name)
		}
		if errs := w.failed(); len(errs) > 0 {
			t.Errorf("Reconcile() failed on the way out: %v", errs)
		}
	}, candidates(names...)...)
}

// TestStopDuringTheList proves that nothing is released any more.
func TestStopDuringTheList(t *testing.T) {
	inWorld(t, func(w *world) {
		w.onList = func(context.Context, int) error {
			w.cancel() // The page is answered nevertheless.
			return nil
		}
		w.add("c1", "c2")
		if got := w.seen("release"); got != nil {
			t.Errorf("the calls were %q, want none", got)
		}
		if errs := w.failed(); len(errs) > 0 {
			t.Errorf("Reconcile() failed on the way out: %v", errs)
		}
	}, candidates("c1", "c2")...)
}

// TestWriteTakesTooLong proves that a write that is not answered ends by itself.
func TestWriteTakesTooLong(t *testing.T) {
	inWorld(t, func(w *world) {
		w.onPatch = func(ctx context.Context, _ string) error {
			w.set(func() { w.onPatch = nil })
			<-ctx.Done()
			return ctx.Err()
		}
		w.add("c1")
		w.wait(writeTimeout + time.Second)
		if errs := w.failed(); len(errs) != 1 || !errors.Is(errs[0], context.DeadlineExceeded) {
			t.Errorf("Reconcile() failed with %v, want the timeout", errs)
		}
		w.expect("gone", "c1")
		if writeTimeout >= GracefulShutdownTimeout {
			t.Error("a write may take longer than the manager waits")
		}
	}, candidate("c1"))
}

// TestWriteFails is L3: a claim that fails holds up no other, and backs off alone.
func TestWriteFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.onPatch = func(_ context.Context, claim string) error {
			if claim == "c2" || claim == "new" {
				return errTest
			}
			return nil
		}
		w.add("c1", "c2", "c3", "new")
		w.expect("gone", "c1", "c3")
		w.expect(testFinalizer, "c2")
		// At 0, 50, 150, 350 and 750 ms, in a second.
		for _, name := range []string{"c2", "new"} {
			if got := w.backOffs[requestOf(name)]; got != 5 {
				t.Errorf("claim %s backed off %d times in a second, want 5", name, got)
			}
		}
		if got := w.backOffs[requestOf("c1")]; got != 0 {
			t.Errorf("claim c1 backed off %d times", got)
		}
		errs := w.failed()
		if len(errs) == 0 {
			t.Fatal("Reconcile() did not fail")
		}
		for _, want := range []string{"release claim ns/c2", "protect claim ns/new", errTest.Error()} {
			if !strings.Contains(errs[0].Error(), want) {
				t.Errorf("Reconcile() failed with %q, want it to say %q", errs[0], want)
			}
		}
		w.set(func() { w.onPatch = nil })
		w.wait(time.Minute)
		w.expect("gone", "c2")
		w.expect(testFinalizer, "new")
	}, append(candidates("c1", "c2", "c3"), claimWith("new"))...)
}

// TestConcurrentWrites proves that the limit is reached and kept.
func TestConcurrentWrites(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("c", i))
	}
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		now, most := 0, 0
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			now += by
			most = max(most, now)
		}
		w.onPatch = func(context.Context, string) error {
			count(1)
			defer count(-1)
			<-time.After(100 * time.Millisecond)
			return nil
		}
		w.add(names...)
		w.expect("gone", names...)
		if most != w.Options.ConcurrentWrites {
			t.Errorf("%d writes were in flight at once, want %d", most, w.Options.ConcurrentWrites)
		}
	}, candidates(names...)...)
}

func TestFailures(t *testing.T) {
	var none failures
	if err := none.err(); err != nil {
		t.Errorf("no failures make the error %q", err)
	}

	var one failures
	one.add(errTest)
	if err := one.err(); err != errTest { //nolint:errorlint // It must be the very error.
		t.Errorf("one failure makes the error %q", err)
	}

	var many failures
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { many.add(errTest) })
	}
	group.Wait()
	err := many.err()
	if want := errTest.Error() + " (and 99 more claims failed)"; err.Error() != want || !errors.Is(err, errTest) {
		t.Errorf("100 failures make the error %q, want %q", err, want)
	}
}

func failOnce() func(func()) error {
	failed := false
	return func(func()) error {
		if failed {
			return nil
		}
		failed = true
		return errTest
	}
}
