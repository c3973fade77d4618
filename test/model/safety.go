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

// The world of Safety: one namespace with two claims.
const (
	claims       = 2
	maxPods      = 2
	maxOperators = 2
)

// Safety is a model of the question: can the finalizer be taken off a claim that a
// pod uses? Users, the scheduler, the API server and one or two operators take
// their steps in any order, each as late as it likes. So a step that is never
// taken is a crash, and a pause of any length needs no step.
//
// The operators do not even elect a leader: the old one may be anywhere in its
// batch while the new one works.
type Safety struct {
	Rule Rule

	// Pods, Operators and Recreated, how many of the claims may be created once
	// more after they are gone, bound the world: each is at most 2.
	Pods, Operators, Recreated int

	// BindsDeleted drops the assumption about the environment, which is: a pod is
	// bound to a node only while its claim exists and is not being deleted. The
	// scheduler and the kubelet see to that, as far as they do.
	BindsDeleted bool

	// Forward makes the operators' caches go forward only, as caches do until
	// their process restarts. Otherwise a look may show any earlier state: that is
	// more than a cache can do to an operator, and has fewer states.
	Forward bool
}

// State is a state of Safety.
type State struct {
	claims [claims]life
	pods   [maxPods]pod
	// patches are those that were sent and have not yet reached the API server.
	patches   [claims]patches
	operators [maxOperators]operator
	// broken says that the finalizer was taken off a claim in use.
	broken bool
}

type pod struct {
	stage stage
	claim int8 // which of the claims its volume names
	uid   int8 // the UID of that claim when the pod was bound
}

// patches is a set of patches that take the finalizer off one claim: the bit of a
// number stands for the patch that names this UID, bit 0 for one that names none.
type patches uint8

// Start implements System: both claims exist, nothing else does.
func (m Safety) Start() State { return State{} }

// Steps implements System.
func (m Safety) Steps(s State, next func(Step, State)) {
	m.users(s, next)
	m.scheduler(s, next)
	m.apiServer(s, next)
	for i := range m.Operators {
		m.operator(s, i, next)
	}
}

// users delete claims and create them again under the same name, create pods, and
// delete pods. A pending pod is not deleted: it would do no harm.
func (m Safety) users(s State, next func(Step, State)) {
	for c, l := range s.claims {
		t := s
		t.claims[c]++
		switch {
		case l.exists():
			next(Step{"user", "deletes", claimName[c]}, t)
		case l.gone() && l.uid() == 1 && c < m.Recreated:
			next(Step{"user", "creates anew", claimName[c]}, t)
		}
	}
	for p := range m.Pods {
		switch s.pods[p].stage {
		case absent:
			for c := range claims {
				t := s
				t.pods[p] = pod{stage: pending, claim: int8(c)}
				next(Step{"user", creates[p], claimName[c]}, t)
			}
			return // Pods are created in order: it makes no difference which is first.
		case bound:
			t := s
			t.pods[p].stage = gone
			next(Step{"user", "deletes", podName[p]}, t)
		}
	}
}

func (m Safety) scheduler(s State, next func(Step, State)) {
	for p := range m.Pods {
		l := s.claims[s.pods[p].claim]
		if s.pods[p].stage == pending && (l.exists() || m.BindsDeleted && l.beingDeleted()) {
			t := s
			t.pods[p].stage, t.pods[p].uid = bound, l.uid()
			next(Step{"scheduler", "binds to a node:", podName[p]}, t)
		}
	}
}

// apiServer carries out the patches that reach it, however late, or refuses them.
func (m Safety) apiServer(s State, next func(Step, State)) {
	for c, l := range s.claims {
		for uid := range int8(3) {
			if s.patches[c]&(1<<uid) == 0 {
				continue
			}
			t := s
			t.patches[c] &^= 1 << uid
			switch {
			case l.gone() || uid != 0 && uid != l.uid():
				next(Step{"API server", "refuses the patch of", claimName[c]}, t)
				continue
			case l.beingDeleted():
				t.claims[c]++
			}
			// A claim that exists gets its finalizer back before long. That it
			// lacked it while nobody used it is not followed up.
			t.broken = s.used(c)
			next(Step{"API server", "takes the finalizer off", claimName[c]}, t)
		}
	}
}

// used reports whether a bound pod uses the claim, this very one.
func (s State) used(c int) bool {
	for _, p := range s.pods {
		if p.stage == bound && int(p.claim) == c && p.uid == s.claims[c].uid() {
			return true
		}
	}
	return false
}

// waits reports whether the claim is being deleted and nobody uses it.
func (s State) waits(c int) bool { return s.claims[c].beingDeleted() && !s.used(c) }

var (
	claimName    = [claims]string{"claim A", "claim B"}
	podName      = [maxPods]string{"pod P", "pod Q"}
	creates      = [maxPods]string{"creates pod P with", "creates pod Q with"}
	operatorName = [maxOperators]string{"operator", "operator 2"}
)
