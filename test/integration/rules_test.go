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
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// TestRules has a subtest for every rule of use, all with one operator that runs with the arguments of the Deployment.
func TestRules(t *testing.T) {
	startOperator(t, harness.Options{Args: append(deploymentArgs(t),
		// An hour, so that nothing happens but by an event.
		"--recheck-interval=1h",
	)})

	rules := map[string]func(*env){
		"a claim without the finalizer gets it":               testProtect,
		"a finalizer that somebody takes off comes back":      testProtectAgain,
		"an unused claim goes":                                testRelease,
		"what others put on a claim stays on it":              testForeignMetadata,
		"a terminating claim without the finalizer is left":   testTerminatingUnprotected,
		"a claim with several holders waits for the last":     testSeveralHolders,
		"one pod holds all of its claims":                     testSeveralClaims,
		"claims of the same name are of different namespaces": testSameNameElsewhere,
		"a recreated claim is another one":                    testRecreatedClaim,
		"an unscheduled pod does not hold":                    testUnscheduled,
		"a pod holds once it is scheduled":                    testScheduledLater,
		"a pod that is shutting down holds":                   testShuttingDown,
		"a pod replaced under its name does not hold":         testReplacedPod,
		"a pod that ends meanwhile holds":                     testEndsMeanwhile,

		"an ephemeral volume's claim is held by its pod":         testEphemeral,
		"an ephemeral volume holds no claim of the same name":    testEphemeralNotOwned,
		"a shut-down pod holds no ephemeral volume's claim":      testShutDownEphemeral,
		"a shut-down pod holds the claims that it names":         testShutDownNamed,
		"an unscheduled pod holds no ephemeral volume's claim":   testEphemeralUnscheduled,
		"an ephemeral volume's claim can be named by other pods": testEphemeralNamed,

		"an event says who holds a claim":          testEvent,
		"an event says when the first holder goes": testEventOnFirstChange,
		"an event says when another holder goes":   testEventOnLaterChange,
		"an event says that a claim is released":   testEventOnRelease,
		"an event says so of an unused claim, too": testEventOfUnusedClaim,
		"an event tells of an ephemeral volume":    testEventOfEphemeralVolume,
	}
	for _, phase := range []corev1.PodPhase{
		corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown,
	} {
		rules[fmt.Sprintf("a scheduled pod that is %s holds", phase)] = func(e *env) { testHolder(e, phase) }
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules[name](newEnv(t))
		})
	}
}

func testProtect(e *env) {
	claim := harness.Claim(e.namespace, "data")
	e.create(claim)
	if len(claim.Finalizers) > 0 {
		e.Fatalf("the API server puts the finalizers %q on a new claim, there is nothing to see", claim.Finalizers)
	}
	e.protected(claim)
}

func testProtectAgain(e *env) {
	claim := e.claim("data")
	e.removeFinalizer(claim, harness.Finalizer)
	e.protected(claim)
}

func testRelease(e *env) {
	claim := e.claim("data")
	e.delete(claim)
	e.gone(claim)
}

func testHolder(e *env, phase corev1.PodPhase) {
	claim := e.claim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.setPhase(pod, phase)
	e.delete(claim)
	e.held(claim)
	e.kill(pod)
	e.gone(claim)
}

func testForeignMetadata(e *env) {
	foreign := func(claim *corev1.PersistentVolumeClaim) {
		claim.Finalizers = []string{foreignFinalizer, "example.com/other"}
		claim.Labels = map[string]string{"app": "web"}
		claim.Annotations = map[string]string{"example.com/note": "mine"}
	}
	claim := e.claim("data", foreign)
	want := harness.Claim(e.namespace, "data")
	foreign(want)
	unchanged := func(finalizers ...string) harness.Condition {
		return func(ctx context.Context) error {
			if err := exists(ctx, claim, true); err != nil {
				return err
			}
			if !slices.Equal(slices.Sorted(slices.Values(claim.Finalizers)), slices.Sorted(slices.Values(finalizers))) ||
				!maps.Equal(claim.Labels, want.Labels) || !maps.Equal(claim.Annotations, want.Annotations) {
				return fmt.Errorf("finalizers %q, labels %q, annotations %q", claim.Finalizers, claim.Labels, claim.Annotations)
			}
			return nil
		}
	}
	e.fatalIf(unchanged(append(want.Finalizers, harness.Finalizer)...)(e.Context()))

	e.delete(claim)
	e.eventually("only the operator's finalizer has to go", unchanged(want.Finalizers...))
	e.consistently("what others put on the claim has to stay", unchanged(want.Finalizers...))
}

func testTerminatingUnprotected(e *env) {
	claim := e.claim("data", func(claim *corev1.PersistentVolumeClaim) { claim.Finalizers = []string{foreignFinalizer} })
	e.delete(claim)
	e.eventually("the operator's finalizer has to go", func(ctx context.Context) error {
		if err := e.hasFinalizer(ctx, claim, harness.Finalizer); err == nil {
			return fmt.Errorf("the finalizers are %q", claim.Finalizers)
		}
		return exists(ctx, claim, true)
	})
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data")) // no reason to come back to it
	e.kill(pod)
	e.sentinel()
	if patches := patchesOf(e, "data"); patches != 2 {
		e.Errorf("the operator wrote to the claim %d times, want once to protect and once to release it", patches)
	}
	e.removeFinalizer(claim, foreignFinalizer)
	e.gone(claim)
}

func testSeveralHolders(e *env) {
	claim := e.claim("data")
	var pods []*corev1.Pod
	for i := range 3 {
		pods = append(pods, e.pod(fmt.Sprintf("web-%d", i), harness.OnNode(node), harness.WithClaim("data")))
	}
	e.delete(claim)
	e.held(claim)
	for i, pod := range pods {
		e.kill(pod)
		if i < len(pods)-1 {
			e.held(claim)
		}
	}
	e.gone(claim)
}

func testSeveralClaims(e *env) {
	first, second, third := e.claim("first"), e.claim("second"), e.claim("third")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("first"), harness.WithClaim("second"))
	e.delete(first, second, third)
	e.gone(third)
	e.held(first, second)
	e.kill(pod)
	e.gone(first, second)
}

func testSameNameElsewhere(e *env) {
	other := newEnv(e.T)
	used, unused := e.claim("data"), other.claim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	other.pod("web", harness.OnNode(node), harness.WithClaim("other"))
	e.delete(used, unused)
	other.gone(unused)
	e.held(used)
	e.kill(pod)
	e.gone(used)
}

func testRecreatedClaim(e *env) {
	for range 3 {
		old := e.claim("data")
		e.delete(old)
		e.gone(old)
		claim := e.claim("data")
		e.sentinel()
		e.consistently("the new claim has to stay protected", func(ctx context.Context) error {
			return e.hasFinalizer(ctx, claim, harness.Finalizer)
		})
		e.delete(claim)
		e.gone(claim)
	}
}

func testUnscheduled(e *env) {
	claim := e.claim("data")
	e.pod("web", harness.WithClaim("data"))
	e.delete(claim)
	e.gone(claim)
}

func testScheduledLater(e *env) {
	claim := e.claim("data")
	pod := e.pod("web", harness.WithClaim("data"))
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	e.fatalIf(suite.admin.SubResource("binding").Create(e.Context(), pod, binding))
	e.delete(claim)
	e.held(claim)
	e.kill(pod)
	e.gone(claim)
}

func testShuttingDown(e *env) {
	claim := e.claim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.fatalIf(suite.admin.Delete(e.Context(), pod, client.GracePeriodSeconds(600)))
	e.delete(claim)
	e.held(claim)
	e.kill(pod)
	e.gone(claim)
}

func testReplacedPod(e *env) {
	claim := e.claim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim)
	e.held(claim)
	e.kill(pod)
	e.pod("web", harness.OnNode(node), harness.WithClaim("other"))
	e.gone(claim)
}

func testEndsMeanwhile(e *env) {
	claim := e.claim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.setPhase(pod, corev1.PodRunning)
	e.delete(claim)
	e.held(claim)
	e.setPhase(pod, corev1.PodSucceeded)
	e.held(claim)
	e.kill(pod)
	e.gone(claim)
}
