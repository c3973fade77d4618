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
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"pvc-protection-operator/internal/batch"
	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

const testFinalizer = "example.com/protection"

// world is a reconciler and all that it sees: a cache and an API server (a fake
// client: what is in it is in the cache at once), live lists of pods, and a worker
// that calls Reconcile as a controller does.
//
// It runs in a synctest bubble, so that time is virtual for the reconciler's clock
// and the batching source alike.
type world struct {
	*PersistentVolumeClaimReconciler

	t      *testing.T
	ctx    context.Context
	cancel context.CancelFunc
	server client.WithWatch
	feed   workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu sync.Mutex
	// What a test may set (see set): the pages of every live list, and hooks that
	// run before the calls that they are named after. A hook's error is the call's.
	pages                     [][]corev1.Pod
	onRead, onLookUp, onPatch func(ctx context.Context, claim string) error
	onList                    func(ctx context.Context, page int) error
	onListIn                  func(namespace string) error
	onEvent                   func(*eventsv1.Event) error
	onLog                     func()
	// What the reconciler did.
	calls    []string // in order
	lists    []*client.ListOptions
	errs     []error
	backOffs map[reconcile.Request]int
	events   []recordedEvent
	cached   []handedOut
}

type recordedEvent struct{ claim, pod, kind, reason, action, note string }

// handedOut is an object of the cache, and what it was when it was handed out.
type handedOut struct{ shared, original client.Object }

// inWorld runs the test in a world with the objects.
func inWorld(t *testing.T, test func(*world), objects ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, backOffs: map[reconcile.Request]int{}}
		ctx, cancel := context.WithCancel(log.IntoContext(t.Context(), funcr.New(w.log, funcr.Options{})))
		w.ctx, w.cancel = ctx, cancel
		w.server = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).
			WithIndex(&corev1.Pod{}, usage.PodClaimIndex, usage.IndexPodByClaim).Build()
		w.PersistentVolumeClaimReconciler = &PersistentVolumeClaimReconciler{
			Client:    interceptor.NewClient(w.server, interceptor.Funcs{Get: w.get, List: w.lookUp, Patch: w.patch}),
			APIReader: interceptor.NewClient(w.server, interceptor.Funcs{List: w.list}),
			Options: Options{
				Finalizer: testFinalizer, MaxBatchSize: 100, ConcurrentNamespaces: 1, ConcurrentWrites: 4,
				BatchWindow: 10 * time.Millisecond, RecheckInterval: time.Minute,
			},
			Clock: clock.RealClock{},
		}
		w.announcer = newAnnouncer(interceptor.NewClient(w.server, interceptor.Funcs{Create: w.create}), w.Clock,
			w.reports.unsay)
		w.crowd = newCrowd()
		w.failedLists = batch.RateLimiter[string]()
		w.batches = batch.NewSource(
			batch.Options{Window: w.Options.BatchWindow, MaxSize: w.Options.MaxBatchSize, RateLimiter: w.limiter()},
			source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
				w.feed = q
				return nil
			}))
		w.work()
		test(w)
		w.cancel()
		synctest.Wait()
		w.checkCache()
		w.forgetAll() // The metrics outlive the world.
	})
}

// work starts a worker of each controller.
func (w *world) work() {
	startWorker(w, w.announcer.Start, func(request reconcile.Request) (time.Duration, error) {
		result, err := w.announcer.Reconcile(w.ctx, request)
		if errors.Is(err, reconcile.TerminalError(nil)) {
			err = nil
		}
		return result.RequeueAfter, err
	})
	startWorker(w, w.batches.Start, func(namespace batch.Namespace) (time.Duration, error) { return 0, w.call(namespace) })
	if err := w.batches.WaitForSync(w.ctx); err != nil {
		w.t.Fatalf("waiting for the source failed: %v", err)
	}
}

func startWorker[T comparable](
	w *world, start func(context.Context, workqueue.TypedRateLimitingInterface[T]) error,
	reconcileOne func(T) (again time.Duration, err error),
) {
	w.t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(batch.RateLimiter[T]())
	context.AfterFunc(w.ctx, queue.ShutDown)
	if err := start(w.ctx, queue); err != nil {
		w.t.Fatalf("starting the source failed: %v", err)
	}
	go func() {
		for {
			request, shutdown := queue.Get()
			if shutdown {
				return
			}
			if again, err := reconcileOne(request); err != nil {
				queue.AddRateLimited(request)
			} else {
				queue.Forget(request)
				if again > 0 {
					queue.AddAfter(request, again)
				}
			}
			queue.Done(request)
		}
	}()
}

func (w *world) call(namespace batch.Namespace) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.errs = append(w.errs, err)
		}
	}()
	result, err := w.Reconcile(w.ctx, namespace)
	if result != (reconcile.Result{}) {
		w.t.Errorf("Reconcile() = %+v, want an empty result: the source does the waiting", result)
	}
	return err
}

// add adds the claims as a source does, and gives the reconciler a second.
func (w *world) add(names ...string) {
	for _, name := range names {
		w.feed.Add(requestOf(name))
	}
	w.wait(time.Second)
}

func (w *world) wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func requestOf(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// set changes what happens from now on.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// note notes a call and returns the error of the test's hook for it.
func (w *world) note(ctx context.Context, call, claim string, hook *func(context.Context, string) error) error {
	w.mu.Lock()
	w.calls = append(w.calls, call+" "+claim)
	run := *hook
	w.mu.Unlock()
	if run != nil {
		return run(ctx, claim)
	}
	return nil
}

// seen returns the calls with the prefix, and forgets all.
func (w *world) seen(prefixes ...string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, call := range w.calls {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(call, prefix) }) {
			found = append(found, call)
		}
	}
	w.calls = nil
	return found
}

// failed returns the errors of Reconcile, and forgets them.
func (w *world) failed() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := w.errs
	w.errs = nil
	return errs
}

// create is the API server that takes events.
func (w *world) create(ctx context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	event := obj.(*eventsv1.Event)
	w.mu.Lock()
	run := w.onEvent
	w.mu.Unlock()
	if run != nil {
		if err := run(event); err != nil {
			return err
		}
	}
	if err := w.server.Create(ctx, event, opts...); err != nil {
		return err
	}
	said := recordedEvent{
		claim: event.Regarding.Name, kind: event.Type, reason: event.Reason, action: event.Action, note: event.Note,
	}
	if event.Related != nil {
		said.pod = event.Related.Name
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, said)
	return nil
}

// forgetAll leaves the reconciler with what another process would know.
func (w *world) forgetAll() {
	for claim := range w.reports.claims {
		w.reports.forget(claim)
	}
}

// said returns the events of that reason, once none is left to be written.
func (w *world) said(reason string) []recordedEvent {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.events), func(e recordedEvent) bool { return e.reason != reason })
}

func (w *world) log(_, _ string) {
	w.mu.Lock()
	run := w.onLog
	w.mu.Unlock()
	if run != nil {
		run()
	}
}

// limiter returns the source's default, and counts what backs off.
func (w *world) limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return countingLimiter{batch.RateLimiter[reconcile.Request](), w}
}

type countingLimiter struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	world *world
}

func (c countingLimiter) When(r reconcile.Request) time.Duration {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.world.backOffs[r]++
	return c.TypedRateLimiter.When(r)
}

// remember keeps what the cache handed out, as it was.
func (w *world) remember(obj client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cached = append(w.cached, handedOut{obj, obj.DeepCopyObject().(client.Object)})
}

// checkCache fails the test if an object of the cache was changed (S5).
func (w *world) checkCache() {
	w.t.Helper()
	for _, h := range w.cached {
		if !apiequality.Semantic.DeepEqual(h.shared, h.original) {
			w.t.Errorf("%T %s of the cache was changed", h.shared, h.shared.GetName())
		}
	}
}

// blockedClaims returns how many claims the metrics say are blocked.
func blockedClaims() int64 { return metrics.Claims.Blocked.Load() }

// lostEvents returns how many the metrics have counted.
func lostEvents(t *testing.T) float64 {
	t.Helper()
	var metric dto.Metric
	if err := metrics.LostEvents.Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetCounter().GetValue()
}

// finalizers returns what the claim has, separated by commas, or "gone".
func (w *world) finalizers(name string) string {
	claim := &corev1.PersistentVolumeClaim{}
	err := w.server.Get(context.Background(), requestOf(name).NamespacedName, claim)
	switch {
	case apierrors.IsNotFound(err):
		return "gone"
	case err != nil:
		w.t.Fatal(err)
	}
	return strings.Join(claim.Finalizers, ",")
}

// expect fails the test unless the claims have the finalizers, or are "gone".
func (w *world) expect(want string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		if got := w.finalizers(name); got != want {
			w.t.Errorf("claim %s: %q, want %q", name, got, want)
		}
	}
}

func claimWith(name string, finalizers ...string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), Finalizers: finalizers,
	}}
}

// candidate returns a claim that is being deleted and was protected.
func candidate(name string) *corev1.PersistentVolumeClaim {
	claim := claimWith(name, testFinalizer)
	claim.DeletionTimestamp = new(metav1.Now())
	return claim
}

func candidates(names ...string) []client.Object {
	var objects []client.Object
	for _, name := range names {
		objects = append(objects, candidate(name))
	}
	return objects
}

// podOf returns a running pod that names the claims.
func podOf(name string, claims ...string) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid")},
		Spec:       corev1.PodSpec{NodeName: "node"},
	}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return pod
}

var errTest = errors.New("the server is on fire")
