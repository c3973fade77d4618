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

package model

import (
	"testing"
)

// explored returns all states of the model. In none is a claim gone that a pod
// uses: the rule is the same as in Safety.
func explored(t *testing.T, model Recheck) *Graph[Look] {
	t.Helper()
	graph, found := Explore(model, func(s Look) bool { return s.pod == bound && s.claim.gone() }, limit)
	if found {
		t.Fatalf("a claim in use is released:\n%s", graph.Trace(graph.Last()))
	}
	if !graph.Full() {
		t.Fatalf("not all states visited: %d", graph.Len())
	}
	return graph
}

func TestNoClaimWaitsForNothing(t *testing.T) {
	for _, test := range []struct {
		name  string
		model Recheck
	}{
		{"as built", Recheck{AfterCache: true, AfterList: true}},
		// With every change of a pod's holder noticed, one recheck is enough.
		{"recheck after live lists only", Recheck{AfterList: true}},
		// And with both rechecks, a change that is not noticed does no harm.
		{"replaced pods ignored", Recheck{AfterCache: true, AfterList: true, IgnoresReplaced: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			graph := explored(t, test.model)
			if s, found := graph.Stuck(Look.waits, helps); found {
				t.Fatalf("the claim waits for nothing after\n%s", graph.Trace(s))
			}
			t.Logf("%d states, the claim waits for nothing in none", graph.Len())
		})
	}
}

func TestClaimsWaitForNothingWithoutRechecks(t *testing.T) {
	for _, test := range []struct {
		name  string
		model Recheck
	}{
		{"a holder that only the live list knew", Recheck{AfterCache: true}},
		{"a holder that was replaced under its name", Recheck{AfterList: true, IgnoresReplaced: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			graph := explored(t, test.model)
			s, found := graph.Stuck(Look.waits, helps)
			if !found {
				t.Fatalf("the claim waits for nothing in none of %d states", graph.Len())
			}
			t.Logf("%d states, the claim waits for nothing after\n%s", graph.Len(), graph.Trace(s))
		})
	}
}
