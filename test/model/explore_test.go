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

// countdown is a system whose shortest ways are known: from 10, one or two down at
// a time; 5 is a dead end.
type countdown struct{}

func (countdown) Start() int { return 10 }

func (countdown) Steps(n int, next func(Step, int)) {
	if n == 5 {
		return
	}
	for by, does := range []string{"stays", "one down", "two down"} {
		if n-by >= 0 {
			next(Step{Who: "counter", Does: does}, n-by)
		}
	}
}

func TestExploreVisitsEveryState(t *testing.T) {
	graph, found := Explore(countdown{}, func(int) bool { return false }, 100)
	if found || !graph.Full() || graph.Len() != 11 {
		t.Errorf("found %v, full %v, %d states, want all 11 and none of them bad", found, graph.Full(), graph.Len())
	}
}

func TestExploreStopsAtItsLimit(t *testing.T) {
	if graph, found := Explore(countdown{}, func(int) bool { return false }, 5); found || graph.Full() {
		t.Errorf("found %v, full %v after 5 of 11 states", found, graph.Full())
	}
}

func TestExploreFindsTheShortestTrace(t *testing.T) {
	graph, found := Explore(countdown{}, func(n int) bool { return n == 7 }, 100)
	if !found || graph.Full() {
		t.Fatalf("found %v, full %v, want the bad state before all are visited", found, graph.Full())
	}
	const want = "  1  counter     one down\n" +
		"  2  counter     two down\n"
	if got := graph.Trace(graph.Last()).String(); graph.Last() != 7 || got != want {
		t.Errorf("bad state %d by\n%swant 7 by\n%s", graph.Last(), got, want)
	}
}

func TestStuckLooksAtEveryPath(t *testing.T) {
	graph, _ := Explore(countdown{}, func(int) bool { return false }, 100)
	waits := func(n int) bool { return n > 3 }
	anyStep := func(Step) bool { return true }
	if n, found := graph.Stuck(waits, anyStep); !found || n != 5 {
		t.Errorf("stuck in %d, %v, want the dead end 5", n, found)
	}
	oneDown := func(step Step) bool { return step.Does == "one down" }
	if n, found := graph.Stuck(waits, oneDown); !found || n != 10 {
		t.Errorf("stuck in %d, %v, want 10: one by one leads into the dead end", n, found)
	}
	if n, found := graph.Stuck(func(n int) bool { return n > 5 }, anyStep); found {
		t.Errorf("stuck in %d, but every state leads to 5 or less", n)
	}
}
