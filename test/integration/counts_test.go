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
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/test/harness"
)

// TestLiveListsOfOneNamespace has many claims of one namespace that are deleted together.
func TestLiveListsOfOneNamespace(t *testing.T) {
	const claims, most = 500, 4
	lists, _ := releaseTogether(t, []*env{newEnv(t)}, claims, byName)
	t.Logf("%d claims of one namespace took %d live lists", claims, lists)
	if lists == 0 || lists > most {
		t.Errorf("%d live lists, want 1 to %d", lists, most)
	}
}

// TestLiveListsOfManyNamespaces has claims of many namespaces that are deleted together.
func TestLiveListsOfManyNamespaces(t *testing.T) {
	// A claim waits for others for 3 seconds at most.
	const namespaces, claims, pause = 100, 10, 3 * time.Second
	for name, inOrder := range map[string]func(a, b *corev1.PersistentVolumeClaim) int{
		"one namespace after the other": byNamespace, "round and round": byName,
	} {
		t.Run(name, func(t *testing.T) {
			var envs []*env
			for range namespaces {
				envs = append(envs, newEnv(t))
			}
			lists, took := releaseTogether(t, envs, claims, inOrder)
			t.Logf("%d claims of %d namespaces took %d live lists", namespaces*claims, namespaces, lists)
			most := 2 * namespaces * int(1+took/pause)
			if lists < namespaces || lists > most {
				t.Errorf("%d live lists, want %d to %d", lists, namespaces, most)
			}
		})
	}
}

func byNamespace(a, b *corev1.PersistentVolumeClaim) int {
	return cmp.Compare(a.Namespace, b.Namespace)
}

func byName(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) }

// releaseTogether creates that many unused claims in each of the namespaces, deletes all of them in that order, many at
// once, waits until they are gone, and returns how many live lists that took, and how long to delete them.
func releaseTogether(
	t *testing.T, envs []*env, count int, inOrder func(a, b *corev1.PersistentVolumeClaim) int,
) (lists int, took time.Duration) {
	t.Helper()
	claims := createTogether(t, envs, count)
	startOperator(t, harness.Options{})
	envs[0].sentinel() // What is deleted while it starts is taken for what it finds: that does not wait.
	slices.SortStableFunc(claims, inOrder)
	began := time.Now()
	deleteTogether(t, claims)
	took = time.Since(began)
	forEach(t, claims, func(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
		return harness.Eventually(ctx, patience, func(ctx context.Context) error { return exists(ctx, claim, false) })
	})
	t.Logf("deleted within %s, gone within %s", took, time.Since(began))
	var namespaces []string
	for _, e := range envs {
		namespaces = append(namespaces, e.namespace)
	}
	return liveLists(envs[0], namespaces...), took
}

// createTogether creates that many protected claims in each of the namespaces, with further finalizers.
func createTogether(t *testing.T, envs []*env, count int, finalizers ...string) []*corev1.PersistentVolumeClaim {
	t.Helper()
	var claims []*corev1.PersistentVolumeClaim
	for _, e := range envs {
		for i := range count {
			claim := harness.Claim(e.namespace, fmt.Sprintf("data-%d", i))
			claim.Finalizers = append([]string{harness.Finalizer}, finalizers...)
			claims = append(claims, claim)
		}
	}
	forEach(t, claims, func(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
		return suite.admin.Create(ctx, claim)
	})
	return claims
}

func deleteTogether(t *testing.T, claims []*corev1.PersistentVolumeClaim) {
	t.Helper()
	forEach(t, claims, func(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
		return suite.admin.Delete(ctx, claim)
	})
}

// forEach does something to all claims, many at once.
func forEach(
	t *testing.T, claims []*corev1.PersistentVolumeClaim,
	do func(context.Context, *corev1.PersistentVolumeClaim) error,
) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(64)
	for _, claim := range claims {
		group.Go(func() error { return do(ctx, claim) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(errors.Join(err, context.Cause(t.Context())))
	}
}
