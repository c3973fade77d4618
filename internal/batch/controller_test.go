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
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/batch"
)

// ledger checks what a reconciler sees: one batch in flight a namespace, each
// request once in it, and in the end the last addition of every request.
type ledger struct {
	t      *testing.T
	source *batch.Source

	mu       sync.Mutex
	added    map[reconcile.Request]int
	seen     map[reconcile.Request]int
	inFlight map[batch.Namespace]bool
	together int // batches in flight now
	most     int // that were in flight together
}

func newLedger(t *testing.T) *ledger {
	return &ledger{
		t:     t,
		added: map[reconcile.Request]int{}, seen: map[reconcile.Request]int{}, inFlight: map[batch.Namespace]bool{},
	}
}

// add notes that the request is about to be added.
func (l *ledger) add(r reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.added[r]++
}

// begin notes a batch that was taken, and returns which additions it is for.
func (l *ledger) begin(namespace batch.Namespace, b *batch.Batch) map[reconcile.Request]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight[namespace] {
		l.t.Errorf("two batches of namespace %s are in flight", namespace)
	}
	l.inFlight[namespace] = true
	l.together++
	l.most = max(l.most, l.together)
	current := map[reconcile.Request]int{}
	for _, r := range b.Requests() {
		if r.Namespace != string(namespace) {
			l.t.Errorf("request %s is in a batch of namespace %s", r, namespace)
		}
		if _, twice := current[r]; twice {
			l.t.Errorf("request %s is twice in a batch", r)
		}
		current[r] = l.added[r]
	}
	return current
}

func (l *ledger) end(namespace batch.Namespace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[namespace] = false
	l.together--
}

// settled notes that the reconciler is done with the request as of that addition.
func (l *ledger) settled(r reconcile.Request, addition int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[r] = addition
}

// upToDate reports whether the last addition of the request is done.
func (l *ledger) upToDate(r reconcile.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[r] == l.added[r]
}

// check fails the test if an addition was lost.
func (l *ledger) check() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, want := range l.added {
		if got := l.seen[r]; got != want {
			l.t.Errorf("request %s was done for its addition %d, want %d, the last one", r, got, want)
		}
	}
}

// runController runs a real controller, with a real queue, of the source and the
// reconciler until the test has ended.
func runController(t *testing.T, name string, src *batch.Source, reconciler reconcile.TypedReconciler[batch.Namespace]) {
	t.Helper()
	c, err := controller.NewTypedUnmanaged(name, controller.TypedOptions[batch.Namespace]{
		Reconciler:              reconciler,
		MaxConcurrentReconciles: 4,
		RateLimiter:             batch.RateLimiter[batch.Namespace](),
		SkipNameValidation:      new(true),
		LogConstructor:          func(*batch.Namespace) logr.Logger { return logr.Discard() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(src); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller failed: %v", err)
		}
	})
	synctest.Wait()
}

// TestController drives the source by a real controller whose reconciler is slow,
// fails, panics and forgets requests, while requests keep coming.
func TestController(t *testing.T) {
	// What the library would log about the panics.
	handlers := utilruntime.PanicHandlers
	utilruntime.PanicHandlers = nil
	defer func() { utilruntime.PanicHandlers = handlers }()

	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				driveController(t, seed, batch.Options{
					Window:  time.Duration(seed%3) * 10 * time.Millisecond,
					MaxSize: int(seed%4) * 5,
				})
			})
		})
	}
}

func driveController(t *testing.T, seed uint64, options batch.Options) {
	var inner feed
	l := newLedger(t)
	l.source = batch.NewSource(options, &inner)
	u := &unreliable{ledger: l, random: rand.New(rand.NewPCG(seed, 1)), faulty: true}
	runController(t, "test", l.source, u)

	random := rand.New(rand.NewPCG(seed, 2))
	for range 500 {
		r := request(fmt.Sprint("ns-", random.IntN(6)), fmt.Sprint(random.IntN(10)))
		l.add(r)
		inner.add(r)
		if random.IntN(4) == 0 {
			<-time.After(time.Duration(random.IntN(20)) * time.Millisecond)
		}
	}
	<-time.After(time.Minute)
	u.heal()
	<-time.After(5 * time.Minute) // longer than the longest back-off

	l.check()
	if l.most < 2 {
		t.Error("no two namespaces were in flight together")
	}
}

// unreliable is a reconciler that does what reconcilers do, until it is healed.
type unreliable struct {
	*ledger

	mu     sync.Mutex
	random *rand.Rand
	faulty bool
}

func (u *unreliable) heal() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.faulty = false
}

// dice returns a number below n, or 0 once healed.
func (u *unreliable) dice(n int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.faulty {
		return 0
	}
	return u.random.IntN(n)
}

func (u *unreliable) Reconcile(_ context.Context, namespace batch.Namespace) (reconcile.Result, error) {
	b := u.source.Take(namespace)
	defer u.end(namespace)
	defer b.Close()
	current := u.begin(namespace, b)
	<-time.After(time.Duration(u.dice(30)) * time.Millisecond)

	for _, r := range b.Requests() {
		switch u.dice(9) {
		case 1:
			b.Retry(r)
		case 2:
			b.Again(r, 50*time.Millisecond)
		case 3:
			b.Postpone(r, 50*time.Millisecond)
		case 4:
			b.Hold(r)
		case 5:
			// left to Close
		case 6:
			if u.dice(5) == 1 {
				panic("in the middle of a batch")
			}
		default:
			u.settled(r, current[r])
			b.Done(r)
		}
	}
	if u.dice(3) == 1 {
		b.StartHold(batch.HoldTimes{
			Quiet: quiet,
			Least: time.Duration(u.dice(100)) * time.Millisecond,
			Most:  time.Duration(u.dice(500)) * time.Millisecond,
		})
	}
	if u.dice(5) == 1 {
		return reconcile.Result{}, errors.New("a failure")
	}
	return reconcile.Result{}, nil
}

// TestControllerKeepsNamespacesApart proves that a namespace whose reconciliation
// does not end holds up no other, and loses nothing.
func TestControllerKeepsNamespacesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner feed
		l := newLedger(t)
		l.source = batch.NewSource(batch.Options{Window: time.Millisecond}, &inner)
		release := make(chan struct{})
		runController(t, "test-apart", l.source, reconcile.TypedFunc[batch.Namespace](
			func(_ context.Context, namespace batch.Namespace) (reconcile.Result, error) {
				b := l.source.Take(namespace)
				defer l.end(namespace)
				defer b.Close()
				current := l.begin(namespace, b)
				if namespace == "a" {
					<-release
				}
				for _, r := range b.Requests() {
					l.settled(r, current[r])
					b.Done(r)
				}
				return reconcile.Result{}, nil
			}))
		add := func(r reconcile.Request) { l.add(r); inner.add(r) }
		add(a1)
		<-time.After(time.Second)
		for range 3 {
			add(a1)
			add(a2)
			add(b1)
			<-time.After(time.Second)
			if !l.upToDate(b1) {
				t.Error("namespace b waits for namespace a")
			}
			if l.upToDate(a1) {
				t.Error("the request that hangs is done")
			}
		}
		close(release)
		<-time.After(time.Second)
		l.check()
	})
}
