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
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"pvc-protection-operator/internal/batch"
)

// syncing is a source that can be waited for.
type syncing struct {
	feed
	synced <-chan struct{}
	err    error
}

func (s *syncing) WaitForSync(ctx context.Context) error {
	select {
	case <-s.synced:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// broken is a source that does not start.
type broken struct{ err error }

func (b broken) Start(context.Context, requestQueue) error { return b.err }
func (b broken) String() string                            { return "the broken source" }

func newQueue(t *testing.T) namespaceQueue {
	queue := workqueue.NewTypedRateLimitingQueue(batch.RateLimiter[batch.Namespace]())
	t.Cleanup(queue.ShutDown)
	return queue
}

// TestStops proves that nothing is left once the context is done: the bubble would
// say so. The controller's queue is not the source's to shut down.
func TestStops(t *testing.T) {
	for name, options := range map[string]batch.Options{
		"at once":      {},
		"in a window":  {Window: time.Hour},
		"with metrics": {Name: "test-stops", Window: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue := newQueue(t)
				var inner feed
				s := batch.NewSource(options, &inner)
				ctx, cancel := context.WithCancel(t.Context())
				if err := s.Start(ctx, queue); err != nil {
					t.Fatalf("Start() failed: %v", err)
				}
				inner.add(a1, a2)
				inner.queue.AddAfter(a3, time.Minute)
				inner.queue.AddRateLimited(b1)
				<-time.After(10 * time.Millisecond)
				cancel()
				synctest.Wait()

				if !inner.queue.ShuttingDown() {
					t.Error("the queue of requests was not shut down")
				}
				if queue.ShuttingDown() {
					t.Error("the controller's queue was shut down")
				}
				waiting := queue.Len()
				inner.add(a1, a3, b1)
				<-time.After(50 * time.Millisecond)
				if got := queue.Len(); got != waiting {
					t.Errorf("%d namespaces are in the controller's queue, want %d as before", got, waiting)
				}
			})
		})
	}
}

func TestStartDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // before it has started
		if err := batch.NewSource(batch.Options{}, &feed{}).Start(ctx, newQueue(t)); err != nil {
			t.Errorf("Start() failed: %v", err)
		}
	})
}

func TestStartTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := batch.NewSource(batch.Options{}, &feed{})
		if err := s.Start(t.Context(), newQueue(t)); err != nil {
			t.Fatalf("Start() failed: %v", err)
		}
		if err := s.Start(t.Context(), newQueue(t)); err == nil {
			t.Error("a second Start() did not fail")
		}
	})
}

func TestStartFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("no such kind")
		s := batch.NewSource(batch.Options{}, &feed{}, broken{cause}, &feed{})
		err := s.Start(t.Context(), newQueue(t))
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "the broken source") {
			t.Errorf("Start() = %v, want an error that names the source and wraps %q", err, cause)
		}
	})
}

func TestWaitForSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, never := make(chan struct{}), make(chan struct{})
		ready := make(chan struct{})
		close(ready)
		cause := errors.New("no connection")
		time.AfterFunc(time.Minute, func() { close(slow) })

		tests := []struct {
			name    string
			sources []source.Source
			want    error
			took    time.Duration
		}{
			{"no sources", nil, nil, 0},
			{"a source that cannot be waited for", []source.Source{&feed{}}, nil, 0},
			{"a source that has synced", []source.Source{&syncing{synced: ready}}, nil, 0},
			{"a source that fails", []source.Source{&syncing{synced: ready}, &syncing{synced: ready, err: cause}}, cause, 0},
			{"a slow source", []source.Source{&syncing{synced: slow}, &feed{}}, nil, time.Minute},
			{"a source that never syncs", []source.Source{&feed{}, &syncing{synced: never}}, context.DeadlineExceeded, time.Hour},
		}
		for _, test := range tests {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			began := time.Now()
			err := batch.NewSource(batch.Options{}, test.sources...).WaitForSync(ctx)
			cancel()
			if !errors.Is(err, test.want) {
				t.Errorf("%s: WaitForSync() = %v, want %v", test.name, err, test.want)
			}
			if took := time.Since(began); took != test.took {
				t.Errorf("%s: WaitForSync() took %s, want %s", test.name, took, test.took)
			}
		}
	})
}

func TestString(t *testing.T) {
	s := batch.NewSource(batch.Options{}, &feed{}, broken{})
	if got, want := s.String(), "namespace batches of [feed the broken source]"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

// TestOwnRateLimiter proves that the option is used.
func TestOwnRateLimiter(t *testing.T) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Minute, time.Minute)
	inBubble(t, batch.Options{RateLimiter: limiter}, func(h *harness) {
		h.add(a1)
		h.pass(retry, a1)
		if came := h.pass(done, a1); came != time.Minute {
			h.t.Errorf("the request came back after %s, want 1m", came)
		}
	})
}
