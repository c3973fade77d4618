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

const window = 100 * time.Millisecond

func TestWindowOfOne(t *testing.T) {
	inBubble(t, batch.Options{Window: window}, func(h *harness) {
		h.add(a1)
		h.wait(window - 1)
		h.idle()
		if came := h.pass(done, a1); came != window {
			h.t.Errorf("the batch came after %s, want %s", came, window)
		}
		h.wait(time.Second)
		h.add(a2) // starts a window of its own
		if came := h.pass(done, a2); came != window+time.Second+window {
			h.t.Errorf("the second batch came after %s, want 1.2s", came)
		}
		h.idle()
	})
}

// TestWindowWaitsForQuiet proves that a batch starts when no further request came
// for a window.
func TestWindowWaitsForQuiet(t *testing.T) {
	inBubble(t, batch.Options{Window: window}, func(h *harness) {
		h.add(a1)
		h.wait(60 * time.Millisecond)
		h.add(a2)
		h.wait(60 * time.Millisecond)
		h.add(a1) // A request that waits already counts, too.
		h.wait(window - 1)
		h.idle()
		if came := h.pass(done, a1, a2); came != 220*time.Millisecond {
			h.t.Errorf("the batch came after %s, want 220ms", came)
		}
		h.wait(time.Hour)
		h.idle()
	})
}

// TestWindowEnds proves that a request waits for 20 windows at most while others
// keep coming, and that the waiting costs a call of the reconciler a window.
func TestWindowEnds(t *testing.T) {
	inBubble(t, batch.Options{Window: window}, func(h *harness) {
		var want []reconcile.Request
		for i := range 40 { // 2 s
			r := request("a", fmt.Sprint(i))
			want = append(want, r)
			h.add(r)
			if i == 39 {
				break
			}
			h.idle()
			h.wait(window / 2)
		}
		if came := h.pass(done, want...); came != 20*window {
			h.t.Errorf("the batch came after %s, want 2s", came)
		}
		if h.calls > 41 {
			h.t.Errorf("the reconciler was called %d times in 20 windows", h.calls)
		}
	})
}

// TestWindowIsEachNamespacesOwn proves that a busy namespace delays no other.
func TestWindowIsEachNamespacesOwn(t *testing.T) {
	inBubble(t, batch.Options{Window: window}, func(h *harness) {
		h.add(a1)
		h.wait(window / 2)
		h.add(b1)
		if came := h.pass(done, a1); came != window {
			h.t.Errorf("the batch of a came after %s, want 100ms", came)
		}
		if came := h.pass(done, b1); came != window+window/2 {
			h.t.Errorf("the batch of b came after %s, want 150ms", came)
		}
	})
}

func TestNoWindow(t *testing.T) {
	inBubble(t, batch.Options{}, func(h *harness) {
		h.add(a1)
		if came := h.pass(done, a1); came != 0 {
			h.t.Errorf("the batch came after %s, want at once", came)
		}
	})
}
