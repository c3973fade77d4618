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
	"fmt"
	"strings"
)

// Step says who does what. Its parts are joined for print only, since millions of
// steps are taken and few are printed.
type Step struct {
	Who, Does, Detail string
}

// Fault is who takes the steps that nobody wants.
const Fault = "fault"

// System is what can be explored: where it starts, and what may happen next.
type System[S comparable] interface {
	Start() S
	// Steps calls next for every step that may follow in the state, with the
	// state after it, always in the same order.
	Steps(s S, next func(Step, S))
}

// Graph holds the states of a system that were reached, the nearest first.
type Graph[S comparable] struct {
	system System[S]
	states []S
	// from has for each state the one that it was first reached from.
	from  []int32
	known map[S]int32
	full  bool
}

// Explore walks breadth first through all states of the system. It stops early at
// the first state that is bad, which is one of the nearest, or at the limit of
// states.
func Explore[S comparable](system System[S], bad func(S) bool, limit int) (g *Graph[S], found bool) {
	start := system.Start()
	g = &Graph[S]{system: system, states: []S{start}, from: []int32{-1}, known: map[S]int32{start: 0}}
	for at := 0; at < len(g.states); at++ {
		if bad(g.states[at]) {
			g.states = g.states[:at+1]
			return g, true
		}
		if len(g.states) > limit {
			return g, false
		}
		system.Steps(g.states[at], func(_ Step, s S) {
			if _, ok := g.known[s]; !ok {
				g.known[s] = int32(len(g.states))
				g.states = append(g.states, s)
				g.from = append(g.from, int32(at))
			}
		})
	}
	g.full = true
	return g, false
}

// Len is the number of states that were reached.
func (g *Graph[S]) Len() int { return len(g.states) }

// Full reports whether all states were reached.
func (g *Graph[S]) Full() bool { return g.full }

// Last returns the state that was looked at last: the bad one, if one was found.
func (g *Graph[S]) Last() S { return g.states[len(g.states)-1] }

// Find returns the nearest state that is as wanted.
func (g *Graph[S]) Find(wanted func(S) bool) (s S, found bool) {
	for _, s := range g.states {
		if wanted(s) {
			return s, true
		}
	}
	return s, false
}

// Stuck returns the nearest state that waits and from which no path of helping
// steps leads to one that does not. The graph must be full.
func (g *Graph[S]) Stuck(waits func(S) bool, helps func(Step) bool) (s S, found bool) {
	ends := make([]bool, len(g.states)) // A path of helping steps leads out of waiting.
	for changed := true; changed; {
		changed = false
		for at := len(g.states) - 1; at >= 0; at-- {
			if ends[at] {
				continue
			}
			if !waits(g.states[at]) {
				ends[at], changed = true, true
				continue
			}
			g.system.Steps(g.states[at], func(step Step, s S) {
				if !ends[at] && helps(step) && ends[g.known[s]] {
					ends[at], changed = true, true
				}
			})
		}
	}
	for at, ok := range ends {
		if !ok {
			return g.states[at], true
		}
	}
	return s, false
}

// Trace returns a shortest way from the start to a state that was reached.
func (g *Graph[S]) Trace(s S) Trace {
	var trace Trace
	for at := g.known[s]; g.from[at] >= 0; at = g.from[at] {
		trace = append(Trace{g.stepTo(at)}, trace...)
	}
	return trace
}

func (g *Graph[S]) stepTo(at int32) (step Step) {
	found := false
	g.system.Steps(g.states[g.from[at]], func(candidate Step, s S) {
		if !found && s == g.states[at] {
			step, found = candidate, true
		}
	})
	return step
}

// Trace is a sequence of steps.
type Trace []Step

// String writes one step a line.
func (t Trace) String() string {
	var text strings.Builder
	for i, step := range t {
		fmt.Fprintf(&text, "%3d  %-10s  %s\n", i+1, step.Who, strings.TrimSpace(step.Does+" "+step.Detail))
	}
	return text.String()
}
