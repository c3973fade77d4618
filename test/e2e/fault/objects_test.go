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

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// claim creates a claim in the first namespace. It is protected from the beginning.
func (e *env) claim(name string) *corev1.PersistentVolumeClaim {
	e.Helper()
	return e.claimIn(e.namespace, name)
}

func (e *env) claimIn(namespace, name string) *corev1.PersistentVolumeClaim {
	e.Helper()
	claim := harness.Claim(namespace, name)
	e.create(claim)
	if !slices.Contains(claim.Finalizers, harness.Finalizer) {
		e.Fatalf("claim %s has the finalizers %q", name, claim.Finalizers)
	}
	return claim
}

// claimsIn creates so many claims in the namespace.
func (e *env) claimsIn(namespace string, count int, finalizers ...string) []*corev1.PersistentVolumeClaim {
	e.Helper()
	made := make([]*corev1.PersistentVolumeClaim, count)
	e.each(count, func(ctx context.Context, i int) error {
		made[i] = harness.Claim(namespace, fmt.Sprintf("many-%04d", i))
		made[i].Finalizers = finalizers
		return e.admin.Create(ctx, made[i])
	})
	return made
}

// pod creates a pod in the first namespace.
func (e *env) pod(name string, options ...harness.PodOption) *corev1.Pod {
	e.Helper()
	return e.podIn(e.namespace, name, options...)
}

func (e *env) podIn(namespace, name string, options ...harness.PodOption) *corev1.Pod {
	e.Helper()
	pod := harness.Pod(namespace, name, options...)
	e.create(pod)
	return pod
}

// usedClaim creates a claim in the namespace and a scheduled pod that uses it.
func (e *env) usedClaim(namespace, name string) (*corev1.PersistentVolumeClaim, *corev1.Pod) {
	e.Helper()
	return e.claimIn(namespace, name), e.podIn(namespace, "user-of-"+name, harness.OnNode(node), harness.WithClaim(name))
}

// bind schedules the pod, as a scheduler does.
func (e *env) bind(pod *corev1.Pod) {
	e.Helper()
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	e.fatalIf(e.admin.SubResource("binding").Create(e.Context(), pod, binding))
}

// kill deletes the pods at once, as a kubelet does when they have ended.
func (e *env) kill(pods ...*corev1.Pod) {
	e.Helper()
	for _, pod := range pods {
		e.fatalIf(e.admin.Delete(e.Context(), pod, client.GracePeriodSeconds(0)))
	}
}

// deleteClaims asks for the deletion of many claims at once.
func (e *env) deleteClaims(claims []*corev1.PersistentVolumeClaim) {
	e.Helper()
	e.each(len(claims), func(ctx context.Context, i int) error {
		return e.admin.Delete(ctx, claims[i].DeepCopy())
	})
}

// touch changes something about the object that is nobody's business.
func (e *env) touch(object client.Object) {
	e.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":%q}}}`, uuid.NewUUID())
	discarded := object.DeepCopyObject().(client.Object)
	e.fatalIf(e.admin.Patch(e.Context(), discarded, client.RawPatch(types.StrategicMergePatchType, patch)))
}

// removeFinalizer takes a finalizer off the object, whatever else it has.
func (e *env) removeFinalizer(object client.Object, finalizer string) {
	e.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"$deleteFromPrimitiveList/finalizers":[%q]}}`, finalizer)
	discarded := object.DeepCopyObject().(client.Object)
	e.fatalIf(e.admin.Patch(e.Context(), discarded, client.RawPatch(types.StrategicMergePatchType, patch)))
}

// each calls the function for 0 to count-1, several at once, and ends the test if one of them fails.
func (e *env) each(count int, do func(ctx context.Context, i int) error) {
	e.Helper()
	group, ctx := errgroup.WithContext(e.Context())
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error { return do(ctx, i) })
	}
	e.fatalIf(group.Wait())
}

// gone waits until the claims do not exist any more.
func (e *env) gone(claims ...*corev1.PersistentVolumeClaim) {
	e.Helper()
	for _, claim := range claims {
		e.eventually("claim "+claim.Name+" has to go", func(ctx context.Context) error {
			return e.exists(ctx, claim, false)
		})
	}
}

// allGone waits until none of the namespaces has a claim, except for the given ones.
func (e *env) allGone(namespaces []string, except ...*corev1.PersistentVolumeClaim) {
	e.Helper()
	kept := map[types.UID]bool{}
	for _, claim := range except {
		kept[claim.UID] = true
	}
	for _, namespace := range namespaces {
		e.eventually("all claims have to go", func(ctx context.Context) error {
			left, err := e.left(ctx, namespace)
			left = slices.DeleteFunc(left, func(claim corev1.PersistentVolumeClaim) bool { return kept[claim.UID] })
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("%d claims are left in %s, among them %s", len(left), namespace, left[0].Name)
			}
			return err
		})
	}
}

// left returns the claims that there are in the namespace.
func (e *env) left(ctx context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	err := e.admin.List(ctx, &list, client.InNamespace(namespace))
	return list.Items, err
}

// held watches for a moment that the claims stay and are protected. That the operator has looked at them is for the
// caller to see to.
func (e *env) held(claims ...*corev1.PersistentVolumeClaim) {
	e.Helper()
	e.consistently("a claim in use has to stay", func(ctx context.Context) error { return e.protected(ctx, claims...) })
}

// protected returns an error unless the claims exist and have the finalizer.
func (e *env) protected(ctx context.Context, claims ...*corev1.PersistentVolumeClaim) error {
	var errs []error
	for _, claim := range claims {
		current := claim.DeepCopy()
		if err := e.exists(ctx, current, true); err != nil {
			errs = append(errs, err)
		} else if !slices.Contains(current.Finalizers, harness.Finalizer) {
			errs = append(errs, fmt.Errorf("claim %s has the finalizers %q", claim.Name, current.Finalizers))
		}
	}
	return errors.Join(errs...)
}

// exists reads the claim anew, and returns an error unless it exists or does not, as wanted. A claim of the same name
// is not the claim.
func (e *env) exists(ctx context.Context, claim *corev1.PersistentVolumeClaim, want bool) error {
	var current corev1.PersistentVolumeClaim
	err := e.admin.Get(ctx, client.ObjectKeyFromObject(claim), &current)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	found := err == nil && current.UID == claim.UID
	if found {
		*claim = current
	}
	if found != want {
		return fmt.Errorf("claim %s: exists: %t, finalizers: %q", claim.Name, found, claim.Finalizers)
	}
	return nil
}

// counted waits until the operator's metric has at least the given value.
func (e *env) counted(o *harness.Operator, least float64, metric string, labels ...string) {
	e.Helper()
	e.eventually("the operator has to count", func(ctx context.Context) error {
		return atLeast(ctx, o, least, metric, labels...)
	})
}

func atLeast(ctx context.Context, o *harness.Operator, least float64, metric string, labels ...string) error {
	value, err := o.Metric(ctx, metric, labels...)
	if err == nil && value < least {
		err = fmt.Errorf("metric %s %q is %v, want %v or more", metric, labels, value, least)
	}
	return err
}

// foundByLiveList waits until the operator has found so many times that a live list shows a holder, and ends the test if
// one of the claims goes meanwhile.
func (e *env) foundByLiveList(o *harness.Operator, times float64, held ...*corev1.PersistentVolumeClaim) {
	e.Helper()
	e.eventually("a live list has to show the holder", func(ctx context.Context) error {
		if err := e.protected(ctx, held...); err != nil {
			e.Fatalf("a claim in use has to stay: %v", err)
		}
		return atLeast(ctx, o, times, "pvc_protection_answers_total", `answer="blocked"`, `source="live_list"`)
	})
}

// superseded waits until the operator has tried to release a claim, and checks that it has found another one.
func (e *env) superseded(o *harness.Operator) {
	e.Helper()
	const writes = "pvc_protection_writes_total"
	e.counted(o, 1, writes, `operation="release"`)
	released, err := o.Metric(e.Context(), writes, `operation="release"`, `result="success"`)
	e.fatalIf(err)
	if released > 0 {
		e.Errorf("%.0f claims were released, want none", released)
	}
}

func key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}
