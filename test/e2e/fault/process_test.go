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
	"syscall"
	"testing"

	"pvc-protection-operator/test/faultproxy"
)

// TestKilled has an operator that is killed in the middle of a backlog. The next one does the rest.
func TestKilled(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 2)
	b := e.backlog(150)
	o := e.start("--recheck-interval=1h")
	// Of the patches in flight some are done when the operator dies, and some are not.
	const before = 100
	gate := faultproxy.NewGate()
	working := e.proxy.Add(faultproxy.Rule{Match: patches(""), Skip: before, Fault: gate.HoldRequest()})
	e.deleteBacklog(b)
	e.hits(working, 1)
	e.fatalIf(o.Kill())
	gate.Release()
	working.Remove()

	e.fatalIf(e.protected(t.Context(), b.used...))
	left := 0
	for _, namespace := range e.namespaces {
		claims, err := e.left(t.Context(), namespace)
		e.fatalIf(err)
		left += len(claims)
	}
	if most := len(b.free) + len(b.used); left <= len(b.used) || left >= most {
		t.Fatalf("%d of %d claims are left, the test wants the middle", left, most)
	}
	e.start("--recheck-interval=1h")
	e.released(b)
}

// TestStopped has an operator that is told to end while patches are under way. It waits for these, begins no others and
// ends well.
func TestStopped(t *testing.T) {
	t.Parallel()
	const inFlight = 16
	for name, hold := range map[string]func(*faultproxy.Proxy, faultproxy.Match) *faultproxy.Gate{
		"before the server": (*faultproxy.Proxy).HoldRequests,
		"after the server":  (*faultproxy.Proxy).HoldResponses,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, 1)
			b := e.backlog(3 * inFlight)
			gate := hold(e.proxy, patches(e.namespace))
			e.deleteBacklog(b) // what the operator finds at its start makes one batch
			o := e.start("--recheck-interval=1h", "--batch-window=1s")
			e.waiting(gate, inFlight)
			e.fatalIf(o.Signal(syscall.SIGTERM))
			ctx, cancel := context.WithTimeout(t.Context(), vigilance)
			defer cancel()
			if exitCode, err := o.Wait(ctx); err == nil {
				t.Fatalf("the operator has ended with code %d and has not waited for what is in flight", exitCode)
			}
			gate.Release()
			exitCode, err := o.Wait(t.Context())
			e.fatalIf(err)
			if exitCode != 0 {
				t.Errorf("the exit code is %d", exitCode)
			}

			left, err := e.left(t.Context(), e.namespace)
			e.fatalIf(err)
			if released := len(b.free) + len(b.used) - len(left); released != inFlight {
				t.Errorf("%d claims were released, %d patches were in flight", released, inFlight)
			}
			if count := e.proxy.Count(patches(e.namespace)); count != inFlight {
				t.Errorf("there were %d patches, want %d", count, inFlight)
			}
			e.start("--recheck-interval=1h")
			e.released(b)
		})
	}
}
