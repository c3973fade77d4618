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
	"fmt"
	"hash/fnv"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"pvc-protection-operator/internal/metrics"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// EventController is the reporting controller of the events.
const EventController = "pvc-protection-operator"

const (
	// eventsPerSecond and eventBurst bound the events of all claims together.
	eventsPerSecond = 50
	eventBurst      = 100
	// optionalPerSecond and optionalBurst bound those that nobody waits for. They
	// must not slow down the releases that they tell of.
	optionalPerSecond = 5
	optionalBurst     = 25
	// maxWaitingEvents is how many statements may wait.
	maxWaitingEvents = 20_000
	// An event is tried maxEventTries times, eventRetry apart.
	maxEventTries = 5
	eventRetry    = 10 * time.Second
	eventTimeout  = 10 * time.Second
)

// statement is what is to be said about a claim in an event.
type statement struct {
	claim                           *corev1.PersistentVolumeClaim
	pod                             *corev1.ObjectReference
	eventType, reason, action, note string

	// facts are what the statement rests on. Another process that finds the same
	// facts, as the next leader does, says them by the same event.
	facts string
	// lasting facts are said again later if they could not be said now.
	lasting bool
	// again says them although they may have been said before.
	again bool
	// optional statements are dropped when there are many of them.
	optional bool

	tries int
}

// announcer writes events about claims. It is a controller of its own: what is to
// be said about a claim waits in its queue, and only the latest, so that events
// neither hold up the releases nor tell of what is over.
//
// client-go's recorder does not fit: its key of an event leaves out the note, so
// that a claim's next holders would only count as the first ones again; it drops
// what exceeds its queue; and after each failover it says everything once more.
type announcer struct {
	client   client.Writer
	clock    clock.PassiveClock
	instance string
	limiter  flowcontrol.RateLimiter
	optional flowcontrol.RateLimiter
	// refusals is the pace of log lines about events that are not allowed.
	refusals flowcontrol.RateLimiter
	// unsay is told of blocked claims whose event was given up.
	unsay func(*corev1.PersistentVolumeClaim)

	mu      sync.Mutex
	pending map[types.NamespacedName]statement
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newAnnouncer(
	c client.Writer, clk clock.PassiveClock, unsay func(*corev1.PersistentVolumeClaim),
) *announcer {
	instance, err := os.Hostname()
	if err != nil {
		instance = "unknown"
	}
	return &announcer{
		client:   c,
		clock:    clk,
		unsay:    unsay,
		instance: instance,
		limiter:  flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventBurst),
		optional: flowcontrol.NewTokenBucketRateLimiter(optionalPerSecond, optionalBurst),
		refusals: newRefusals(),
		pending:  map[types.NamespacedName]statement{},
	}
}

// newRefusals returns the pace of log lines about what is refused again and again.
func newRefusals() flowcontrol.RateLimiter { return flowcontrol.NewTokenBucketRateLimiter(1.0/600, 1) }

// SetupWithManager adds the controller of events to the manager.
func (a *announcer) SetupWithManager(mgr ctrl.Manager) error {
	c, err := controller.New(controllerName+"-events", mgr, controller.Options{
		Reconciler:              a,
		MaxConcurrentReconciles: 16, // so that the rate is not bounded by the answers' time
	})
	if err != nil {
		return fmt.Errorf("creating the controller of events: %w", err)
	}
	return c.Watch(a)
}

var _ source.Source = &announcer{}

// String implements fmt.Stringer, for the controller's messages.
func (a *announcer) String() string { return "what is to be said about claims" }

// Start implements source.Source. It takes over the controller's queue, and adds
// what was said before.
func (a *announcer) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = queue
	for claim := range a.pending {
		queue.Add(reconcile.Request{NamespacedName: claim})
	}
	return nil
}

// say has the statement written soon, in place of what was to be said about the
// claim before. It does not block.
func (a *announcer) say(s statement) {
	request := requestFor(s.claim)
	a.mu.Lock()
	defer a.mu.Unlock()
	_, waits := a.pending[request.NamespacedName]
	if !waits && (len(a.pending) >= maxWaitingEvents || s.optional && !a.optional.TryAccept()) {
		a.giveUp(s, metrics.Dropped)
		return
	}
	a.pending[request.NamespacedName] = s
	if a.queue != nil {
		a.queue.Add(request)
	}
}

// forget drops what is to be said about a claim that is gone.
func (a *announcer) forget(claim types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pending, claim)
}

func (a *announcer) giveUp(s statement, result string) {
	metrics.Events.WithLabelValues(result).Inc()
	if s.lasting {
		a.unsay(s.claim)
	}
}

// Reconcile writes the event about one claim.
func (a *announcer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if a.limiter.Wait(ctx) != nil {
		return reconcile.Result{}, nil // The manager stops.
	}
	s, ok := a.take(request.NamespacedName)
	if !ok {
		return reconcile.Result{}, nil
	}
	err := a.write(ctx, s)
	switch {
	case err == nil:
		metrics.Events.WithLabelValues(metrics.Success).Inc()
	case apierrors.IsAlreadyExists(err):
		// The former leader has said it.
		metrics.Events.WithLabelValues(metrics.Superseded).Inc()
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The namespace is going, and so will its events.
		metrics.Events.WithLabelValues(metrics.Dropped).Inc()
	case s.tries+1 < maxEventTries && !refusedForGood(err):
		s.tries++
		a.putBack(s)
		return reconcile.Result{RequeueAfter: eventRetry}, nil
	default:
		a.giveUp(s, metrics.Failure)
		if a.refusals.TryAccept() {
			log.FromContext(ctx).Error(err, "Events cannot be written; for a while, further failures are only counted")
		}
	}
	return reconcile.Result{}, nil
}

// refusedForGood reports whether the API server has understood the request, and does
// not want it: the same request once more would not help.
func refusedForGood(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

func (a *announcer) take(claim types.NamespacedName) (statement, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.pending[claim]
	delete(a.pending, claim)
	return s, ok
}

// putBack has the statement tried again unless there is a newer one.
func (a *announcer) putBack(s statement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	claim := requestFor(s.claim).NamespacedName
	if _, newer := a.pending[claim]; !newer {
		a.pending[claim] = s
	}
}

func (a *announcer) write(ctx context.Context, s statement) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	now := a.clock.Now()
	id := fnv.New64a()
	_, _ = fmt.Fprint(id, s.claim.UID, s.reason, s.facts) // never fails
	err := a.client.Create(ctx, a.event(s, id.Sum64(), now))
	if apierrors.IsAlreadyExists(err) && s.again {
		err = a.client.Create(ctx, a.event(s, uint64(now.UnixNano()), now))
	}
	return err
}

func (a *announcer) event(s statement, id uint64, now time.Time) *eventsv1.Event {
	// As client-go's recorder names them, if that is not too long.
	name := fmt.Sprintf("%s.%x", s.claim.Name, id)
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		name = fmt.Sprintf("%s.%x", s.claim.UID, id)
	}
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: s.claim.Namespace, Name: name},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: EventController,
		ReportingInstance:   a.instance,
		Action:              s.action,
		Reason:              s.reason,
		Regarding: corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: s.claim.Namespace, Name: s.claim.Name,
			UID: s.claim.UID, ResourceVersion: s.claim.ResourceVersion,
		},
		Related: s.pod,
		Note:    s.note,
		Type:    s.eventType,
	}
}
