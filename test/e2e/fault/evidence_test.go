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
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

// TestPodUnknownToCache has pods of which the operator's cache does not know, or does not know that they are scheduled.
func TestPodUnknownToCache(t *testing.T) {
	t.Parallel()
	for name, schedule := range map[string]func(*env) *corev1.Pod{
		"created": func(e *env) *corev1.Pod {
			return e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
		},
		"bound": func(e *env) *corev1.Pod {
			pod := &corev1.Pod{}
			e.fatalIf(e.admin.Get(e.Context(), key(e.namespace, "early"), pod))
			e.bind(pod)
			return pod
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, 1)
			claim := e.claim("data")
			e.pod("early", harness.WithClaim("data"))
			o := e.start("--recheck-interval=1h")
			watch := e.proxy.HoldEvents(faultproxy.Match{Resource: pods})
			pod := schedule(e)
			e.waiting(watch, 1)
			e.delete(claim)
			e.foundByLiveList(o, 1, claim)
			e.held(claim)

			watch.Release()
			e.kill(pod)
			e.gone(claim)
		})
	}
}

// TestListFromBeforeDeletion has a claim that is deleted, and a pod that uses it, when the live list for another claim
// of its batch has been answered: that list says nothing about it.
func TestListFromBeforeDeletion(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 1)
	first, second := e.claim("first"), e.claim("second")
	// Its end lets the operator look at the second claim.
	other := e.pod("other", harness.WithClaim("second"))
	pod := e.pod("web", harness.WithClaim("second"))
	o := e.start("--recheck-interval=1h", "--batch-window=2s")
	e.working()
	list := e.proxy.HoldResponses(liveLists(e.namespace))

	e.delete(first)
	e.kill(other)
	e.waiting(list, 1)
	watch := e.proxy.HoldEvents(faultproxy.Match{Resource: pods})
	e.bind(pod)
	e.passOn(claims, func() { e.delete(second) })
	e.held(first, second)
	list.Release()
	e.gone(first)
	e.foundByLiveList(o, 1, second)
	e.held(second)

	watch.Release()
	e.kill(pod)
	e.gone(second)
}

// TestEvidenceAges has a patch that hangs, and others that wait for their turn behind it until what they rest on is too
// old. They need a new list, and that one shows pods that came after the first.
func TestEvidenceAges(t *testing.T) {
	t.Parallel()
	const count = 3
	e := newEnv(t, 1)
	made := e.claimsIn(e.namespace, count)
	o := e.start("--recheck-interval=1h", "--batch-window=1s", "--concurrent-writes=1")
	gate := faultproxy.NewGate()
	rule := e.proxy.Add(faultproxy.Rule{Match: patches(e.namespace), Times: 1, Fault: gate.HoldRequest()})
	watch := e.proxy.HoldEvents(faultproxy.Match{Resource: pods})
	e.deleteClaims(made)
	e.hits(rule, 1)
	var users []*corev1.Pod
	for _, claim := range made {
		users = append(users, e.pod("user-of-"+claim.Name, harness.OnNode(node), harness.WithClaim(claim.Name)))
	}
	e.foundByLiveList(o, count, made...)
	gate.Release()
	e.held(made...)

	watch.Release()
	e.kill(users...)
	e.gone(made...)
}

// working waits until the operator handles events and not only what it finds at its start, which may be some time after
// it is ready.
func (e *env) working() {
	e.Helper()
	sentinel := e.claim("sentinel")
	e.delete(sentinel)
	e.gone(sentinel)
}

// passOn does something and waits until the operator's watch of the resource has delivered that something happened.
func (e *env) passOn(resource string, do func()) {
	e.Helper()
	delivered := func() int64 {
		return e.proxy.Snapshot()[faultproxy.Kind{Verb: "watch", Resource: resource, Namespace: e.namespace}].Bytes
	}
	before := delivered()
	do()
	e.eventually("the operator has to be told", func(context.Context) error {
		if now := delivered(); now <= before {
			return fmt.Errorf("%d bytes were delivered", now)
		}
		return nil
	})
}
