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

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// burst is pods that are deleted while their claims, in deletion, wait. Its time is
// that from the answer to the last pod's deletion to the answer to the last write.
type burst struct {
	// claims each have a pod of their own; pods are others. All are in one namespace.
	claims, pods int
}

func (s burst) hasFloor() bool { return false }

func (s burst) load(ctx context.Context, e *env) error {
	if err := e.createNamespaces(ctx, 1); err != nil {
		return err
	}
	return e.createPods(ctx, s.pods, 1, 0)
}

func (s burst) prepare(ctx context.Context, e *env) error { return e.createHeld(ctx, s.claims) }

func (s burst) measure(ctx context.Context, e *env, ct contender, r *result) error {
	p, err := startProcess(ct, e.cluster)
	if err != nil {
		return err
	}
	since, podsGone, err := s.deletePods(ctx, e, p)
	if err := p.stop(r); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	seen, err := e.audit(ctx, ct, since, s.claims)
	if err != nil {
		return err
	}
	seen.report(r)
	r.set(seconds, max(0, seen.last.Sub(podsGone).Seconds()))
	r.set(trafficSeconds, podsGone.Sub(since).Seconds())
	return nil
}

// deletePods deletes the pods once the process is quiet, and waits for the claims to go.
func (s burst) deletePods(ctx context.Context, e *env, p *process) (since, podsGone time.Time, err error) {
	if _, err := p.settle(ctx); err != nil {
		return since, podsGone, err
	}
	if left, err := e.claimsLeft(ctx, 0); err != nil || left != s.claims {
		return since, podsGone, fmt.Errorf("%d of %d claims in use are left: %w", left, s.claims, err)
	}
	since = time.Now()
	if err := each(s.claims, func(i int) error {
		return e.client.Delete(ctx, heldBy(i), client.GracePeriodSeconds(0))
	}); err != nil {
		return since, podsGone, err
	}
	podsGone = time.Now()
	return since, podsGone, wait.PollUntilContextCancel(ctx, time.Second, false, func(ctx context.Context) (bool, error) {
		left, err := e.claimsLeft(ctx, 1)
		return left == 0, err
	})
}

func (s burst) clean(context.Context, *env) error { return nil }

// hold is pods that change while their claims, in deletion, wait. What counts is the
// CPU time that an event takes.
type hold struct {
	claims, rounds int
}

func (s hold) hasFloor() bool { return false }

func (s hold) load(ctx context.Context, e *env) error { return e.createNamespaces(ctx, 1) }

func (s hold) prepare(ctx context.Context, e *env) error { return e.createHeld(ctx, s.claims) }

func (s hold) measure(ctx context.Context, e *env, ct contender, r *result) error {
	p, err := startProcess(ct, e.cluster)
	if err != nil {
		return err
	}
	used, err := s.changePods(ctx, e, p)
	if err := p.stop(r); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	left, err := e.claimsLeft(ctx, 0)
	if err != nil || left != s.claims {
		return fmt.Errorf("%d of %d claims in use are left: %w", left, s.claims, err)
	}
	r.set(eventMicroseconds, float64(used.Microseconds())/float64(s.claims*s.rounds))
	return nil
}

// changePods returns the CPU time that the process uses for the changes, until it
// is quiet again.
func (s hold) changePods(ctx context.Context, e *env, p *process) (time.Duration, error) {
	if _, err := p.settle(ctx); err != nil {
		return 0, err
	}
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	for round := range s.rounds {
		if err := each(s.claims, func(i int) error {
			patch := fmt.Appendf(nil, `{"status":{"message":"round %d"}}`, round)
			return e.client.Status().Patch(ctx, heldBy(i), client.RawPatch("application/merge-patch+json", patch))
		}); err != nil {
			return 0, err
		}
	}
	if _, err := p.settle(ctx); err != nil {
		return 0, err
	}
	after, err := p.cpu()
	return after - before, err
}

func (s hold) clean(ctx context.Context, e *env) error { return e.removeHeld(ctx, s.claims) }
