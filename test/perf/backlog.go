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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"pvc-protection-operator/internal/controller"
	"pvc-protection-operator/test/harness"
)

// backlog is work that waits when the contender starts. Its time is that from the
// first live list or write to the answer to the last write, by the audit log; the
// start of the process is not in it.
type backlog struct {
	namespaces int
	// claims and pods are those of each namespace. The pods use no claim.
	claims, pods int
	// adopt is set if the claims are to be protected, not released.
	adopt bool
}

func (s backlog) total() int     { return s.namespaces * s.claims }
func (s backlog) hasFloor() bool { return true }

func (s backlog) load(ctx context.Context, e *env) error {
	if err := e.createNamespaces(ctx, s.namespaces); err != nil {
		return err
	}
	return e.createPods(ctx, s.namespaces*s.pods, s.namespaces, 0)
}

// prepare makes the claims and, unless they are to be adopted, deletes them: their
// finalizer keeps them.
func (s backlog) prepare(ctx context.Context, e *env) error {
	return each(s.total(), func(i int) error {
		claim := harness.Claim(namespaceName(i%s.namespaces), claimName(i))
		if err := e.client.Create(ctx, claim); err != nil || s.adopt {
			return err
		}
		return e.client.Delete(ctx, claim)
	})
}

func (s backlog) measure(ctx context.Context, e *env, ct contender, r *result) error {
	since := time.Now()
	if err := s.work(ctx, e, ct, r); err != nil {
		return err
	}
	if err := s.done(ctx, e); err != nil {
		return err
	}
	seen, err := e.audit(ctx, ct, since, s.total())
	if err != nil {
		return err
	}
	seen.report(r)
	r.set(seconds, seen.last.Sub(seen.first).Seconds())
	return nil
}

func (s backlog) work(ctx context.Context, e *env, ct contender, r *result) error {
	if ct.isFloor() {
		return s.patchAll(ctx, e, ct)
	}
	p, err := startProcess(ct, e.cluster)
	if err != nil {
		return err
	}
	// The times are the audit log's. Looking often would only slow the API server down.
	err = wait.PollUntilContextCancel(ctx, time.Second, false, func(ctx context.Context) (bool, error) {
		if s.adopt {
			return s.done(ctx, e) == nil, nil
		}
		left, err := e.claimsLeft(ctx, 1)
		return left == 0, err
	})
	if err := p.stop(r); err != nil {
		return err
	}
	return err
}

// done returns an error unless the work is done, and as it should be.
func (s backlog) done(ctx context.Context, e *env) error {
	if !s.adopt {
		left, err := e.claimsLeft(ctx, 0)
		if err == nil && left > 0 {
			err = fmt.Errorf("%d of %d claims are left", left, s.total())
		}
		return err
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := e.client.List(ctx, claims); err != nil {
		return err
	}
	protected := 0
	for i := range claims.Items {
		if controllerutil.ContainsFinalizer(&claims.Items[i], harness.Finalizer) {
			protected++
		}
	}
	if protected != s.total() {
		return fmt.Errorf("%d of %d claims are protected", protected, s.total())
	}
	return nil
}

func (s backlog) clean(ctx context.Context, e *env) error {
	if !s.adopt {
		return nil // Nothing is left: done has seen to it.
	}
	return each(s.total(), func(i int) error {
		claim := harness.Claim(namespaceName(i%s.namespaces), claimName(i))
		if err := e.client.Patch(ctx, claim, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			return err
		}
		return e.client.Delete(ctx, claim)
	})
}

// patchAll is the floor.
func (s backlog) patchAll(ctx context.Context, e *env, ct contender) error {
	patcher, err := newClient(e, ct.agent)
	if err != nil {
		return err
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := e.client.List(ctx, claims); err != nil {
		return err
	}
	key := "$deleteFromPrimitiveList/finalizers"
	if s.adopt {
		key = "finalizers"
	}
	defaults := controller.DefaultOptions()
	inFlight := defaults.ConcurrentWrites * min(s.namespaces, defaults.ConcurrentNamespaces)
	return eachOf(inFlight, len(claims.Items), func(i int) error {
		claim := &claims.Items[i]
		return patcher.Patch(ctx, claim, finalizerPatch(claim, key))
	})
}

func newClient(e *env, agent string) (client.Client, error) {
	config := e.cluster.Config()
	config.UserAgent = agent
	return client.New(config, client.Options{})
}

func finalizerPatch(claim *corev1.PersistentVolumeClaim, key string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"metadata":{"uid":%q,%q:[%q]}}`, claim.UID, key, harness.Finalizer))
}
