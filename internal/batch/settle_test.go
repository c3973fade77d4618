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

package batch_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/batch"
)

// TestBackOff proves that the back-off grows with each failure, and stays below a
// minute.
func TestBackOff(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		before := h.pass(retry, a1)
		want := 50 * time.Millisecond
		for range 20 {
			came := h.pass(retry, a1)
			if got := came - before; got != want {
				h.t.Errorf("the request came back after %s, want %s", got, want)
			}
			before, want = came, min(2*want, 30*time.Second)
		}
	})
}

// TestBackOffIsEachRequestsOwn proves that one request's failures delay no other.
func TestBackOffIsEachRequestsOwn(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		h.pass(retry, a1)
		h.pass(retry, a1)
		third := h.pass(retry, a1) // comes back 200 ms later
		h.add(a2)
		failed := h.pass(retry, a2)
		if came := h.pass(done, a2); came != failed+50*time.Millisecond {
			h.t.Errorf("the other request came back after %s, want 50ms", came-failed)
		}
		if came := h.pass(done, a1); came != third+200*time.Millisecond {
			h.t.Errorf("the request came back after %s, want 200ms", came-third)
		}
	})
}

func TestBackOffAfter(t *testing.T) {
	const first, third = 50 * time.Millisecond, 200 * time.Millisecond
	settles := map[string]struct {
		settle func(*batch.Batch, reconcile.Request)
		want   time.Duration
	}{
		"Done":     {done, first},
		"Again":    {again(time.Second), first},
		"Postpone": {postpone(time.Second), third},
		"Hold":     {func(b *batch.Batch, r reconcile.Request) { b.Hold(r) }, third},
	}
	for name, test := range settles {
		t.Run(name, func(t *testing.T) {
			inBubble(t, batch.Options{}, func(h *harness) {
				h.add(a1)
				h.pass(retry, a1)
				h.pass(retry, a1)
				h.pass(test.settle, a1)
				if name == "Done" {
					h.add(a1)
				}
				failed := h.pass(retry, a1)
				if came := h.pass(done, a1); came-failed != test.want {
					h.t.Errorf("after %s, the request came back after %s, want %s", name, came-failed, test.want)
				}
			})
		})
	}
}

// TestManyFailuresComeBackTogether proves that there is no bucket that all requests
// share: 5,000 that fail together take no longer than one.
func TestManyFailuresComeBackTogether(t *testing.T) {
	const count = 5000
	inBubble(t, batch.Options{Window: time.Millisecond}, func(h *harness) {
		for i := range count {
			h.add(request("a", fmt.Sprint(i)))
		}
		for _, want := range []time.Duration{time.Millisecond, 52 * time.Millisecond, 153 * time.Millisecond} {
			namespace, b := h.next()
			if got := len(b.Requests()); got != count {
				h.t.Fatalf("the batch has %d requests, want %d", got, count)
			}
			if came := h.elapsed(); came != want {
				h.t.Errorf("the batch came after %s, want %s", came, want)
			}
			for _, r := range b.Requests() {
				b.Retry(r)
			}
			h.finish(namespace, b)
		}
	})
}

func TestDelays(t *testing.T) {
	for name, settle := range map[string]func(time.Duration) func(*batch.Batch, reconcile.Request){
		"Again": again, "Postpone": postpone,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, batch.Options{}, func(h *harness) {
				h.add(a1, b1)
				h.pass(settle(time.Minute), a1)
				h.pass(done, b1)
				h.wait(time.Minute - 1)
				h.idle()
				if came := h.pass(settle(time.Minute), a1); came != time.Minute {
					h.t.Errorf("the request came back after %s, want 1m", came)
				}

				h.wait(time.Second) // An event comes before the time.
				h.add(a1)
				if came := h.pass(settle(0), a1); came != time.Minute+time.Second {
					h.t.Errorf("the request came after %s, want 1m1s, when it was added", came)
				}
				if came := h.pass(done, a1); came != time.Minute+time.Second {
					h.t.Errorf("without a delay, the request came after %s, want at once", came)
				}
			})
		})
	}
}

// TestClose proves that requests that were not settled are retried, however the
// reconciler ended.
func TestClose(t *testing.T) {
	ends := map[string]func(*batch.Batch){
		"it returns": func(b *batch.Batch) { defer b.Close() },
		"it panics": func(b *batch.Batch) {
			defer func() { _ = recover() }()
			defer b.Close()
			panic("reconciler")
		},
		"it closes twice": func(b *batch.Batch) { b.Close(); b.Close() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBubble(t, batch.Options{Window: time.Millisecond}, func(h *harness) {
				h.add(a1, a2, a3)
				b := h.take(a1, a2, a3)
				began := h.elapsed()
				b.Done(a2)
				end(b)
				h.finish("a", b)

				namespace, b := h.next()
				got := slices.SortedFunc(slices.Values(b.Requests()), byName)
				if !slices.Equal(got, []reconcile.Request{a1, a3}) {
					h.t.Errorf("%v came back, want those that were not settled", got)
				}
				if came := h.elapsed() - began; came != 51*time.Millisecond {
					h.t.Errorf("they came back after %s, want the first back-off and a window", came)
				}
				for _, r := range got {
					b.Done(r)
				}
				h.finish(namespace, b)
				h.wait(time.Hour)
				h.idle()
			})
		})
	}
}

// TestSettlesOnce proves that only the first call counts.
func TestSettlesOnce(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		b := h.take(a1)
		b.Done(a1)
		b.Retry(a1)
		b.Again(a1, 0)
		b.Postpone(a1, 0)
		b.Hold(a1)
		b.Retry(a2) // is not of this batch
		h.finish("a", b)
		h.wait(time.Hour)
		h.idle()
	})
}

// TestSettlesConcurrently is for the race detector, and counts what comes back.
func TestSettlesConcurrently(t *testing.T) {
	const each = 100
	settles := []func(*batch.Batch, reconcile.Request){
		done, retry, again(time.Second), postpone(time.Second),
		func(b *batch.Batch, r reconcile.Request) { b.Hold(r) },
	}
	inBubble(t, batch.Options{Window: time.Second}, func(h *harness) {
		for i := range each * len(settles) {
			h.add(request("a", fmt.Sprint(i)))
		}
		namespace, b := h.next()
		var group sync.WaitGroup
		for i, r := range b.Requests() {
			for range 2 { // The second one is a no-op.
				group.Go(func() { settles[i%len(settles)](b, r) })
			}
			group.Go(func() { b.MoreWaiting() })
		}
		group.Wait()
		h.finish(namespace, b)

		seen := map[reconcile.Request]int{}
		for len(seen) < each*(len(settles)-1) {
			namespace, b := h.next()
			for _, r := range b.Requests() {
				seen[r]++
				b.Done(r)
			}
			h.finish(namespace, b)
		}
		h.wait(time.Hour)
		h.idle()
		for r, times := range seen {
			if times != 1 {
				h.t.Errorf("request %s came back %d times, want once", r, times)
			}
		}
	})
}

// TestSettlesAfterTheEnd proves that a batch that outlives the controller may be
// settled.
func TestSettlesAfterTheEnd(t *testing.T) {
	inBubble(t, batch.Options{Window: time.Second}, func(h *harness) {
		h.add(a1, a2, a3)
		left := h.take(a1, a2, a3)
		h.t.Cleanup(func() {
			synctest.Wait()
			left.Again(a1, time.Second)
			left.Postpone(a2, 0)
			left.Hold(a3)
			left.Close()
		})
	})
}

func byName(a, b reconcile.Request) int { return strings.Compare(a.String(), b.String()) }
