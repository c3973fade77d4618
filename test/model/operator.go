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

import "fmt"

// operator is one replica. All claims are in all of its batches: whatever put them
// there, an event or a recheck, does not matter for safety.
type operator struct {
	doing doing
	turn  int8         // the claim whose turn it is to be read
	found [claims]int8 // the UIDs of the candidates that are not settled yet
	list  evidence
	// What it has seen in its caches, if they go forward. They lag, each object
	// for itself, as much as they like: a look shows any state between this one
	// and the truth, so a broken watch may skip a pod's whole life.
	sawClaim [claims]life
	sawPod   [maxPods]stage
}

type doing int8

const (
	reading doing = iota // in Safety also: waiting for the next batch
	checking
	listing
	waiting
	writing
	idle // in Recheck only
)

// evidence is what a look at the pods shows: a bit for each claim with a holder.
// That of a live list has another bit, since it is evidence without any holder too.
type evidence uint8

const answered evidence = 1 << 7

// operator takes the steps of one replica.
func (m Safety) operator(s State, i int, next func(Step, State)) {
	take := func(does, detail string, change func(*State, *operator)) {
		t := s
		change(&t, &t.operators[i])
		next(Step{operatorName[i], does, detail}, t)
	}
	fault := func(does string, change func(*operator)) {
		t := s
		change(&t.operators[i])
		next(Step{Fault, does, operatorName[i]}, t)
	}

	o := s.operators[i]
	if o != (operator{}) {
		fault("kills and restarts the", func(o *operator) { *o = operator{} })
	}
	switch o.doing {
	case reading:
		if m.Rule.ListFirst && o.turn == 0 && o.list == 0 {
			take("starts the live list", "", func(_ *State, o *operator) { o.doing = waiting })
			return
		}
		for seen := o.sawClaim[o.turn]; seen <= s.claims[o.turn]; seen++ {
			take("reads in its cache:", claimSeen[o.turn][seen], func(_ *State, o *operator) {
				o.found[o.turn] = seen.candidate()
				if m.Forward {
					o.sawClaim[o.turn] = seen
				}
				m.afterReading(o)
			})
		}
	case checking:
		m.check(s, o, take)
	case listing:
		take("starts the live list", "", func(_ *State, o *operator) { o.doing = waiting })
	case waiting:
		fault("fails the live list of the", m.end)
		m.answer(s, take)
	case writing:
		for c, uid := range o.found {
			if uid == 0 {
				continue
			}
			if m.Rule.NoUID {
				uid = 0
			}
			take("sends the patch of", claimName[c], func(t *State, o *operator) {
				t.patches[c] |= 1 << uid
				m.drop(o, 1<<c)
			})
		}
	}
}

// afterReading turns to the next claim or, if all that belong together are read,
// to the cache of pods.
func (m Safety) afterReading(o *operator) {
	switch {
	case !m.Rule.OneByOne && o.turn+1 < claims:
		o.turn++
	case o.found == ([claims]int8{}):
		m.end(o)
	default:
		o.doing = checking
	}
}

// takeFunc makes one step of an operator: it changes it, in the state after it.
type takeFunc func(does, detail string, change func(*State, *operator))

// check looks for holders in the cache of pods, and keeps the candidates
// that have one. The others need a live list, unless there is one already.
func (m Safety) check(s State, o operator, take takeFunc) {
	for p := o.sawPod[0]; p <= s.pods[0].stage; p++ {
		for q := o.sawPod[1]; q <= s.pods[1].stage; q++ {
			seen := [maxPods]stage{p, q}
			held := s.held(seen)
			take("looks for holders in its cache:", holders[held], func(_ *State, o *operator) {
				if m.Forward {
					o.sawPod = seen
				}
				o.doing = listing
				if m.Rule.CacheOnly || o.list != 0 {
					o.doing = writing
				}
				m.drop(o, held|o.list)
			})
		}
	}
}

// answer ends the live list. Its answer is the truth of a moment since it was
// started, which is this one.
func (m Safety) answer(s State, take takeFunc) {
	for p := range s.pods[0].stage + 1 {
		for q := range s.pods[1].stage + 1 {
			listed := [maxPods]stage{p, q}
			if !m.listed(s.pods[0].stage, p) || !m.listed(s.pods[1].stage, q) {
				continue
			}
			held := s.held(listed)
			take("is answered, the live list shows:", holders[held], func(_ *State, o *operator) {
				if m.Rule.keepsAnswer() {
					o.list = answered | held
				}
				if m.Rule.ListFirst {
					o.doing = reading
					return
				}
				o.doing = writing
				m.drop(o, held)
			})
		}
	}
}

// listed reports whether the list may show a pod in the given stage.
func (m Safety) listed(truth, shown stage) bool {
	return shown == truth || m.Rule.StaleList || m.Rule.FirstPage && shown == absent
}

// held returns which claims have holders if the pods are in the given stages.
func (s State) held(stages [maxPods]stage) (e evidence) {
	for p, stage := range stages {
		if stage == bound {
			e |= 1 << s.pods[p].claim
		}
	}
	return e
}

// drop takes away the candidates that need nothing more: those with a holder, or
// whose patch was sent. The last of them ends the batch.
func (m Safety) drop(o *operator, settled evidence) {
	for c := range o.found {
		if settled&(1<<c) != 0 {
			o.found[c] = 0
		}
	}
	if o.found == ([claims]int8{}) {
		m.end(o)
	}
}

// end ends the batch or, with upstream's rule, the turn of one claim.
func (m Safety) end(o *operator) {
	o.doing, o.found = reading, [claims]int8{}
	if m.Rule.OneByOne && o.turn+1 < claims {
		o.turn++
		return
	}
	o.turn = 0
	if !m.Rule.KeepsList {
		o.list = 0
	}
}

var (
	holders   = [1 << claims]string{"no holders", "a holder of claim A", "a holder of claim B", "holders of both"}
	claimSeen = func() (names [claims][6]string) {
		for c := range names {
			for l := range names[c] {
				names[c][l] = fmt.Sprintf("%s (UID %d) %s", claimName[c], life(l).uid(),
					[]string{"exists", "is being deleted", "is gone"}[l%3])
			}
		}
		return names
	}()
)
