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

package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

const (
	// patience is how long a step waits for the cluster.
	patience = time.Minute
	// recreatePatience is how long a claim that is to be recreated may take to go. One that is in use never does.
	recreatePatience = 3 * time.Second

	foreignFinalizer = "example.com/soak"
)

// player does what a plan says about pods and claims, as an administrator.
type player struct {
	admin client.Client
	// side are steps that others of the same lane do not wait for.
	side sync.WaitGroup

	mu    sync.Mutex
	done  int
	moot  int
	wrong []error
}

// play does a step and keeps account of it. That there is nothing to do, or that the API server refuses what it always
// refuses, is as good as done; anything else must not happen.
func (p *player) play(ctx context.Context, op Op) {
	err := p.do(ctx, op)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.done++
	case isMoot(err) || ctx.Err() != nil:
		p.moot++
	default:
		p.wrong = append(p.wrong, fmt.Errorf("%s: %w", op, err))
	}
}

func isMoot(err error) bool {
	for _, is := range []func(error) bool{
		apierrors.IsNotFound, apierrors.IsAlreadyExists, apierrors.IsConflict, apierrors.IsForbidden, apierrors.IsInvalid,
		apierrors.IsTooManyRequests,
	} {
		if is(err) {
			return true
		}
	}
	return false
}

func (p *player) do(ctx context.Context, op Op) error {
	claim, pod := harness.Claim(op.Namespace, op.Claim), harness.Pod(op.Namespace, op.Pod)
	switch op.Kind {
	case CreateNamespace:
		return p.createNamespace(ctx, op.Namespace)
	case DeleteNamespace:
		return p.admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: op.Namespace}})
	case CreateClaim:
		return p.admin.Create(ctx, claim)
	case DeleteClaim:
		return p.admin.Delete(ctx, claim)
	case DeleteClaims:
		return p.admin.DeleteAllOf(ctx, claim, client.InNamespace(op.Namespace))
	case RecreateClaim:
		return p.recreateClaim(ctx, claim)
	case LabelClaim:
		return p.patch(ctx, claim, fmt.Sprintf(`{"metadata":{"labels":{"soak":"%d"}}}`, op.At.Milliseconds()))
	case AddClaimFinalizer:
		return p.addFinalizer(ctx, claim)
	case RemoveClaimFinalizer:
		return p.removeFinalizer(ctx, claim)
	case CreatePod:
		return p.admin.Create(ctx, newPod(op))
	case BindPod:
		return p.bind(ctx, pod, op.Node)
	case FinishPod:
		return p.admin.Status().Patch(ctx, pod,
			client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))
	case DeletePod:
		return p.admin.Delete(ctx, pod)
	case ForceDeletePod:
		return p.admin.Delete(ctx, pod, client.GracePeriodSeconds(0))
	case ReplacePod:
		return firstReal([]error{
			p.admin.Delete(ctx, pod, client.GracePeriodSeconds(0)),
			p.admin.Create(ctx, newPod(op)),
		})
	case EvictPod:
		return p.admin.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{})
	case AddPodFinalizer:
		return p.addFinalizer(ctx, pod)
	case RemovePodFinalizer:
		return p.removeFinalizer(ctx, pod)
	case BindAndDelete:
		return p.bindAndDelete(ctx, op)
	default:
		return errors.New("unknown step")
	}
}

// createNamespace returns when pods are admitted.
func (p *player) createNamespace(ctx context.Context, name string) error {
	if err := p.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	account := client.ObjectKey{Namespace: name, Name: "default"}
	return harness.Eventually(ctx, patience, func(ctx context.Context) error {
		return p.admin.Get(ctx, account, &corev1.ServiceAccount{})
	})
}

// recreateClaim deletes the claim, and creates it as soon as it has gone.
func (p *player) recreateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := p.admin.Delete(ctx, claim); err != nil {
		return err
	}
	p.side.Go(func() {
		// If it does not go, it is in use.
		_ = harness.Eventually(ctx, recreatePatience, func(ctx context.Context) error {
			return p.admin.Create(ctx, harness.Claim(claim.Namespace, claim.Name))
		})
	})
	return nil
}

func (p *player) patch(ctx context.Context, object client.Object, patch string) error {
	return p.admin.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
}

func (p *player) addFinalizer(ctx context.Context, object client.Object) error {
	return p.patch(ctx, object, fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, foreignFinalizer))
}

func (p *player) removeFinalizer(ctx context.Context, object client.Object) error {
	return p.patch(ctx, object, fmt.Sprintf(`{"metadata":{"$deleteFromPrimitiveList/finalizers":[%q]}}`, foreignFinalizer))
}

func (p *player) bind(ctx context.Context, pod *corev1.Pod, node string) error {
	return p.admin.SubResource("binding").Create(ctx, pod, &corev1.Binding{
		Target: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node},
	})
}

// bindAndDelete is the race that S1 is about: a pod that nobody knows of yet is bound, and its claims are deleted.
func (p *player) bindAndDelete(ctx context.Context, op Op) error {
	pod := newPod(op)
	pod.Spec.NodeName = ""
	if err := p.admin.Create(ctx, pod); err != nil {
		return err
	}
	errs := make([]error, len(op.Claims)+1)
	var group sync.WaitGroup
	for i, name := range op.Claims {
		group.Go(func() { errs[i] = p.admin.Delete(ctx, harness.Claim(op.Namespace, name)) })
	}
	errs[len(op.Claims)] = p.bind(ctx, pod, op.Node)
	group.Wait()
	return firstReal(errs)
}

// firstReal returns the first error that is not moot, or else the first one.
func firstReal(errs []error) error {
	var first error
	for _, err := range errs {
		if err != nil && !isMoot(err) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func newPod(op Op) *corev1.Pod {
	pod := harness.Pod(op.Namespace, op.Pod)
	for _, name := range op.Claims {
		harness.WithClaim(name)(pod)
	}
	if op.Ephemeral {
		harness.WithEphemeral("scratch")(pod)
	}
	if op.Finalizer {
		harness.WithFinalizer(foreignFinalizer)(pod)
	}
	if op.Scheduler {
		harness.WithScheduler()(pod)
	}
	pod.Spec.NodeName = op.Node
	return pod
}
