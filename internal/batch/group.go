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

package batch

import (
	"math"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxWindows is how many windows a request waits at most while others keep coming.
const maxWindows = 20

// HoldTimes say when a hold of a namespace ends: once Least has passed and no
// request of the namespace has come for Quiet, but at the latest after Most.
type HoldTimes struct {
	Quiet, Least, Most time.Duration
}

// group is what a Source knows of a namespace. Its Source's lock guards it.
type group struct {
	// waiting are the requests that are due, held those that are due when the
	// hold ends.
	waiting, held fifo

	// first is when the oldest of the waiting requests came, last when the
	// newest of the namespace's requests did.
	first, last time.Time

	// holdLeast and holdMost are when the hold may end, and when it must.
	// holdQuiet is how long no request must have come for it to end between them.
	holdLeast, holdMost time.Time
	holdQuiet           time.Duration
}

func (g *group) add(request reconcile.Request, now time.Time) {
	if g.last = now; g.waiting.len() == 0 {
		g.first = now
	}
	g.waiting.add(request)
}

// take removes and returns what makes the next batch, and whether a hold has ended
// for it. Then it is everything, since the held requests have waited for company.
func (g *group) take(now time.Time, window time.Duration, limit int) (taken []reconcile.Request, held bool) {
	if limit <= 0 {
		limit = math.MaxInt
	}
	if g.held.len() > 0 && !now.Before(g.holdEnds()) {
		// A held request may have come again, and then waits as well.
		all := g.held
		for _, request := range g.waiting.order {
			all.add(request)
		}
		g.waiting, g.held = all, fifo{}
		g.first = time.Time{} // What is left over has waited, too.
		return g.waiting.take(limit), true
	}
	if now.Before(g.windowEnds(window)) {
		return nil, false
	}
	return g.waiting.take(limit), false
}

// nextBatch returns when the namespace's requests want to be taken, and whether
// there are any.
func (g *group) nextBatch(window time.Duration) (next time.Time, ok bool) {
	switch waiting, held := g.waiting.len() > 0, g.held.len() > 0; {
	case waiting && held && g.holdEnds().Before(g.windowEnds(window)), held && !waiting:
		return g.holdEnds(), true
	default:
		return g.windowEnds(window), waiting
	}
}

// windowEnds returns when no further request will have come for a window, or the
// oldest one will have waited for maxWindows of them.
func (g *group) windowEnds(window time.Duration) time.Time {
	return earliest(g.last.Add(window), g.first.Add(maxWindows*window))
}

// holdEnds returns when the hold ends if no further request comes. It is in the
// past if there is none.
func (g *group) holdEnds() time.Time {
	if quiet := g.last.Add(g.holdQuiet); quiet.After(g.holdLeast) {
		return earliest(quiet, g.holdMost)
	}
	return g.holdLeast
}

// idle reports whether nothing is worth remembering.
func (g *group) idle(now time.Time) bool {
	return g.waiting.len() == 0 && g.held.len() == 0 && !now.Before(g.holdEnds())
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
