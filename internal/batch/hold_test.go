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
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/batch"
)

// quiet is how long no request must have come for a hold to end before its time.
const quiet = 150 * time.Millisecond

// startHold holds the requests, which must be those of the next batch.
func startHold(h *harness, least, most time.Duration, requests ...reconcile.Request) {
	h.t.Helper()
	b := h.take(requests...)
	b.StartHold(batch.HoldTimes{Quiet: quiet, Least: least, Most: most})
	b.Hold(requests...)
	h.finish(batch.Namespace(requests[0].Namespace), b)
}

// TestHoldOfFixedLength is what a failed list starts.
func TestHoldOfFixedLength(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		startHold(h, time.Second, time.Second, a1)
		h.wait(time.Second - 1)
		h.idle()
		b := h.take(a1)
		if came := h.elapsed(); came != time.Second {
			h.t.Errorf("the held request came back after %s, want 1s", came)
		}
		if b.OnHold() {
			h.t.Error("OnHold() = true, but the hold has ended")
		}
		b.Done(a1)
		h.finish("a", b)
		h.wait(time.Hour)
		h.idle()
	})
}

// TestHoldCollects proves that requests that come during a hold are handed out, so
// that only those to which it applies wait, and that all of these come back at once.
func TestHoldCollects(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		startHold(h, time.Second, time.Second, a1)
		h.wait(100 * time.Millisecond)
		h.add(a2, b1)
		for range 2 {
			namespace, b := h.next()
			if onHold := namespace == "a"; b.OnHold() != onHold {
				h.t.Errorf("OnHold() of namespace %s = %v, want %v", namespace, b.OnHold(), onHold)
			}
			if namespace == "a" {
				b.Hold(a2)
			} else {
				b.Done(b1)
			}
			h.finish(namespace, b)
		}
		h.wait(100 * time.Millisecond)
		h.add(a3)
		b := h.take(a3) // is not of the kind that is held
		b.Done(a3)
		h.finish("a", b)
		if came := h.pass(done, a1, a2); came != time.Second {
			h.t.Errorf("the held requests came back after %s, want 1s", came)
		}
	})
}

// TestHoldEndsWhenQuiet proves that a hold ends early once nothing has come for a
// moment, but not before its least time.
func TestHoldEndsWhenQuiet(t *testing.T) {
	tests := map[string]struct {
		least, most, want time.Duration
		arrivals          int // every 100 ms
	}{
		"its least time":        {time.Second, time.Minute, time.Second, 0},
		"and after least time":  {300 * time.Millisecond, time.Minute, 500*time.Millisecond + quiet, 5},
		"never quiet":           {110 * time.Millisecond, time.Second, time.Second, 50},
		"of no length":          {0, 0, 0, 0},
		"that has ended before": {-time.Second, -time.Millisecond, 0, 0},
		"most below least":      {time.Second, 0, time.Second, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, batch.Options{}, func(h *harness) {
				h.add(a1)
				startHold(h, test.least, test.most, a1)
				held := []reconcile.Request{a1}
				for i := range test.arrivals {
					h.wait(100 * time.Millisecond)
					if h.elapsed() == test.want {
						break
					}
					h.idle()
					r := request("a", fmt.Sprint("more-", i))
					h.add(r)
					b := h.take(r)
					b.Hold(r)
					h.finish("a", b)
					held = append(held, r)
				}
				if came := h.pass(done, held...); came != test.want {
					h.t.Errorf("the held requests came back after %s, want %s", came, test.want)
				}
				h.wait(time.Hour)
				h.idle()
			})
		})
	}
}

// TestHoldStartsQuiet proves that the quiet of a hold counts from its start.
func TestHoldStartsQuiet(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		startHold(h, 0, time.Minute, a1)
		if came := h.pass(done, a1); came != quiet {
			h.t.Errorf("the held request came back after %s, want %s", came, quiet)
		}
	})
}

// TestHoldOutlivesItsLeastTime proves that a hold that may end holds on until it is
// quiet, also for the first request that comes then. That is what a burst in a
// namespace with a fast list does.
func TestHoldOutlivesItsLeastTime(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		first := h.take(a1)
		h.add(a2)
		first.StartHold(batch.HoldTimes{Quiet: quiet, Most: time.Minute})
		first.Done(a1)
		h.finish("a", first)

		second := h.take(a2)
		if !second.OnHold() {
			h.t.Error("OnHold() = false, but a request has just come")
		}
		second.Hold(a2)
		h.finish("a", second)
		if came := h.pass(done, a2); came != quiet {
			h.t.Errorf("the held request came back after %s, want %s", came, quiet)
		}
	})
}

// TestHoldOutlivesOthers is the same, if another namespace's hold starts meanwhile.
func TestHoldOutlivesOthers(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		first := h.take(a1)
		first.StartHold(batch.HoldTimes{Quiet: quiet, Most: time.Minute})
		h.add(b1)
		other := h.take(b1)
		other.StartHold(batch.HoldTimes{Quiet: quiet, Most: time.Minute})
		first.Hold(a1)
		other.Hold(b1)
		h.finish("a", first)
		h.finish("b", other)
		h.idle()
		h.pass(done, a1)
		if came := h.pass(done, b1); came != quiet {
			h.t.Errorf("the held requests came back after %s, want %s", came, quiet)
		}
	})
}

// TestHeldAndWaiting proves that a held request that comes again is in the next
// batch once.
func TestHeldAndWaiting(t *testing.T) {
	inBubble(t, batch.Options{Window: time.Second}, func(h *harness) {
		h.add(a1)
		startHold(h, time.Second, time.Second, a1)
		h.wait(900 * time.Millisecond)
		h.add(a1) // Its window has not ended when the hold does.
		h.pass(done, a1)
		h.wait(time.Hour)
		h.idle()
	})
}

// TestHoldAndMaxSize proves that what was held comes in batches, too, all at once.
func TestHoldAndMaxSize(t *testing.T) {
	inBubble(t, batch.Options{MaxSize: 2}, func(h *harness) {
		h.add(a1, a2)
		startHold(h, time.Second, time.Second, a1, a2)
		h.add(a3)
		b := h.take(a3)
		b.Hold(a3)
		h.finish("a", b)
		h.pass(done, a1, a2)
		if came := h.pass(done, a3); came != time.Second {
			h.t.Errorf("the last held request came back after %s, want 1s", came)
		}
		h.wait(time.Hour)
		h.idle()
	})
}

// TestHoldIsReplaced proves that the last hold counts, for what is held already, too.
func TestHoldIsReplaced(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		startHold(h, time.Second, time.Second, a1)
		h.add(a2)
		startHold(h, 3*time.Second, 3*time.Second, a2)
		if came := h.pass(done, a1, a2); came != 3*time.Second {
			h.t.Errorf("the held requests came back after %s, want 3s", came)
		}
	})
}

// TestHoldWithoutAHold proves that a request that is held for nothing is not lost.
func TestHoldWithoutAHold(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		b := h.take(a1)
		if b.OnHold() {
			h.t.Error("OnHold() = true, but no hold was started")
		}
		b.Hold(a1)
		h.finish("a", b)
		if came := h.pass(done, a1); came != 0 {
			h.t.Errorf("the request came back after %s, want at once", came)
		}
	})
}

// TestFresh proves that only requests are fresh that came after the start, and were
// not held.
func TestFresh(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		take := func(want bool, r reconcile.Request) *batch.Batch {
			h.t.Helper()
			b := h.take(r)
			if b.Fresh() != want {
				h.t.Errorf("Fresh() = %v of %s, want %v", b.Fresh(), r, want)
			}
			return b
		}
		h.add(a1)
		before := take(false, a1)
		before.Done(a1)
		h.finish("a", before)
		h.add(a2)
		if err := h.WaitForSync(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
		h.wait(time.Nanosecond)
		atStart := take(false, a2)
		atStart.Done(a2)
		h.finish("a", atStart)

		h.add(a1)
		fresh := take(true, a1)
		fresh.StartHold(batch.HoldTimes{Least: time.Second})
		fresh.Hold(a1)
		h.finish("a", fresh)
		held := take(false, a1)
		held.Done(a1)
		h.finish("a", held)
		h.add(a2)
		again := take(true, a2)
		h.finish("a", again)
	})
}

// TestLeftOversAreNotFresh proves it of what a batch of held requests has no room for.
func TestLeftOversAreNotFresh(t *testing.T) {
	inBubble(t, batch.Options{MaxSize: 1}, func(h *harness) {
		if err := h.WaitForSync(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
		h.wait(time.Nanosecond)
		h.add(a1)
		startHold(h, time.Second, time.Second, a1)
		h.add(a2)
		b := h.take(a2)
		b.Hold(a2)
		h.finish("a", b)
		for _, r := range []reconcile.Request{a1, a2} {
			b := h.take(r)
			if b.Fresh() {
				h.t.Errorf("Fresh() = true of %s, which was held", r)
			}
			b.Done(r)
			h.finish("a", b)
		}
	})
}
