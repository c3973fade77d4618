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
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

// scenario is work for a contender.
type scenario struct {
	Name       string
	namespaces int
	// claims and pods are those of each namespace. The pods use no claim.
	claims, pods int
	// adopt is set if the claims are to be protected, not released.
	adopt bool
	// podBytes is the size of a pod, roughly. Defaults to that of a small one.
	podBytes int
}

// idle is set if there is nothing to do: what counts is the memory.
func (s scenario) idle() bool { return s.claims == 0 }

var scenarios = []scenario{
	{Name: "backlog, 1 namespace: 5,000 claims, 5,000 other pods", namespaces: 1, claims: 5000, pods: 5000},
	{Name: "backlog, 100 namespaces: 50 claims, 50 other pods each", namespaces: 100, claims: 50, pods: 50},
	{Name: "adopt, 10 namespaces: 200 claims each", namespaces: 10, claims: 200, adopt: true},
	{Name: "idle, 50 namespaces: 1,000 pods of 4 KB each", namespaces: 50, pods: 1000, podBytes: 4 << 10},
}

// loaders is how many requests that load the cluster are in flight.
const loaders = 16

// patience bounds the run of a contender.
const patience = 10 * time.Minute

func (s scenario) total() int { return s.namespaces * s.claims }

// run lets the contenders work on the scenario in turn, in an order that differs
// with n, in a fresh cluster.
func (s scenario) run(ctx context.Context, binary string, n int) (results []result, err error) {
	options := cluster.Options{}
	if s.adopt {
		options.DisableAdmissionPlugins = []string{"StorageObjectInUseProtection"}
	}
	c, err := cluster.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	cl, err := client.New(c.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.loadPods(ctx, cl); err != nil {
		return nil, err
	}
	for i := range contenders {
		contender := contenders[(i+n)%len(contenders)]
		if s.idle() && contender.command == nil {
			continue
		}
		if err := s.loadClaims(ctx, cl); err != nil {
			return nil, err
		}
		measured, err := contender.measure(ctx, c, binary, s, cl)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", contender.name, err)
		}
		if err := s.removeClaims(ctx, cl); err != nil {
			return nil, err
		}
		results = append(results, measured)
	}
	return results, nil
}

func (s scenario) namespace(i int) string { return fmt.Sprintf("bench-%d", i) }

func (s scenario) loadPods(ctx context.Context, cl client.Client) error {
	for i := range s.namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace(i)}}
		if err := cl.Create(ctx, namespace); err != nil {
			return err
		}
	}
	return each(s.namespaces*s.pods, func(i int) error {
		pod := harness.Pod(s.namespace(i%s.namespaces), fmt.Sprintf("other-%d", i), harness.OnNode("node"))
		pod.Annotations = map[string]string{"example.com/filler": strings.Repeat("x", s.podBytes)}
		return cl.Create(ctx, pod)
	})
}

// loadClaims makes the claims of the scenario and, unless they are to be adopted,
// deletes them: their finalizer keeps them.
func (s scenario) loadClaims(ctx context.Context, cl client.Client) error {
	return each(s.total(), func(i int) error {
		claim := harness.Claim(s.namespace(i%s.namespaces), fmt.Sprintf("claim-%d", i))
		if err := cl.Create(ctx, claim); err != nil {
			return err
		}
		if s.adopt {
			return nil
		}
		return cl.Delete(ctx, claim)
	})
}

// done returns an error unless the work is done, and as it should be.
func (s scenario) done(ctx context.Context, cl client.Client) error {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := cl.List(ctx, claims); err != nil {
		return err
	}
	left := len(claims.Items)
	if s.adopt {
		if left != s.total() {
			return fmt.Errorf("there are %d claims instead of %d", left, s.total())
		}
		for i := range claims.Items {
			if controllerutil.ContainsFinalizer(&claims.Items[i], harness.Finalizer) {
				left--
			}
		}
	}
	if left > 0 {
		return fmt.Errorf("%d of %d claims are left to do", left, s.total())
	}
	return nil
}

// seemsDone is a cheap look at whether the work is done.
func (s scenario) seemsDone(ctx context.Context, cl client.Client) (bool, error) {
	if s.adopt {
		return s.done(ctx, cl) == nil, ctx.Err()
	}
	claims := &metav1.PartialObjectMetadataList{}
	claims.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
	err := cl.List(ctx, claims, client.Limit(1))
	return err == nil && len(claims.Items) == 0, err
}

func (s scenario) removeClaims(ctx context.Context, cl client.Client) error {
	if !s.adopt {
		return s.done(ctx, cl)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := cl.List(ctx, claims); err != nil {
		return err
	}
	return each(len(claims.Items), func(i int) error {
		claim := &claims.Items[i]
		if err := cl.Patch(ctx, claim, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			return err
		}
		return cl.Delete(ctx, claim)
	})
}

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
