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

package batch

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Batch is a set of requests of one namespace that are worked on together. Each
// is settled once, by Done, Retry, Again, Postpone or Hold; Close retries the
// others, so that a reconciler that fails or panics loses nothing:
//
//	b := source.Take(namespace)
//	defer b.Close()
//
// Its methods may be called by several goroutines at once, except Close.
type Batch struct {
	source    *Source
	namespace string
	requests  []reconcile.Request
	onHold    bool
	fresh     bool

	mu        sync.Mutex
	unsettled map[reconcile.Request]struct{}
}

// Requests returns the requests of the batch, the oldest first. The caller must
// not change the slice.
func (b *Batch) Requests() []reconcile.Request { return b.requests }

// MoreWaiting reports whether further requests of the namespace are due by now.
// They make the next batch.
func (b *Batch) MoreWaiting() bool { return b.source.waitingIn(b.namespace) }

// Done settles a request that needs nothing more. Its back-off starts anew.
func (b *Batch) Done(request reconcile.Request) {
	if b.settle(request) {
		b.source.requests.Forget(request)
	}
}

// Retry settles a request that failed. It comes back after its own back-off.
func (b *Batch) Retry(request reconcile.Request) {
	if b.settle(request) {
		b.source.requests.AddRateLimited(request)
	}
}

// Again settles a request that did not fail but needs another look after the
// delay, or earlier if a source adds it. Its back-off starts anew.
func (b *Batch) Again(request reconcile.Request, delay time.Duration) {
	if b.settle(request) {
		b.source.requests.Forget(request)
		b.source.requests.AddAfter(request, delay)
	}
}

// Postpone settles a request whose turn has not come. It comes back after the
// delay, or earlier if a source adds it. Its back-off is left as it is.
func (b *Batch) Postpone(request reconcile.Request, delay time.Duration) {
	if b.settle(request) {
		b.source.requests.AddAfter(request, delay)
	}
}

// Hold settles requests that wait for the namespace's hold to end, together. Their
// back-off is left as it is.
func (b *Batch) Hold(requests ...reconcile.Request) {
	held := requests[:0:0]
	for _, request := range requests {
		if b.settle(request) {
			held = append(held, request)
		}
	}
	if len(held) > 0 {
		b.source.hold(b.namespace, held)
	}
}

// OnHold reports whether a hold of the namespace was in force when the batch was
// taken, so that requests to which it applies are to be held.
func (b *Batch) OnHold() bool { return b.onHold }

// StartHold starts a hold of the namespace, or replaces it. Held requests come
// back when it ends, all together. Other requests are not affected.
func (b *Batch) StartHold(times HoldTimes) {
	b.source.setHold(b.namespace, times)
}

// Fresh reports whether the batch's requests have not waited for company yet: they
// were not held, and came after everything that existed at the start had.
func (b *Batch) Fresh() bool { return b.fresh }

// Failures returns how often the request has been retried in a row.
func (b *Batch) Failures(request reconcile.Request) int {
	return b.source.requests.NumRequeues(request)
}

// Close ends the batch: requests that were not settled are retried.
func (b *Batch) Close() {
	for _, request := range b.requests {
		b.Retry(request)
	}
}

// settle reports whether the request is of this batch and was not yet settled.
func (b *Batch) settle(request reconcile.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.unsettled[request]; !ok {
		return false
	}
	delete(b.unsettled, request)
	return true
}
