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
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// loaders is how many requests that load the cluster are in flight.
const loaders = 16

// each calls f for every number below n, several at once.
func each(n int, f func(i int) error) error { return eachOf(loaders, n, f) }

func eachOf(limit, n int, f func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	return group.Wait()
}

func namespaceName(i int) string { return fmt.Sprintf("bench-%d", i) }

func claimName(i int) string { return fmt.Sprintf("claim-%d", i) }

func (e *env) createNamespaces(ctx context.Context, n int) error {
	return each(n, func(i int) error {
		return e.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}})
	})
}

// createPods creates pods that use no claim, of about the given size, spread over
// the namespaces.
func (e *env) createPods(ctx context.Context, n, namespaces, size int) error {
	return each(n, func(i int) error {
		pod := harness.Pod(namespaceName(i%namespaces), fmt.Sprintf("other-%d", i), harness.OnNode("node"))
		pod.Annotations = map[string]string{"example.com/filler": strings.Repeat("x", size)}
		return e.client.Create(ctx, pod)
	})
}

// createHeld creates claims of one namespace, each with a pod that uses it, and
// deletes them: their finalizer keeps them.
func (e *env) createHeld(ctx context.Context, n int) error {
	return each(n, func(i int) error {
		claim := harness.Claim(namespaceName(0), claimName(i))
		if err := e.client.Create(ctx, claim); err != nil {
			return err
		}
		if err := e.client.Create(ctx, heldBy(i)); err != nil {
			return err
		}
		return e.client.Delete(ctx, claim)
	})
}

func heldBy(i int) *corev1.Pod {
	return harness.Pod(namespaceName(0), fmt.Sprintf("holder-%d", i), harness.OnNode("node"), harness.WithClaim(claimName(i)))
}

// removeHeld removes what createHeld made, as far as it is still there.
func (e *env) removeHeld(ctx context.Context, n int) error {
	return each(n, func(i int) error {
		if err := client.IgnoreNotFound(e.client.Delete(ctx, heldBy(i), client.GracePeriodSeconds(0))); err != nil {
			return err
		}
		claim := harness.Claim(namespaceName(0), claimName(i))
		return client.IgnoreNotFound(e.client.Patch(ctx, claim, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":null}}`))))
	})
}

// claimsLeft returns how many claims there are, or at least whether there is one
// if it suffices.
func (e *env) claimsLeft(ctx context.Context, limit int64) (int, error) {
	claims := &metav1.PartialObjectMetadataList{}
	claims.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
	err := e.client.List(ctx, claims, client.Limit(limit))
	return len(claims.Items), err
}
