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
	"k8s.io/utils/clock"

	"pvc-protection-operator/internal/batch"
	"pvc-protection-operator/internal/metrics"
)

// maxEvidenceAge is how old a live list may be when a release that rests on it
// is sent. A batch is small enough to be written in a fraction of that, unless
// the process was paused or the API server became slow.
const maxEvidenceAge = 10 * time.Second

// freshness is the evidence that a write rests on: the live list that ended then.
// The zero value is for writes that rest on none.
type freshness struct {
	clock  clock.PassiveClock
	listed time.Time
}

func (f freshness) stale() bool {
	return f.clock != nil && f.clock.Since(f.listed) > maxEvidenceAge
}

// writeEach patches the claims' finalizers, several at once, and settles each
// claim. Once the context is done it starts no further patch, but finishes those
// in flight.
func (r *PersistentVolumeClaimReconciler) writeEach(
	ctx context.Context, b *batch.Batch, claims []*corev1.PersistentVolumeClaim,
	operation, key string, report func(*corev1.PersistentVolumeClaim), evidence freshness,
) error {
	var failed failures
	var group errgroup.Group
	group.SetLimit(r.Options.ConcurrentWrites)
	for _, claim := range claims {
		group.Go(func() error {
			err := r.writeOne(ctx, claim, operation, key, evidence)
			switch {
			case err == nil:
				report(claim)
				b.Done(requestFor(claim))
			case errors.Is(err, errSuperseded):
				r.reports.forget(requestFor(claim).NamespacedName)
				b.Done(requestFor(claim))
			case errors.Is(err, errStale):
				b.Postpone(requestFor(claim), 0)
			default:
				failed.add(fmt.Errorf("%s claim %s/%s: %w", operation, claim.Namespace, claim.Name, err))
				b.Retry(requestFor(claim))
			}
			return nil
		})
	}
	_ = group.Wait() // No error is returned above: each claim is settled by itself.
	return failed.err()
}

var errStale = errors.New("the evidence for the write is too old")

func (r *PersistentVolumeClaimReconciler) writeOne(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, operation, key string, evidence freshness,
) error {
	if err := r.writes.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.writes.Release(1)
	if evidence.stale() {
		return errStale
	}

	metrics.WritesInFlight.Inc()
	defer metrics.WritesInFlight.Dec()
	// A patch that was sent is waited for even if the manager stops.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	err := r.patchFinalizer(ctx, claim, key)
	metrics.Writes.WithLabelValues(operation, resultOf(err)).Inc()
	return err
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

func (f *failures) err() error {
	if f.count <= 1 {
		return f.first
	}
	return fmt.Errorf("%w (and %d more claims failed)", f.first, f.count-1)
}
