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
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/batch"
)

var a1, a2, a3, b1 = request("a", "1"), request("a", "2"), request("a", "3"), request("b", "1")

func TestGroupsByNamespace(t *testing.T) {
	inBubble(t, batch.Options{Window: time.Second}, func(h *harness) {
		cluster := request("", "1")
		h.add(a1, b1, a2, cluster, a3)
		for range 3 {
			namespace, b := h.next()
			want := map[batch.Namespace][]reconcile.Request{"a": {a1, a2, a3}, "b": {b1}, "": {cluster}}[namespace]
			if got := b.Requests(); !slices.Equal(got, want) {
				h.t.Errorf("batch of %q has %v, want %v", namespace, got, want)
			}
			for _, r := range b.Requests() {
				b.Done(r)
			}
			h.finish(namespace, b)
		}
		h.wait(time.Hour)
		h.idle()
	})
}

func TestTakesTheOldestFirst(t *testing.T) {
	inBubble(t, batch.Options{Window: time.Second}, func(h *harness) {
		for _, r := range []reconcile.Request{a2, a3, a1, a3, a2} {
			h.add(r)
		}
		h.pass(done, a2, a3, a1)
	})
}

func TestCoalesces(t *testing.T) {
	inBubble(t, batch.Options{Window: time.Second}, func(h *harness) {
		for range 1000 {
			h.add(a1) // This waits: the queue of requests has nothing to coalesce.
		}
		h.pass(done, a1)
		h.wait(time.Hour)
		h.idle()
	})
}

// TestInFlight proves that what arrives while its namespace is worked on makes the
// next batch, once this one is done.
func TestInFlight(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		b := h.take(a1)
		if b.MoreWaiting() {
			h.t.Error("MoreWaiting() = true, but nothing has arrived")
		}
		h.add(a1, a2)
		h.idle() // The namespace is in flight.
		if !b.MoreWaiting() {
			h.t.Error("MoreWaiting() = false, but two requests have arrived")
		}
		if got := b.Requests(); !slices.Equal(got, []reconcile.Request{a1}) {
			h.t.Errorf("the batch in flight became %v", got)
		}

		h.add(b1) // Another namespace does not wait for this one.
		h.pass(done, b1)

		b.Done(a1)
		h.finish("a", b)
		h.pass(done, a1, a2)
		h.idle()
	})
}

func TestMaxSize(t *testing.T) {
	inBubble(t, batch.Options{Window: time.Second, MaxSize: 10}, func(h *harness) {
		var all []reconcile.Request
		for i := range 25 {
			all = append(all, request("a", fmt.Sprint(i)))
		}
		h.add(all...)

		b := h.take(all[:10]...)
		h.idle() // What is left over waits for this batch.
		if !b.MoreWaiting() {
			h.t.Error("MoreWaiting() = false, but 15 requests are left over")
		}
		for _, r := range b.Requests() {
			b.Done(r)
		}
		h.finish("a", b)

		second := h.take(all[10:20]...) // What is left over does not wait again …
		if came := h.elapsed(); came != time.Second {
			h.t.Errorf("the second batch came after %s, want 1s", came)
		}
		late := request("a", "late")
		h.add(late) // … unless others come.
		for _, r := range second.Requests() {
			second.Done(r)
		}
		h.finish("a", second)

		if came := h.pass(done, append(all[20:], late)...); came != 2*time.Second {
			h.t.Errorf("the last batch came after %s, want 2s, one window after the late request", came)
		}
		h.wait(time.Hour)
		h.idle()
	})
}

func TestExactlyMaxSizeLeavesNothing(t *testing.T) {
	inBubble(t, batch.Options{Window: time.Second, MaxSize: 2}, func(h *harness) {
		h.add(a1, a2)
		b := h.take(a1, a2)
		if b.MoreWaiting() {
			h.t.Error("MoreWaiting() = true, but the batch has all there was")
		}
		b.Done(a1)
		b.Done(a2)
		h.finish("a", b)
		h.wait(time.Hour)
		h.idle()
	})
}

// TestBatchesDoNotShareMemory proves that a batch is not changed by what comes
// after it.
func TestBatchesDoNotShareMemory(t *testing.T) {
	inBubble(t, batch.Options{Window: time.Second, MaxSize: 1}, func(h *harness) {
		h.add(a1, a2)
		first := h.take(a1)
		_ = append(first.Requests(), b1)
		h.add(a3)
		first.Done(a1)
		h.finish("a", first)
		h.pass(done, a2)
		h.pass(done, a3)
		if got := first.Requests(); !slices.Equal(got, []reconcile.Request{a1}) {
			h.t.Errorf("the first batch became %v", got)
		}
	})
}

func TestTakeWithoutRequests(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		b := h.Take("a")
		if got := b.Requests(); len(got) != 0 {
			h.t.Errorf("the batch has %v, want nothing", got)
		}
		if b.MoreWaiting() {
			h.t.Error("MoreWaiting() = true, want false")
		}
		b.Done(a1) // is not of this batch
		b.Retry(a1)
		b.Again(a1, 0)
		b.Postpone(a1, 0)
		b.Close()
		h.idle()
	})
}
