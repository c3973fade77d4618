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
	"slices"
	"testing"
	"time"

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
