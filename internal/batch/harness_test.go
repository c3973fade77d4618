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
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/batch"
)

type (
	requestQueue   = workqueue.TypedRateLimitingInterface[reconcile.Request]
	namespaceQueue = workqueue.TypedRateLimitingInterface[batch.Namespace]
)

// feed is a source that adds what the test says.
type feed struct{ queue requestQueue }

func (f *feed) Start(_ context.Context, queue requestQueue) error {
	f.queue = queue
	return nil
}

func (f *feed) String() string { return "feed" }

func (f *feed) add(requests ...reconcile.Request) {
	for _, request := range requests {
		f.queue.Add(request)
	}
}

// harness is a started Source, what feeds it, and a worker of its controller.
type harness struct {
	*batch.Source

	t     *testing.T
	feed  feed
	began time.Time
	outer namespaceQueue
	// got is what the worker that waits for a namespace gets; nil if none waits.
	got chan batch.Namespace
	// calls counts the reconciliations.
	calls int
}

// inBubble runs the test once for each kind of queue that a controller may have,
// with virtual time. The bubble fails the test if it leaves a goroutine behind.
func inBubble(t *testing.T, options batch.Options, test func(h *harness)) {
	t.Helper()
	for name, newQueue := range map[string]func() namespaceQueue{
		"workqueue": func() namespaceQueue {
			return workqueue.NewTypedRateLimitingQueue(batch.RateLimiter[batch.Namespace]())
		},
		"priorityqueue": func() namespaceQueue {
			return priorityqueue.New("test", func(o *priorityqueue.Opts[batch.Namespace]) {
				o.RateLimiter = batch.RateLimiter[batch.Namespace]()
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &harness{t: t, began: time.Now(), outer: newQueue()}
				h.Source = batch.NewSource(options, &h.feed)
				ctx, cancel := context.WithCancel(t.Context())
				if err := h.Start(ctx, h.outer); err != nil {
					t.Fatalf("Start() failed: %v", err)
				}
				defer func() {
					cancel()
					h.outer.ShutDown() // as the controller does
				}()
				test(h)
			})
		})
	}
}

// add adds the requests and waits until they are in their groups.
func (h *harness) add(requests ...reconcile.Request) {
	h.feed.add(requests...)
	synctest.Wait()
}

// elapsed returns how long the test has run, in the bubble's time.
func (h *harness) elapsed() time.Duration { return time.Since(h.began) }

// wait lets the time pass.
func (h *harness) wait(d time.Duration) { <-time.After(d) }

// work has a worker ask the queue for a namespace, unless one does already.
func (h *harness) work() {
	if h.got != nil {
		return
	}
	got := make(chan batch.Namespace, 1)
	h.got = got
	go func() {
		if namespace, shutdown := h.outer.Get(); !shutdown {
			got <- namespace
		}
	}()
}

// next returns the next batch with requests, and its namespace, as the controller's
// worker would see it. The test must call finish for it.
func (h *harness) next() (batch.Namespace, *batch.Batch) {
	h.t.Helper()
	timeout := time.After(time.Hour)
	for {
		h.work()
		select {
		case namespace := <-h.got:
			if b := h.taken(namespace); b != nil {
				return namespace, b
			}
		case <-timeout:
			h.t.Fatal("no batch came within an hour")
		}
	}
}

// idle fails the test if there is a batch with requests now.
func (h *harness) idle() {
	h.t.Helper()
	for {
		h.work()
		synctest.Wait()
		select {
		case namespace := <-h.got:
			if b := h.taken(namespace); b != nil {
				h.t.Fatalf("batch of %q with %v came after %s, want none by now", namespace, b.Requests(), h.elapsed())
			}
		default:
			return
		}
	}
}

// taken takes the batch of the namespace that a worker got. It ends empty ones.
func (h *harness) taken(namespace batch.Namespace) *batch.Batch {
	h.got = nil
	h.calls++
	b := h.Take(namespace)
	if len(b.Requests()) == 0 {
		h.finish(namespace, b)
		return nil
	}
	return b
}

// take takes the next batch, and checks its requests.
func (h *harness) take(want ...reconcile.Request) *batch.Batch {
	h.t.Helper()
	namespace, b := h.next()
	if got := b.Requests(); !slices.Equal(got, want) {
		h.t.Fatalf("batch of %q has %v, want %v", namespace, got, want)
	}
	return b
}

// finish closes the batch and ends the reconciliation of its namespace, as the
// controller does.
func (h *harness) finish(namespace batch.Namespace, b *batch.Batch) {
	b.Close()
	h.outer.Forget(namespace)
	h.outer.Done(namespace)
}

// pass takes the next batch, checks it, settles all of it and returns when it came.
func (h *harness) pass(settle func(*batch.Batch, reconcile.Request), want ...reconcile.Request) time.Duration {
	h.t.Helper()
	b := h.take(want...)
	came := h.elapsed()
	for _, r := range b.Requests() {
		settle(b, r)
	}
	h.finish(batch.Namespace(want[0].Namespace), b)
	return came
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Ways to settle a request, for pass.
var (
	done  = (*batch.Batch).Done
	retry = (*batch.Batch).Retry
)

func again(delay time.Duration) func(*batch.Batch, reconcile.Request) {
	return func(b *batch.Batch, r reconcile.Request) { b.Again(r, delay) }
}

func postpone(delay time.Duration) func(*batch.Batch, reconcile.Request) {
	return func(b *batch.Batch, r reconcile.Request) { b.Postpone(r, delay) }
}
