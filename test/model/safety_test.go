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

import "testing"

// limit is far above what any of the explorations needs.
const limit = 5_000_000

func broken(s State) bool { return s.broken }

// worlds are those in which our rule is explored. Two of everything at once have
// 6,827,950 states, none of them bad: too many for every run. Two of these things
// at once are in one of these worlds.
var worlds = []struct {
	name   string
	model  Safety
	states int // more than so many must be visited
}{
	{"two pods, both claims recreated", Safety{Pods: 2, Operators: 1, Recreated: 2}, 200_000},
	{"two operators, a claim recreated", Safety{Pods: 1, Operators: 2, Recreated: 1}, 100_000},
	{"two operators, two pods", Safety{Pods: 2, Operators: 2}, 80_000},
	{"caches that go forward", Safety{Pods: 2, Operators: 1, Forward: true}, 50_000},
}

func TestOurRuleReleasesNoClaimInUse(t *testing.T) {
	for _, world := range worlds {
		t.Run(world.name, func(t *testing.T) {
			t.Parallel()
			graph, found := Explore(world.model, broken, limit)
			if found {
				t.Fatalf("a claim in use is released:\n%s", graph.Trace(graph.Last()))
			}
			if !graph.Full() || graph.Len() <= world.states {
				t.Fatalf("all states visited: %v, %d, want all of more than %d", graph.Full(), graph.Len(), world.states)
			}
			t.Logf("%d states, a claim in use is released in none", graph.Len())
		})
	}
}

// Without these states, the others would prove little.
func TestModelReachesTheDangerousStates(t *testing.T) {
	used := func(s State, c int) bool { return s.claims[c].beingDeleted() && s.used(c) }
	for _, test := range []struct {
		name  string
		model Safety
		is    func(State) bool
	}{
		{"one claim released, the other kept", Safety{Pods: 1, Operators: 1}, func(s State) bool {
			return s.claims[0].gone() && used(s, 1)
		}},
		{"the list is answered, then its batch's other claim gets a pod", Safety{Pods: 1, Operators: 1},
			func(s State) bool {
				return s.operators[0].doing == writing && s.operators[0].found[0] != 0 && used(s, 1)
			}},
		{"a late patch meets a new claim in use", Safety{Pods: 1, Operators: 2, Recreated: 1}, func(s State) bool {
			return s.patches[0] == 1<<1 && s.claims[0].uid() == 2 && s.used(0)
		}},
		{"the old leader is about to write to a new claim in use", Safety{Pods: 1, Operators: 2, Recreated: 1},
			func(s State) bool {
				return s.operators[0].doing == writing && s.operators[0].found[0] == 1 &&
					s.operators[1].doing == writing && s.operators[1].found[0] == 2 && s.claims[0].uid() == 2 && s.used(1)
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if graph, found := Explore(test.model, test.is, limit); !found {
				t.Errorf("not among %d states", graph.Len())
			}
		})
	}
}

// Each rule lacks one part of ours, and releases a claim in use.
func TestOtherRulesReleaseClaimsInUse(t *testing.T) {
	smallest := Safety{Pods: 1, Operators: 1, Forward: true}
	for _, test := range []struct {
		name      string
		rule      Rule
		recreated int
		steps     int
	}{
		{"upstream", Rule{OneByOne: true}, 0, 13},
		{"list before reading", Rule{ListFirst: true}, 0, 10},
		{"list of an earlier batch", Rule{KeepsList: true}, 0, 15},
		{"no list", Rule{CacheOnly: true}, 0, 8},
		{"list not linearizable", Rule{StaleList: true}, 0, 10},
		{"list not whole", Rule{FirstPage: true}, 0, 10},
		{"patch without UID", Rule{NoUID: true}, 1, 18},
	} {
		t.Run(test.name, func(t *testing.T) {
			model := smallest
			model.Rule, model.Recreated = test.rule, test.recreated
			graph, found := Explore(model, broken, limit)
			if !found {
				t.Fatalf("no claim in use is released, in %d states", graph.Len())
			}
			trace := graph.Trace(graph.Last())
			if len(trace) != test.steps {
				t.Errorf("%d steps, want %d", len(trace), test.steps)
			}
			t.Logf("found in %d states:\n%s", graph.Len(), trace)
		})
	}
}

// The assumption about the environment is needed: no operator can see a pod that
// is bound after it looked.
func TestPodsBoundToDeletedClaimsCannotBeProtected(t *testing.T) {
	graph, found := Explore(Safety{Pods: 1, Operators: 1, Forward: true, BindsDeleted: true}, broken, limit)
	if !found {
		t.Fatalf("no claim in use is released, in %d states", graph.Len())
	}
	t.Logf("found in %d states:\n%s", graph.Len(), graph.Trace(graph.Last()))
}

// A claim that is being deleted and not used can go, whatever happened before, if
// only the operators and the API server go on.
func TestOurRuleCanAlwaysRelease(t *testing.T) {
	graph, _ := Explore(Safety{Pods: 2, Operators: 2}, broken, limit)
	if !graph.Full() {
		t.Fatalf("not all states visited: %d", graph.Len())
	}
	for c, name := range claimName {
		s, found := graph.Stuck(func(s State) bool { return s.waits(c) }, helps)
		if found {
			t.Errorf("%s waits for nothing after\n%s", name, graph.Trace(s))
		}
	}
}

// helps reports whether the step is one that goes on being taken when users are
// quiet and nothing fails.
func helps(step Step) bool {
	switch step.Who {
	case "user", "scheduler", Fault:
		return false
	}
	return true
}
