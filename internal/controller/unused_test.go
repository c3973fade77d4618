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
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

// unusedWorld is an UnusedReconciler, its cache and an API server. What is on the
// server is in the cache only once it is shown to it.
type unusedWorld struct {
	*UnusedReconciler

	t      testing.TB
	server client.WithWatch
	clock  *clocktesting.FakePassiveClock
	claims map[string]*corev1.PersistentVolumeClaim // by name
	pods   map[string]client.Object

	// onPatch runs before a patch; its error is the patch's. onLookUp is the same for
	// the lookup of pods in the cache.
	onPatch, onLookUp func() error
	// cached is what the cache has held, and what that was like at first.
	cached []handedOut
	// patches is how many patches reached the server, written how many of them it
	// accepted.
	patches, written int
}

func newUnusedWorld(t testing.TB, objects ...client.Object) *unusedWorld {
	t.Helper()
	w := &unusedWorld{
		t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		claims: map[string]*corev1.PersistentVolumeClaim{}, pods: map[string]client.Object{},
	}
	w.server = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).
		WithStatusSubresource(&corev1.PersistentVolumeClaim{}, &corev1.Pod{}).Build()
	w.UnusedReconciler = &UnusedReconciler{
		Client: interceptor.NewClient(w.server, interceptor.Funcs{
			Get: w.get, List: w.list, SubResourcePatch: w.patch,
		}),
		Clock:    w.clock,
		refusals: newRefusals(),
	}
	for _, object := range objects {
		w.show(object)
	}
	t.Cleanup(func() {
		for _, h := range w.cached { // S5
			if !apiequality.Semantic.DeepEqual(h.shared, h.original) {
				t.Errorf("%T %s of the cache was changed", h.shared, h.shared.GetName())
			}
		}
	})
	return w
}

// show brings the cache's view of the object up to date.
func (w *unusedWorld) show(object client.Object) {
	w.t.Helper()
	current := object.DeepCopyObject().(client.Object)
	err := w.server.Get(context.Background(), client.ObjectKeyFromObject(object), current)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	var trimmed any
	switch name := object.GetName(); object.(type) {
	case *corev1.PersistentVolumeClaim:
		if delete(w.claims, name); err == nil {
			trimmed, _ = usage.TrimClaim(current) // never fails
			w.claims[name] = trimmed.(*corev1.PersistentVolumeClaim)
		}
	case *corev1.Pod:
		if delete(w.pods, name); err == nil {
			trimmed, _ = usage.TrimPod(current) // never fails
			w.pods[name] = trimmed.(client.Object)
		}
	}
	if trimmed != nil {
		shared := trimmed.(client.Object)
		w.cached = append(w.cached, handedOut{shared, shared.DeepCopyObject().(client.Object)})
	}
}

func (w *unusedWorld) get(
	_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption,
) error {
	claim, ok := w.claims[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumeclaims"}, key.Name)
	}
	*obj.(*corev1.PersistentVolumeClaim) = *claim // shared, as the cache does it
	return nil
}

func (w *unusedWorld) list(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	if w.onLookUp != nil {
		if err := w.onLookUp(); err != nil {
			return err
		}
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	name, ok := options.FieldSelector.RequiresExactMatch(usage.PodClaimIndex)
	if !ok || options.Namespace != "ns" {
		w.t.Errorf("pods were listed with %+v, want those of the namespace that name the claim", options)
	}
	for _, pod := range w.pods {
		if slices.Contains(usage.IndexPodByClaim(pod), name) {
			list.(*corev1.PodList).Items = append(list.(*corev1.PodList).Items, *usage.CachedPod(pod))
		}
	}
	return nil
}

// patch does what the API server does with the patch, by way of the fake client,
// which does not look at the UID.
func (w *unusedWorld) patch(
	ctx context.Context, _ client.Client, sub string, obj client.Object, p client.Patch, _ ...client.SubResourcePatchOption,
) error {
	if sub != "status" {
		w.t.Errorf("the subresource %q was patched", sub)
	}
	if w.onPatch != nil {
		if err := w.onPatch(); err != nil {
			return err
		}
	}
	w.patches++
	data, err := p.Data(obj)
	if err != nil {
		return err
	}
	var patched, current corev1.PersistentVolumeClaim
	if err := json.Unmarshal(data, &patched); err != nil {
		return err
	}
	if err := w.server.Get(ctx, client.ObjectKeyFromObject(obj), &current); err != nil {
		return err
	}
	if patched.UID != current.UID {
		return invalid("metadata", "uid")
	}
	if err := w.server.SubResource(sub).Patch(ctx, obj, p); err != nil {
		return err
	}
	w.written++
	return nil
}

// reconcile calls Reconcile for the claim. That it wants another look later is no
// matter here: what there is to see comes as an event.
func (w *unusedWorld) reconcile(ctx context.Context, name string) error {
	w.t.Helper()
	_, err := w.Reconcile(ctx, requestOf(name))
	return err
}

// conditions returns those that the claim has on the server.
func (w *unusedWorld) conditions(name string) []corev1.PersistentVolumeClaimCondition {
	w.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if err := w.server.Get(context.Background(), requestOf(name).NamespacedName, claim); err != nil {
		w.t.Fatal(err)
	}
	for i := range claim.Status.Conditions {
		claim.Status.Conditions[i].LastTransitionTime.Time = claim.Status.Conditions[i].LastTransitionTime.UTC()
	}
	return claim.Status.Conditions
}

type claimChange func(*corev1.PersistentVolumeClaim)

// boundClaim returns a claim that is bound.
func boundClaim(name string, changes ...claimChange) *corev1.PersistentVolumeClaim {
	claim := claimWith(name, testFinalizer)
	claim.Status.Phase = corev1.ClaimBound
	for _, change := range changes {
		change(claim)
	}
	return claim
}

var earlier = metav1.NewTime(time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC))

// having adds a condition from before.
func having(kind corev1.PersistentVolumeClaimConditionType, status corev1.ConditionStatus) claimChange {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: kind, Status: status, LastTransitionTime: earlier, Reason: "Somebody", Message: "else",
		})
	}
}

func unusedIs(status corev1.ConditionStatus) claimChange {
	return having(corev1.PersistentVolumeClaimUnused, status)
}

func inPhase(phase corev1.PodPhase, pod corev1.Pod) *corev1.Pod {
	pod.Status.Phase = phase
	return &pod
}

// TestUnusedCondition has every state of a claim, and what becomes of its condition.
func TestUnusedCondition(t *testing.T) {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	running := inPhase(corev1.PodRunning, podOf("web", "c"))
	unscheduled := inPhase(corev1.PodPending, podOf("web", "c"))
	unscheduled.Spec.NodeName = ""
	ended := inPhase(corev1.PodSucceeded, podOf("job", "c"))
	owner := podOf("web", "other")
	ephemeral := podOf("web")
	ephemeral.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{},
	}}}
	controlledBy := func(pod *corev1.Pod) claimChange {
		return func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{
				*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod")),
			}
		}
	}
	phase := func(phase corev1.PersistentVolumeClaimPhase) claimChange {
		return func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = phase }
	}
	deleted := func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &earlier }

	for name, test := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		pods  []*corev1.Pod
		want  corev1.ConditionStatus // "" if nothing is to be written
	}{
		"no pods":                    {boundClaim("c"), nil, yes},
		"a pod":                      {boundClaim("c"), []*corev1.Pod{running}, no},
		"a pod that is unscheduled":  {boundClaim("c"), []*corev1.Pod{unscheduled}, no},
		"a pod that has ended":       {boundClaim("c"), []*corev1.Pod{ended}, yes},
		"one that has, one has not":  {boundClaim("c"), []*corev1.Pod{ended, running}, no},
		"other claims' pods":         {boundClaim("c"), []*corev1.Pod{&owner}, yes},
		"its ephemeral volume's pod": {boundClaim("web-v", controlledBy(&owner)), []*corev1.Pod{&ephemeral}, no},
		"an ephemeral volume's name": {boundClaim("web-v"), []*corev1.Pod{&ephemeral}, yes},

		"known to be unused":     {boundClaim("c", unusedIs(yes)), nil, ""},
		"known to be used":       {boundClaim("c", unusedIs(no)), []*corev1.Pod{running}, ""},
		"used from now on":       {boundClaim("c", unusedIs(yes)), []*corev1.Pod{unscheduled}, no},
		"unused from now on":     {boundClaim("c", unusedIs(no)), []*corev1.Pod{ended}, yes},
		"unknown":                {boundClaim("c", unusedIs(corev1.ConditionUnknown)), []*corev1.Pod{running}, no},
		"with others":            {boundClaim("c", having("Resizing", yes), unusedIs(no), having("x", no)), nil, yes},
		"new among others":       {boundClaim("c", having("Resizing", yes), having("x", no)), nil, yes},
		"pending":                {boundClaim("c", phase(corev1.ClaimPending)), nil, ""},
		"lost":                   {boundClaim("c", phase(corev1.ClaimLost), unusedIs(yes)), []*corev1.Pod{running}, ""},
		"being deleted":          {boundClaim("c", deleted), nil, ""},
		"being deleted, changed": {boundClaim("c", deleted, unusedIs(no)), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUnusedWorld(t, test.claim.DeepCopy())
			for _, pod := range test.pods {
				w.pods[pod.Name] = pod
			}
			before := writesOf(t, metrics.Success)
			for range 2 { // The second time, there is nothing left to do.
				if err := w.reconcile(t.Context(), test.claim.Name); err != nil {
					t.Fatal(err)
				}
				w.show(test.claim)
			}

			want, writes := test.claim.DeepCopy().Status.Conditions, 0
			if test.want != "" {
				writes = 1
				condition := corev1.PersistentVolumeClaimCondition{
					Type: corev1.PersistentVolumeClaimUnused, Status: test.want, LastTransitionTime: metav1.NewTime(w.clock.Now()),
					Reason: "NoPodsUsingPVC", Message: "No pod that has not ended refers to this claim",
				}
				if test.want == no {
					condition.Reason, condition.Message = "PodUsingPVC", "A pod that has not ended refers to this claim"
				}
				want = slices.DeleteFunc(want, func(c corev1.PersistentVolumeClaimCondition) bool {
					return c.Type == condition.Type
				})
				want = append(want, condition)
			}
			if got := w.conditions(test.claim.Name); !sameConditions(got, want) {
				t.Errorf("the conditions are %+v\nwant %+v", got, want)
			}
			if w.patches != writes || w.written != writes {
				t.Errorf("%d patches, %d of them accepted, want %d", w.patches, w.written, writes)
			}
			if got := writesOf(t, metrics.Success) - before; got != float64(writes) {
				t.Errorf("the metric counts %v writes, want %d", got, writes)
			}
		})
	}
}

// sameConditions compares what are lists by type, whose order does not matter.
func sameConditions(a, b []corev1.PersistentVolumeClaimCondition) bool {
	byType := func(conditions []corev1.PersistentVolumeClaimCondition) map[string]corev1.PersistentVolumeClaimCondition {
		m := map[string]corev1.PersistentVolumeClaimCondition{}
		for _, c := range conditions {
			m[string(c.Type)] = c
		}
		return m
	}
	return len(a) == len(b) && apiequality.Semantic.DeepEqual(byType(a), byType(b))
}

// TestUnusedOnStaleClaim has a cache that does not show yet what was written, be it
// by the reconciler or by another writer of the same condition.
func TestUnusedOnStaleClaim(t *testing.T) {
	for name, write := range map[string]func(*unusedWorld){
		"its own write": func(w *unusedWorld) {
			if err := w.reconcile(t.Context(), "c"); err != nil {
				t.Fatal(err)
			}
		},
		"another's write": func(w *unusedWorld) {
			claim := boundClaim("c", unusedIs(corev1.ConditionTrue))
			if err := w.server.Status().Update(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUnusedWorld(t, boundClaim("c"))
			write(w)
			want, written := w.conditions("c"), w.written
			before := writesOf(t, metrics.Superseded)

			w.clock.SetTime(w.clock.Now().Add(time.Minute))
			if err := w.reconcile(t.Context(), "c"); err != nil {
				t.Errorf("Reconcile() = %v on a stale claim, want no error", err)
			}
			if got := w.conditions("c"); w.written > written || !sameConditions(got, want) {
				t.Errorf("the conditions are %+v\nwant them left at %+v", got, want)
			}
			if got := writesOf(t, metrics.Superseded) - before; got != 1 {
				t.Errorf("the metric counts %v superseded writes, want 1", got)
			}

			patches := w.patches
			w.show(boundClaim("c"))
			if err := w.reconcile(t.Context(), "c"); err != nil || w.patches > patches {
				t.Errorf("Reconcile() = %v with %d patches, want none for a condition that is right", err, w.patches-patches)
			}
		})
	}
}

func TestUnusedErrors(t *testing.T) {
	notFound := apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), "c")
	denied := apierrors.NewNotFound(schema.GroupResource{}, "no-such-tenant")
	conflict := apierrors.NewConflict(schema.GroupResource{}, "c", errTest)
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "c", errTest)
	for name, test := range map[string]struct {
		err     error
		result  string
		retried bool
		again   time.Duration
	}{
		"the claim is gone":          {err: notFound, result: metrics.Superseded, again: supersededAgain},
		"the claim is another one":   {err: invalid("metadata", "uid"), result: metrics.Superseded, again: supersededAgain},
		"the claim has changed":      {err: conflict, result: metrics.Superseded, again: supersededAgain},
		"a policy calls it invalid":  {err: invalid("spec", "accessModes"), result: metrics.Failure, retried: true},
		"a webhook finds no tenant":  {err: denied, result: metrics.Failure, retried: true},
		"the server fails":           {err: errTest, result: metrics.Failure, retried: true},
		"it is not permitted by now": {err: forbidden, result: metrics.Failure, again: forbiddenAgain},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUnusedWorld(t, boundClaim("c"))
			w.onPatch = func() error { return test.err }
			before := writesOf(t, test.result)
			result, err := w.Reconcile(t.Context(), requestOf("c"))
			if terminal := errors.Is(err, reconcile.TerminalError(nil)); (err != nil) != test.retried || terminal {
				t.Errorf("Reconcile() = %v", err)
			}
			if result.RequeueAfter != test.again {
				t.Errorf("Reconcile() wants another look after %s, want %s", result.RequeueAfter, test.again)
			}
			if got := writesOf(t, test.result) - before; got != 1 {
				t.Errorf("the metric counts %v writes of result %s, want 1", got, test.result)
			}
		})
	}

	t.Run("the claim is not in the cache", func(t *testing.T) {
		w := newUnusedWorld(t)
		if err := w.reconcile(t.Context(), "c"); err != nil {
			t.Errorf("Reconcile() = %v, want nil", err)
		}
	})
	t.Run("the cache fails", func(t *testing.T) {
		w := newUnusedWorld(t, boundClaim("c"))
		w.onLookUp = func() error { return errTest }
		if err := w.reconcile(t.Context(), "c"); !errors.Is(err, errTest) || w.patches > 0 {
			t.Errorf("Reconcile() = %v with %d patches, want the cache's error and no patch", err, w.patches)
		}
	})
	t.Run("the manager stops", func(t *testing.T) {
		w := newUnusedWorld(t, boundClaim("c"))
		ctx, stop := context.WithCancel(t.Context())
		w.onPatch = func() error {
			stop()
			return context.Canceled
		}
		if err := w.reconcile(ctx, "c"); err != nil {
			t.Errorf("Reconcile() = %v, want nil", err)
		}
	})
}

// TestUnusedPatchIsBound proves that the patch is for the claim that was looked at,
// and for nothing but the one condition.
func TestUnusedPatchIsBound(t *testing.T) {
	w := newUnusedWorld(t, boundClaim("c"))
	var data string
	w.Client = interceptor.NewClient(w.server, interceptor.Funcs{Get: w.get, List: w.list, SubResourcePatch: func(
		_ context.Context, _ client.Client, _ string, obj client.Object, p client.Patch, _ ...client.SubResourcePatchOption,
	) error {
		raw, err := p.Data(obj)
		data = string(p.Type()) + " " + string(raw)
		return err
	}})
	if err := w.reconcile(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	const want = `application/strategic-merge-patch+json ` +
		`{"metadata":{"resourceVersion":"999","uid":"c-uid"},"status":{"conditions":[{"type":"Unused","status":"True",` +
		`"lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z","reason":"NoPodsUsingPVC",` +
		`"message":"No pod that has not ended refers to this claim"}]}}`
	if data != want {
		t.Errorf("the patch is %s\nwant %s", data, want)
	}
}

// writesOf returns how many writes of conditions with the result the metrics count.
func writesOf(t *testing.T, result string) float64 {
	t.Helper()
	var metric dto.Metric
	if err := metrics.UnusedConditionWrites.WithLabelValues(result).Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetCounter().GetValue()
}
