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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pvc-protection-operator/test/harness"
)

// idle is nothing to do: what counts is what it takes to start, and to be there.
type idle struct {
	namespaces int
	// pods are of about 4 KB each; the first ones use one claim each.
	pods, claims int
}

// podBytes is about how large a pod is.
const podBytes = 4 << 10

func (s idle) hasFloor() bool { return false }

func (s idle) load(ctx context.Context, e *env) error {
	if err := e.createNamespaces(ctx, s.namespaces); err != nil {
		return err
	}
	if err := e.createPods(ctx, s.pods-s.claims, s.namespaces, podBytes); err != nil {
		return err
	}
	return each(s.claims, func(i int) error {
		claim := harness.Claim(namespaceName(i%s.namespaces), claimName(i))
		claim.Spec.VolumeName = fmt.Sprintf("volume-%d", i)
		if err := e.client.Create(ctx, claim); err != nil {
			return err
		}
		// As it is once the condition has been written.
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionFalse,
			Reason: "PodUsingPVC", LastTransitionTime: metav1.Now(),
		}}
		if err := e.client.Status().Update(ctx, claim); err != nil {
			return err
		}
		pod := harness.Pod(claim.Namespace, fmt.Sprintf("user-%d", i), harness.OnNode("node"), harness.WithClaim(claim.Name))
		pod.Annotations = map[string]string{"example.com/filler": strings.Repeat("x", podBytes)}
		return e.client.Create(ctx, pod)
	})
}

func (s idle) prepare(context.Context, *env) error { return nil }
func (s idle) clean(context.Context, *env) error   { return nil }

func (s idle) measure(ctx context.Context, e *env, ct contender, r *result) error {
	since := time.Now()
	p, err := startProcess(ct, e.cluster)
	if err != nil {
		return err
	}
	quiet, err := p.settle(ctx)
	if err == nil {
		r.set(startSeconds, quiet.Sub(p.started).Seconds())
		_, err = p.settle(ctx)
	}
	if err := errors.Join(err, p.stop(r)); err != nil {
		return err
	}
	seen, err := e.audit(ctx, ct, since, 0)
	if err == nil && seen.writes > 0 {
		err = fmt.Errorf("it wrote to %d claims, and there was nothing to write", seen.writes)
	}
	return err
}
