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

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

const (
	// patience is how long something that has to happen may take.
	patience = time.Minute
	// vigilance is how long something that must not happen is watched for.
	vigilance = time.Second

	foreignFinalizer = "example.com/foreign"
	node             = "node-a"
)

// env is a test with a namespace of its own.
type env struct {
	*testing.T
	namespace string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{T: t}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	e.create(namespace)
	e.namespace = namespace.Name
	return e
}

// fatalIf ends the test on an error.
func (e *env) fatalIf(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// eventually waits until the condition holds, and ends the test if it takes too long.
func (e *env) eventually(what string, condition harness.Condition) {
	e.Helper()
	if err := harness.Eventually(e.Context(), patience, condition); err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}

// consistently watches for a moment that the condition holds.
func (e *env) consistently(what string, condition harness.Condition) {
	e.Helper()
	if err := harness.Consistently(e.Context(), vigilance, condition); err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}

func (e *env) create(object client.Object) {
	e.Helper()
	e.fatalIf(suite.admin.Create(e.Context(), object))
}

// claim creates a claim, changed by the functions, and waits until the operator protects it.
func (e *env) claim(name string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	e.Helper()
	claim := harness.Claim(e.namespace, name)
	for _, change := range changes {
		change(claim)
	}
	e.create(claim)
	return e.protected(claim)
}

// protected waits until the operator protects the claim.
func (e *env) protected(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	e.Helper()
	e.eventually("claim "+claim.Name+" has to be protected", func(ctx context.Context) error {
		return e.hasFinalizer(ctx, claim, harness.Finalizer)
	})
	return claim
}

// ephemeralClaim creates the claim of the pod's ephemeral volume and waits until the operator protects it.
func (e *env) ephemeralClaim(
	pod *corev1.Pod, volume string, changes ...func(*corev1.PersistentVolumeClaim),
) *corev1.PersistentVolumeClaim {
	e.Helper()
	claim := harness.EphemeralClaim(pod, volume)
	for _, change := range changes {
		change(claim)
	}
	e.create(claim)
	return e.protected(claim)
}

// pod creates a pod.
func (e *env) pod(name string, options ...harness.PodOption) *corev1.Pod {
	e.Helper()
	pod := harness.Pod(e.namespace, name, options...)
	e.create(pod)
	return pod
}

// setPhase says what has become of the pod, as a kubelet does.
func (e *env) setPhase(pod *corev1.Pod, phase corev1.PodPhase) {
	e.Helper()
	patch := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))
	e.fatalIf(suite.admin.Status().Patch(e.Context(), pod.DeepCopy(), patch))
}

// delete asks for the deletion of the objects.
func (e *env) delete(objects ...client.Object) {
	e.Helper()
	for _, object := range objects {
		e.fatalIf(suite.admin.Delete(e.Context(), object))
	}
}

// asObjects is for the functions that take objects of any type.
func asObjects(claims []*corev1.PersistentVolumeClaim) []client.Object {
	var objects []client.Object
	for _, claim := range claims {
		objects = append(objects, claim)
	}
	return objects
}

// kill deletes the pods at once, as a kubelet does when they have ended.
func (e *env) kill(pods ...*corev1.Pod) {
	e.Helper()
	for _, pod := range pods {
		e.fatalIf(suite.admin.Delete(e.Context(), pod, client.GracePeriodSeconds(0)))
	}
}

// removeFinalizer takes a finalizer off the object, whatever else it has.
func (e *env) removeFinalizer(object client.Object, finalizer string) {
	e.Helper()
	e.fatalIf(removeFinalizer(e.Context(), object, finalizer))
}

func removeFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"$deleteFromPrimitiveList/finalizers":[%q]}}`, finalizer)
	discarded := object.DeepCopyObject().(client.Object)
	return suite.admin.Patch(ctx, discarded, client.RawPatch(types.StrategicMergePatchType, patch))
}

// gone waits until the claims do not exist any more.
func (e *env) gone(claims ...*corev1.PersistentVolumeClaim) {
	e.Helper()
	for _, claim := range claims {
		e.eventually("claim "+claim.Name+" has to go", func(ctx context.Context) error {
			return exists(ctx, claim, false)
		})
	}
}

// held checks that the claims, which are being deleted, stay although the operator has looked at them.
func (e *env) held(claims ...*corev1.PersistentVolumeClaim) {
	e.Helper()
	e.sentinel()
	e.consistently("a claim in use has to stay", func(ctx context.Context) error {
		var errs []error
		for _, claim := range claims {
			errs = append(errs, e.hasFinalizer(ctx, claim, harness.Finalizer))
			if claim.DeletionTimestamp == nil {
				errs = append(errs, fmt.Errorf("claim %s is not being deleted", claim.Name))
			}
		}
		return errors.Join(errs...)
	})
}

// sentinel waits until the operator has seen everything that was done to claims before: claims are looked at in their
// order, and the one that is made and deleted here comes after them.
func (e *env) sentinel() {
	e.Helper()
	sentinel := harness.Claim(e.namespace, "")
	sentinel.GenerateName = "sentinel-"
	e.create(sentinel)
	e.protected(sentinel)
	e.delete(sentinel)
	e.gone(sentinel)
}

// hasFinalizer reads the claim anew.
func (e *env) hasFinalizer(ctx context.Context, claim *corev1.PersistentVolumeClaim, finalizer string) error {
	if err := exists(ctx, claim, true); err != nil {
		return err
	}
	if !slices.Contains(claim.Finalizers, finalizer) {
		return fmt.Errorf("claim %s has the finalizers %q", claim.Name, claim.Finalizers)
	}
	return nil
}

// exists reads the claim anew, and returns an error unless it exists or does not, as wanted. A claim of the same name
// is not the claim.
func exists(ctx context.Context, claim *corev1.PersistentVolumeClaim, want bool) error {
	var current corev1.PersistentVolumeClaim
	err := suite.admin.Get(ctx, client.ObjectKeyFromObject(claim), &current)
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
