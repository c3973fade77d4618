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

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// steady is one claim after the other. What counts is the time from the answer to
// its DELETE until a watch sees it go. The floor makes a live list and patches.
type steady struct {
	claims int
	// pods use no claim.
	pods int
}

func (s steady) hasFloor() bool { return true }

func (s steady) load(ctx context.Context, e *env) error {
	if err := e.createNamespaces(ctx, 1); err != nil {
		return err
	}
	return e.createPods(ctx, s.pods, 1, 0)
}

func (s steady) prepare(context.Context, *env) error { return nil }
func (s steady) clean(context.Context, *env) error   { return nil }

func (s steady) measure(ctx context.Context, e *env, ct contender, r *result) error {
	release := func(*corev1.PersistentVolumeClaim) error { return nil }
	if ct.isFloor() {
		floor, err := newClient(e, ct.agent)
		if err != nil {
			return err
		}
		release = func(claim *corev1.PersistentVolumeClaim) error {
			// As the operator's live list: scheduled pods only.
			if err := floor.List(ctx, &corev1.PodList{}, client.InNamespace(claim.Namespace), client.MatchingFieldsSelector{
				Selector: fields.OneTermNotEqualSelector("spec.nodeName", "")}); err != nil {
				return err
			}
			return floor.Patch(ctx, claim, finalizerPatch(claim, "$deleteFromPrimitiveList/finalizers"))
		}
		return s.deleteClaims(ctx, e, r, release)
	}
	p, err := startProcess(ct, e.cluster)
	if err != nil {
		return err
	}
	if _, err = p.settle(ctx); err == nil {
		err = s.deleteClaims(ctx, e, r, release)
	}
	return errors.Join(err, p.stop(r))
}

// deleteClaims creates and deletes one claim after the other and has it released.
func (s steady) deleteClaims(
	ctx context.Context, e *env, r *result, release func(*corev1.PersistentVolumeClaim) error,
) error {
	claims, err := e.client.Watch(ctx, &corev1.PersistentVolumeClaimList{}, client.InNamespace(namespaceName(0)))
	if err != nil {
		return err
	}
	defer claims.Stop()
	took := make([]time.Duration, 0, s.claims)
	for i := range s.claims {
		claim := harness.Claim(namespaceName(0), claimName(i))
		if err := e.client.Create(ctx, claim); err != nil {
			return err
		}
		if err := e.client.Delete(ctx, claim); err != nil {
			return err
		}
		deleted := time.Now()
		released := make(chan error, 1)
		go func() { released <- release(claim) }()
		if err := untilGone(claims, claim.Name); err != nil {
			return err
		}
		took = append(took, time.Since(deleted))
		if err := <-released; err != nil {
			return err
		}
	}
	slices.Sort(took)
	r.set(p50, milliseconds(took[len(took)/2]))
	r.set(p99, milliseconds(took[len(took)*99/100]))
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func untilGone(claims watch.Interface, name string) error {
	for event := range claims.ResultChan() {
		if claim, ok := event.Object.(*corev1.PersistentVolumeClaim); ok && event.Type == watch.Deleted && claim.Name == name {
			return nil
		}
	}
	return fmt.Errorf("the watch of claims ended before claim %s was gone", name)
}
