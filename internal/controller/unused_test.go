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
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/metrics"
)

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
