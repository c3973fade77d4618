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
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/test/faultproxy"
)

// TestListsFailForAWhile has namespaces whose live lists fail beside healthy ones, which have to be released meanwhile.
// A failed list is one failure of its namespace, however many claims wait for it.
func TestListsFailForAWhile(t *testing.T) {
	t.Parallel()
	const (
		count    = 100
		failures = 6
	)
	e := newEnv(t, 4)
	failing, healthy := e.namespaces[:2], e.namespaces[2:]
	var made, used []*corev1.PersistentVolumeClaim
	var users []*corev1.Pod
	for _, namespace := range e.namespaces {
		made = append(made, e.claimsIn(namespace, count)...)
		claim, pod := e.usedClaim(namespace, "used")
		used, users = append(used, claim), append(users, pod)
	}
	// All turns can be taken by failing namespaces.
	e.start("--recheck-interval=1h", "--concurrent-namespaces=2")
	rule := e.proxy.Add(faultproxy.Rule{
		Match: faultproxy.Match{Verb: "list", Resource: pods, Where: func(r faultproxy.Request) bool {
			return slices.Contains(failing, r.Namespace)
		}},
		Fault: faultproxy.Answer(http.StatusInternalServerError),
	})
	e.deleteClaims(append(slices.Clone(used), made...))

	e.allGone(healthy, used...)
	e.hits(rule, len(failing)*failures)
	for _, namespace := range failing {
		left, err := e.left(t.Context(), namespace)
		e.fatalIf(err)
		if len(left) != count+1 {
			t.Errorf("%d claims are left in a namespace whose lists fail, want %d", len(left), count+1)
		}
	}
	rule.Remove()
	e.allGone(failing, used...)
	e.fatalIf(e.protected(t.Context(), used...))

	// Claims that are deleted one after the other may take several lists, at some distance to each other.
	const most = 10
	total := 0
	for _, namespace := range failing {
		total += e.proxy.Count(liveLists(namespace))
	}
	if total > rule.Hits()+most {
		t.Errorf("there were %d live lists in namespaces with %d failures", total, rule.Hits())
	}
	// The back-off goes from 50 ms to 30 s.
	if lists := rule.Hits(); lists > len(failing)*(failures+9) {
		t.Errorf("%d lists failed in the two minutes of the test at most", lists)
	}
	e.kill(users...)
	e.allGone(e.namespaces)
}

// TestHugeNamespace has one claim beside a namespace of many, which is not to wait for them.
func TestHugeNamespace(t *testing.T) {
	t.Parallel()
	const count = 1500
	e := newEnv(t, 2)
	huge, small := e.namespaces[0], e.namespaces[1]
	made := e.claimsIn(huge, count)
	claim := e.claimIn(small, "data")
	e.start("--recheck-interval=1h")
	patch := e.proxy.HoldResponses(patches(huge))
	e.deleteClaims(made)
	working := e.proxy.Add(faultproxy.Rule{Match: patches(huge)})
	patch.Release()
	e.hits(working, 100)
	e.delete(claim)
	e.gone(claim)
	if working.Hits() > count*9/10 {
		t.Errorf("the claim had to wait for %d others", working.Hits())
	}
	e.allGone(e.namespaces)
}

// TestRequestsHang has namespaces whose live lists or writes hang, as many as are worked on at once, beside a healthy one.
func TestRequestsHang(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]faultproxy.Match{"lists": liveLists(""), "writes": patches("")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const count = 250 // so many that they would hang for minutes, a few at once
			e := newEnv(t, 4)
			hanging, healthy := e.namespaces[:3], e.namespaces[3]
			var made []*corev1.PersistentVolumeClaim
			for _, namespace := range hanging {
				made = append(made, e.claimsIn(namespace, count)...)
			}
			claim := e.claimIn(healthy, "data")
			e.start("--recheck-interval=1h", "--concurrent-namespaces=3")
			match.Where = func(r faultproxy.Request) bool { return slices.Contains(hanging, r.Namespace) }
			gate := e.proxy.HoldRequests(match)
			e.deleteClaims(made)
			e.waiting(gate, 3)
			e.delete(claim)
			e.gone(claim)
			for _, namespace := range hanging {
				left, err := e.left(t.Context(), namespace)
				e.fatalIf(err)
				if len(left) != count {
					t.Errorf("%d claims are left in a namespace whose requests hang, want %d", len(left), count)
				}
			}
			gate.Release()
			e.allGone(e.namespaces)
		})
	}
}
