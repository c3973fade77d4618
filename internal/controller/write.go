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
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"pvc-protection-operator/internal/batch"
	"pvc-protection-operator/internal/metrics"
)

// writeWindow is how long after the live list that they rest on the writes of a
// batch may start. It also bounds how long a batch whose writes hang, for
// instance in an admission webhook of its namespace, keeps others from their turn.
const writeWindow = 10 * time.Second

// errLate says that a write did not start within the writeWindow.
var errLate = errors.New("the evidence for the write is too old")

// write is what is done to the claims of a batch.
type write struct {
	// operation is what the metrics call it, failing what events do.
	operation, failing string
	// patchKey is addFinalizers or removeFinalizers.
	patchKey string
	// since is when the evidence was complete, or the batch was read.
	since time.Time
	// report tells of a write that succeeded.
	report func(context.Context, *corev1.PersistentVolumeClaim)
}

// writeEach patches the claims' finalizers, several at once, and settles each
// claim. What does not start within the writeWindow makes the next batch. Once
// the context is done no further patch starts, but those in flight are finished.
func (r *PersistentVolumeClaimReconciler) writeEach(
	ctx context.Context, b *batch.Batch, claims []*corev1.PersistentVolumeClaim, w write,
) error {
	var failed failures
	var group errgroup.Group
	group.SetLimit(r.Options.ConcurrentWrites)
	for _, claim := range claims {
		group.Go(func() error {
			defer failed.recover(ctx)
			switch err := r.writeOne(ctx, claim, w); {
			case err == nil:
				w.report(ctx, claim)
				b.Done(requestFor(claim))
			case errors.Is(err, errSuperseded):
				// The cache will know soon. Should it not, something in between has
				// only said so.
				r.dismiss(ctx, b, requestFor(claim))
				b.Again(requestFor(claim), r.recheckIn(claim.Namespace))
			case errors.Is(err, errLate):
				b.Postpone(requestFor(claim), 0)
			default:
				failed.add(fmt.Errorf("%s claim %s/%s: %w", w.operation, claim.Namespace, claim.Name, err))
				b.Retry(requestFor(claim))
				r.reportFailing(claim, b.Failures(requestFor(claim)), w.failing, err)
			}
			return nil
		})
	}
	_ = group.Wait() // No error is returned above: each claim is settled by itself.
	return failed.err()
}

func (r *PersistentVolumeClaimReconciler) writeOne(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, w write,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.late(w.since) {
		return errLate
	}
	metrics.WritesInFlight.Inc()
	defer metrics.WritesInFlight.Dec()
	// A patch that was sent is waited for even if the manager stops.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	err := r.patchFinalizer(ctx, claim, w.patchKey)
	metrics.Writes.WithLabelValues(w.operation, resultOf(err)).Inc()
	return err
}

// late reports whether the writeWindow is over, by either clock: the monotonic one
// stands still while a machine is suspended, the other one can be set back.
func (r *PersistentVolumeClaimReconciler) late(since time.Time) bool {
	now := r.Clock.Now()
	return now.Sub(since) > writeWindow || now.Round(0).Sub(since.Round(0)) > writeWindow
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return metrics.Success
	case errors.Is(err, errSuperseded):
		return metrics.Superseded
	default:
		return metrics.Failure
	}
}

// failures collects the errors of single claims into one that stays readable
// however many there are. The zero value is ready to use, by several goroutines.
type failures struct {
	mu    sync.Mutex
	count int
	first error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count++; f.first == nil {
		f.first = err
	}
}

// recover turns a panic of the goroutine that defers it into a failure: only the
// goroutine that calls Reconcile is guarded by the controller.
func (f *failures) recover(ctx context.Context) {
	if p := recover(); p != nil {
		for _, handle := range utilruntime.PanicHandlers {
			handle(ctx, p)
		}
		f.add(fmt.Errorf("panic: %v [recovered]", p))
	}
}

func (f *failures) err() error {
	if f.count <= 1 {
		return f.first
	}
	return fmt.Errorf("%w (and %d more claims failed)", f.first, f.count-1)
}
