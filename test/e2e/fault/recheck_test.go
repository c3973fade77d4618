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

package fault_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

// TestHolderGoneBeforeRelist has a pod of which only a live list tells: it is gone when the operator's cache is filled
// anew, and no event says so. The claim has to go by itself.
func TestHolderGoneBeforeRelist(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"default interval": nil,
		"short interval":   {"--recheck-interval=5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, 1)
			claim := e.claim("data")
			o := e.start(args...)
			watch := e.proxy.HoldEvents(faultproxy.Match{Resource: pods})
			pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
			e.delete(claim)
			e.foundByLiveList(o, 1, claim)
			e.held(claim)

			e.kill(pod)
			again := e.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{
				Verb: "watch", Resource: pods,
				Where: func(r faultproxy.Request) bool { return !r.Resumed },
			}})
			e.proxy.Expire(faultproxy.Match{Resource: pods}, 1)
			watch.Release()
			e.hits(again, 1)
			e.gone(claim)
		})
	}
}

// TestHolderGoneUnnoticed has pods whose end the operator's cache misses for good: its watch is open and says nothing.
func TestHolderGoneUnnoticed(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 1)
	claim, pod := e.usedClaim(e.namespace, "data")
	kept, keeper := e.usedClaim(e.namespace, "kept")
	o := e.start("--recheck-interval=5s")
	e.delete(claim, kept)
	e.counted(o, 2, "pvc_protection_answers_total", `answer="blocked"`, `source="cache"`)

	watch := e.proxy.HoldEvents(faultproxy.Match{Resource: pods})
	e.kill(pod)
	e.gone(claim)
	e.held(kept)
	watch.Release()
	e.kill(keeper)
	e.gone(kept)
}

// TestDeletionUnnoticed has a claim that is deleted while the watch of claims is broken, and one that is recreated.
func TestDeletionUnnoticed(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 1)
	deleted := e.claim("deleted")
	recreated, pod := e.usedClaim(e.namespace, "recreated")
	o := e.start("--recheck-interval=1h")
	e.delete(recreated)
	e.counted(o, 1, "pvc_protection_answers_total", `answer="blocked"`, `source="cache"`)

	watch := e.proxy.HoldEvents(faultproxy.Match{Resource: claims})
	e.delete(deleted)
	e.removeFinalizer(recreated, harness.Finalizer)
	e.gone(recreated)
	recreated = e.claim("recreated")
	e.kill(pod) // the operator looks at a claim that is no more
	e.superseded(o)
	e.held(recreated)
	e.fatalIf(e.protected(t.Context(), deleted))

	e.proxy.Expire(faultproxy.Match{Resource: claims}, 1)
	watch.Release()
	e.gone(deleted)
	e.delete(recreated)
	e.gone(recreated)
}

// TestLostNode has a pod as it is left over by a node that is lost: it is deleted, then by force, its containers are
// reported as running, and a finalizer keeps it.
func TestLostNode(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 1)
	plain := e.claim("plain")
	pod := e.pod("web", harness.OnNode(node), harness.WithFinalizer(foreignFinalizer),
		harness.WithClaim("plain"), harness.WithEphemeral("scratch"))
	ephemeral := harness.EphemeralClaim(pod, "scratch")
	e.create(ephemeral)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Image: "example.com/main", ImageID: "example.com/main", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	e.fatalIf(e.admin.Status().Update(t.Context(), pod))
	o := e.start("--recheck-interval=1h")

	e.delete(plain, ephemeral, pod) // with the pod's grace period of 30 s
	e.counted(o, 2, "pvc_protection_answers_total", `answer="blocked"`)
	e.fatalIf(e.admin.Get(t.Context(), key(e.namespace, "web"), pod))
	if grace := pod.DeletionGracePeriodSeconds; grace == nil || *grace == 0 {
		t.Fatalf("the pod has the grace period %v", grace)
	}
	e.held(plain, ephemeral)

	e.kill(pod)
	e.gone(ephemeral)
	e.fatalIf(e.admin.Get(t.Context(), key(e.namespace, "web"), pod))
	if pod.Status.ContainerStatuses[0].State.Running == nil {
		t.Fatal("the pod's container has ended")
	}
	e.held(plain)

	e.removeFinalizer(pod, foreignFinalizer)
	e.gone(plain)
}
