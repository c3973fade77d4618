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

// Package batch turns the requests of a controller's sources into batches, one
// namespace each, so that work which is done once per namespace (such as an
// uncached list) is done once for many objects.
//
// A Source contains other sources. Their handlers add reconcile.Requests as
// usual; the Source collects them by namespace and adds one Namespace to the
// controller's queue for each namespace with waiting requests. The reconciler
// calls Source.Take to get them and settles each one by itself:
//
//	sources, handlers ─► requests' queue ─► waiting, by namespace ─► controller's queue
//	                       ▲ back-off                                       │ Reconcile
//	                       └─── Batch.Retry, Again, Postpone, Hold, Close ◄┘ Take
//
// The controller's queue hands out a key once at a time, so a namespace has at
// most one batch in progress; requests that arrive meanwhile wait for the next.
package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Namespace is what a Source adds to its controller's queue: requests of this
// namespace are waiting. It is the request type of a controller that works in
// batches.
type Namespace string

// Options configure a Source.
type Options struct {
	// Name is the name of the queue of single requests, in metrics. An empty
	// name means no metrics.
	Name string

	// Window is how long no further request of a namespace must have come
	// before its batch starts. A request that comes alone waits for one
	// Window, and none waits for more than maxWindows of them. Defaults to 0,
	// which means not at all.
	Window time.Duration

	// MaxSize is the largest number of requests in a batch. What is left
	// over makes the next batch. Defaults to 0, which means no limit.
	MaxSize int

	// RateLimiter is the back-off of single requests that are retried.
	// Defaults to RateLimiter.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

// RateLimiter returns a back-off that is each item's own and stays below a
// minute: 50 milliseconds at first, doubled with each failure up to 30 seconds.
//
// It has no bucket that all items share, unlike client-go's default, under which
// thousands of items that fail together come back over many minutes.
func RateLimiter[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](50*time.Millisecond, 30*time.Second)
}

// Source is a source of namespaces with waiting requests. It contains the
// sources of the requests.
//
// Sources run for as long as the controller does, so what waits is bounded only
// once the controller has workers. Do not warm it up on a standby
// (controller.TypedOptions.EnableWarmup): warm the caches instead, and let the
// contained sources replay them when the controller starts.
//
// A Source serves one controller and is started once.
type Source struct {
	options Options
	sources []source.Source

	// requests is the queue of single requests: it holds their back-off and
	// delays. What is due is moved to waiting at once.
	requests workqueue.TypedRateLimitingInterface[reconcile.Request]
	// namespaces is the controller's queue.
	namespaces workqueue.TypedRateLimitingInterface[Namespace]

	mu sync.Mutex
	// synced is when the sources had added all that existed at the start.
	synced time.Time
	// groups has an entry for each namespace with requests that are due and in
	// no batch, or with a hold. Whenever requests appear in one, or are left
	// after Take, the namespace is added to the controller's queue.
	groups map[string]*group
	// sweepAt is how many groups there are when idle ones are dropped.
	sweepAt int
}

var _ source.TypedSyncingSource[Namespace] = &Source{}

// NewSource returns a Source of the requests of the given sources.
func NewSource(options Options, sources ...source.Source) *Source {
	if options.RateLimiter == nil {
		options.RateLimiter = RateLimiter[reconcile.Request]()
	}
	return &Source{options: options, sources: sources, groups: map[string]*group{}}
}

// Start implements source.TypedSource. It is called by the controller only, and
// does not block.
func (s *Source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Namespace]) error {
	if s.requests != nil {
		return errors.New("a batching source must not be started twice")
	}
	s.namespaces = queue
	s.requests = workqueue.NewTypedRateLimitingQueueWithConfig(s.options.RateLimiter,
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: s.options.Name})
	context.AfterFunc(ctx, s.requests.ShutDown)
	go s.collect()

	for _, src := range s.sources {
		if err := src.Start(ctx, s.requests); err != nil {
			return fmt.Errorf("starting %v: %w", src, err)
		}
	}
	return nil
}

// WaitForSync implements source.TypedSyncingSource. It returns when all sources
// that can be waited for have synced.
func (s *Source) WaitForSync(ctx context.Context) error {
	for _, src := range s.sources {
		if syncing, ok := src.(source.SyncingSource); ok {
			if err := syncing.WaitForSync(ctx); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = time.Now()
	return nil
}

// String implements fmt.Stringer, for the controller's messages.
func (s *Source) String() string {
	return fmt.Sprintf("namespace batches of %v", s.sources)
}

// Take starts a batch of the namespace's waiting requests, the oldest first, at
// most Options.MaxSize. The batch is empty, which is not an error, if none waits
// or others are still coming; the namespace is then added again in time.
//
// The caller must close the batch.
func (s *Source) Take(namespace Namespace) *Batch {
	b := &Batch{source: s, namespace: string(namespace), unsettled: map[reconcile.Request]struct{}{}}

	s.mu.Lock()
	g := s.groups[b.namespace]
	if g == nil {
		s.mu.Unlock()
		return b
	}
	now := time.Now()
	b.onHold = now.Before(g.holdEnds())
	b.fresh = !s.synced.IsZero() && g.first.After(s.synced)
	var held bool
	if b.requests, held = g.take(now, s.options.Window, s.options.MaxSize); held {
		b.fresh = false
	}
	next, more := g.nextBatch(s.options.Window)
	if g.idle(now) {
		delete(s.groups, b.namespace)
	}
	s.mu.Unlock()

	if more {
		s.namespaces.AddAfter(namespace, next.Sub(now))
	}
	for _, request := range b.requests {
		b.unsettled[request] = struct{}{}
	}
	return b
}

// collect moves the requests that are due to waiting, until the queue of single
// requests is shut down.
func (s *Source) collect() {
	for {
		request, shutdown := s.requests.Get()
		if shutdown {
			return
		}
		s.add(request)
		s.requests.Done(request)
	}
}

func (s *Source) add(request reconcile.Request) {
	s.mu.Lock()
	g := s.group(request.Namespace)
	first := g.waiting.len() == 0
	g.add(request, time.Now())
	s.mu.Unlock()

	// If others are waiting, the namespace is in the controller's queue already.
	if first {
		s.namespaces.AddAfter(Namespace(request.Namespace), s.options.Window)
	}
}

// hold adds requests to those that the namespace holds.
func (s *Source) hold(namespace string, requests []reconcile.Request) {
	s.mu.Lock()
	g := s.group(namespace)
	for _, request := range requests {
		g.held.add(request)
	}
	delay := time.Until(g.holdEnds())
	s.mu.Unlock()

	s.namespaces.AddAfter(Namespace(namespace), delay)
}

// setHold starts a hold of the namespace.
func (s *Source) setHold(namespace string, times HoldTimes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	// Holds that ended without requests are dropped here now and then, so that
	// groups is bounded by the namespaces with requests or a hold in force.
	if len(s.groups) >= s.sweepAt {
		maps.DeleteFunc(s.groups, func(_ string, g *group) bool { return g.idle(now) })
		s.sweepAt = 2*len(s.groups) + 1
	}
	g := s.group(namespace)
	if g.last.IsZero() {
		g.last = now // The last request came in this batch.
	}
	g.holdLeast, g.holdMost = now.Add(times.Least), now.Add(max(times.Least, times.Most))
	g.holdQuiet = times.Quiet
}

// group returns the group of the namespace. The caller must hold the lock.
func (s *Source) group(namespace string) *group {
	g := s.groups[namespace]
	if g == nil {
		g = &group{}
		s.groups[namespace] = g
	}
	return g
}

func (s *Source) waitingIn(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[namespace]
	return g != nil && g.waiting.len() > 0
}
