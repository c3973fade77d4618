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
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/test/harness"
)

// TestStart has an operator that comes to claims from before its time.
func TestStart(t *testing.T) {
	e := newEnv(t)
	old := func(name string, finalizers ...string) *corev1.PersistentVolumeClaim {
		claim := harness.Claim(e.namespace, name)
		claim.Finalizers = finalizers
		e.create(claim)
		return claim
	}
	plain, foreign, done := old("plain"), old("foreign", foreignFinalizer), old("done", harness.Finalizer)
	unused, used := old("unused", harness.Finalizer), old("used", harness.Finalizer)
	ended, foreignDeleted := old("ended", harness.Finalizer), old("foreign-deleted", foreignFinalizer)

	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("used"))
	endedPod := e.pod("job", harness.OnNode(node), harness.WithClaim("ended"))
	e.setPhase(endedPod, corev1.PodFailed)
	shutDown := e.pod("shut-down", harness.OnNode(node), harness.WithEphemeral("scratch"),
		harness.WithFinalizer(foreignFinalizer))
	scratch := harness.EphemeralClaim(shutDown, "scratch")
	scratch.Finalizers = []string{harness.Finalizer}
	e.create(scratch)
	e.kill(shutDown)
	e.delete(unused, used, ended, foreignDeleted, scratch)

	startOperator(t, harness.Options{Args: []string{"--recheck-interval=1h"}})
	e.protected(plain)
	e.protected(foreign)
	e.fatalIf(e.hasFinalizer(t.Context(), foreign, foreignFinalizer))
	e.gone(unused, scratch)
	e.held(used, ended)
	for _, claim := range []*corev1.PersistentVolumeClaim{done, foreignDeleted} {
		if patches := patchesOf(e, claim.Name); patches > 0 {
			t.Errorf("the operator wrote to claim %s %d times", claim.Name, patches)
		}
	}

	e.kill(pod, endedPod)
	e.gone(used, ended)
	for _, object := range []*corev1.PersistentVolumeClaim{foreign, foreignDeleted} {
		e.removeFinalizer(object, foreignFinalizer)
	}
	e.gone(foreignDeleted)
	e.removeFinalizer(shutDown, foreignFinalizer)
}

// TestAPIServerAway has an API server that goes away and comes back.
func TestAPIServerAway(t *testing.T) {
	e := newEnv(t)
	o := startOperator(t, harness.Options{Args: []string{"--recheck-interval=1h"}})
	claim := e.claim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim)
	e.held(claim)

	from := time.Now()
	e.fatalIf(suite.cluster.StopAPIServer())
	e.fatalIf(suite.cluster.StartAPIServer(t.Context()))
	away = append(away, period{from, time.Now()})
	e.held(claim)
	e.kill(pod)
	e.gone(claim)
	e.eventually("the operator has to be ready", o.Ready)
}

// TestFinalizer has an operator with a finalizer of its own, which runs beside somebody who uses the usual one.
func TestFinalizer(t *testing.T) {
	const own = "example.com/in-use"
	e := newEnv(t)
	startOperator(t, harness.Options{Args: []string{"--finalizer=" + own, "--watch-namespaces=" + e.namespace}})
	claim := harness.Claim(e.namespace, "data")
	claim.Finalizers = []string{harness.Finalizer}
	e.create(claim)
	e.eventually("the claim has to be protected", func(ctx context.Context) error { return e.hasFinalizer(ctx, claim, own) })
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim)
	e.saysBlocked(claim, "web")
	e.fatalIf(e.hasFinalizer(t.Context(), claim, own))
	e.kill(pod)

	e.eventually("only the usual finalizer has to be left", func(ctx context.Context) error {
		if err := e.hasFinalizer(ctx, claim, harness.Finalizer); err != nil {
			return err
		}
		if len(claim.Finalizers) != 1 {
			return fmt.Errorf("the finalizers are %q", claim.Finalizers)
		}
		return nil
	})
	e.removeFinalizer(claim, harness.Finalizer)
	e.gone(claim)
}
