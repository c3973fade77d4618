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

// Recheck is a model of the question: will a claim go that is being deleted and
// that no pod uses? An operator looks at a claim only if something put it into the
// queue: an event of its caches, a failure or a recheck. A watch that breaks and is
// relisted skips events, so an event may never come.
//
// There is one claim name, one pod name and one operator. Delays and back-offs are
// not modelled: what is due after a while may be due at once. A change in a cache
// and its event are one step. Which changes of the pod matter is decided by the
// operator's own code, see [Recheck.matters].
type Recheck struct {
	// AfterCache and AfterList say after which evidence of a holder a claim is
	// looked at again by itself. The operator does so after both.
	AfterCache, AfterList bool
	// IgnoresReplaced takes an update that hides a pod's deletion, since another
	// pod has its name by now, for a change of one pod.
	IgnoresReplaced bool
}

// Look is a state of Recheck.
type Look struct {
	claim, cachedClaim life
	pod, cachedPod     stage
	queued             bool // the claim waits for its next look
	recheck            bool // it will be looked at again by itself
	doing              doing
	found              int8 // the UID of the candidate
}

// waits reports whether the claim is being deleted and no pod uses it.
func (s Look) waits() bool { return s.claim.beingDeleted() && s.pod != bound }

// Start implements System: the claim exists, and the cache knows it.
func (m Recheck) Start() Look { return Look{doing: idle} }

// Steps implements System.
func (m Recheck) Steps(s Look, next func(Step, Look)) {
	// step takes a step if it is possible.
	step := func(possible bool, who, does string, change func(*Look)) {
		if possible {
			t := s
			change(&t)
			next(Step{Who: who, Does: does}, t)
		}
	}
	m.cluster(s, step)
	m.caches(s, step)
	m.operator(s, step)
	m.faults(s, step)
}

type stepFunc = func(possible bool, who, does string, change func(*Look))

// cluster takes the steps of users and the scheduler.
func (m Recheck) cluster(s Look, step stepFunc) {
	step(s.claim.exists(), "user", "deletes the claim", func(t *Look) { t.claim++ })
	step(s.claim.gone() && s.claim.uid() == 1, "user", "creates the claim anew", func(t *Look) { t.claim++ })
	step(s.pod == absent, "user", "creates the pod", func(t *Look) { t.pod = pending })
	step(s.pod == pending && s.claim.exists(), "scheduler", "binds the pod to a node", func(t *Look) { t.pod = bound })
	step(s.pod == bound, "user", "deletes the pod", func(t *Look) { t.pod = gone })
	step(s.pod == gone, "user", "creates another pod of that name", func(t *Look) { t.pod = reused })
}

// caches follow the truth one change at a time, or after a broken watch several at
// once, which look like one change. Changes that matter queue the claim.
func (m Recheck) caches(s Look, step stepFunc) {
	for l := s.cachedClaim + 1; l <= s.claim; l++ {
		who, does := "cache", "sees the next change of the claim"
		if l > s.cachedClaim+1 {
			who, does = Fault, "breaks the watch of claims, which skips changes"
		}
		step(true, who, does, func(t *Look) {
			t.cachedClaim = l
			t.queued = t.queued || l.beingDeleted()
		})
	}
	for p := s.cachedPod + 1; p <= s.pod; p++ {
		who, does := "cache", "sees the next change of the pod"
		if p > s.cachedPod+1 {
			who, does = Fault, "breaks the watch of pods, which skips changes"
		}
		step(true, who, does, func(t *Look) {
			t.cachedPod = p
			t.queued = t.queued || m.matters(s.cachedPod, p)
		})
	}
}

// operator takes the steps of a batch of one claim. What happens to the claim or
// its pod meanwhile queues it again, for the next batch.
func (m Recheck) operator(s Look, step stepFunc) {
	settle := func(t *Look) { t.doing, t.found = idle, 0 }

	step(s.recheck, "operator", "finds that it is time to look again", func(t *Look) {
		t.recheck, t.queued = false, true
	})
	step(s.doing == idle && s.queued, "operator", "starts a batch", func(t *Look) {
		t.doing, t.queued = reading, false
	})

	found := s.cachedClaim.candidate()
	step(s.doing == reading && found == 0, "operator", "reads in its cache: nothing to do", settle)
	step(s.doing == reading && found != 0, "operator", "reads in its cache: being deleted", func(t *Look) {
		t.doing, t.found = checking, found
	})

	held := s.cachedPod == bound
	step(s.doing == checking && held, "operator", "finds a holder in its cache", func(t *Look) {
		settle(t)
		t.recheck = t.recheck || m.AfterCache
	})
	step(s.doing == checking && !held, "operator", "starts the live list", func(t *Look) { t.doing = waiting })

	held = s.pod == bound
	step(s.doing == waiting && held, "operator", "is answered, the live list shows a holder", func(t *Look) {
		settle(t)
		t.recheck = t.recheck || m.AfterList
	})
	step(s.doing == waiting && !held, "operator", "is answered, sends the patch", func(t *Look) { t.doing = writing })

	step(s.doing == writing, "API server", "answers the patch", func(t *Look) {
		t.patch()
		settle(t)
	})
}

// faults are those of the API server, after which the operator tries again, and of
// the operator, which finds everything again in its first list of claims. A new
// process may start with an older state than the last one had seen.
func (m Recheck) faults(s Look, step stepFunc) {
	retry := func(t *Look) { t.doing, t.found, t.queued = idle, 0, true }

	step(s.doing == waiting, Fault, "fails the live list", retry)
	step(s.doing == writing, Fault, "fails the patch", retry)
	step(s.doing == writing, Fault, "carries out the patch but loses the answer", func(t *Look) {
		t.patch()
		retry(t)
	})
	for l := range s.claim + 1 {
		for p := range s.pod + 1 {
			step(true, Fault, "kills and restarts the operator", func(t *Look) {
				*t = Look{claim: s.claim, pod: s.pod, cachedClaim: l, cachedPod: p, doing: idle, queued: l.beingDeleted()}
			})
		}
	}
}

// patch takes the finalizer off the candidate, if it is still the same claim.
func (s *Look) patch() {
	if s.found == s.claim.candidate() {
		s.claim++
	}
}
