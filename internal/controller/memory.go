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

package controller

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"pvc-protection-operator/internal/metrics"
)

const (
	// sayAgainAfter is how long after an event it is said again if it still
	// holds. API servers keep events for an hour by default.
	sayAgainAfter = time.Hour

	// After the first sayAtOnce events, a claim has one every sayGap at most.
	sayAtOnce = 3
	sayGap    = 10 * time.Second

	// lostAfter is how late an event may come without counting as lost.
	lostAfter = 30 * time.Second
)

// reports remembers what was last said about each claim that waits, so that events
// and log lines are written when something changes and not on every look, and when
// a live list last confirmed that it is blocked. It is bounded by the claims that
// wait. The zero value is ready to use.
type reports struct {
	mu     sync.Mutex
	claims map[types.NamespacedName]*report
	// suspects were found free by a recheck. For a while their event may come.
	suspects map[types.NamespacedName]*report
}

type report struct {
	uid     types.UID
	deleted time.Time
	blocked bool
	// counted is set while the metrics count it as blocked.
	counted bool
	// facts were said, at that time.
	facts string
	said  time.Time
	// events is how many there were.
	events int
	// confirmed is when a live list last showed a holder.
	confirmed time.Time
	// recheck is when the claim is looked at again by itself, and byItself
	// whether the last look came from that.
	recheck  time.Time
	byItself bool
	// notified is set when a pod's event has come since the claim was blocked.
	notified bool
}

// blocked says that the facts block the claim. It returns whether they are to be
// said, and whether something was said about the claim before.
//
// That a claim is blocked counts as confirmed when it is first seen: it has just
// become a candidate.
func (r *reports) blocked(
	claim *corev1.PersistentVolumeClaim, facts string, now, recheck time.Time, confirmed bool,
) (say, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.of(claim)
	known.blocked = true
	if !known.counted {
		known.counted = true
		metrics.Claims.Blocked.Add(1)
	}
	if confirmed || known.confirmed.IsZero() {
		known.confirmed = now
	}
	known.recheck, known.notified = recheck, false
	return known.say(facts, now)
}

// failing says that work on the claim fails. It returns what blocked does.
func (r *reports) failing(claim *corev1.PersistentVolumeClaim, facts string, now time.Time) (say, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(claim).say(facts, now)
}

// of returns the report of the claim. The caller must hold the lock.
func (r *reports) of(claim *corev1.PersistentVolumeClaim) *report {
	key := requestFor(claim).NamespacedName
	known := r.claims[key]
	if known == nil || known.uid != claim.UID {
		r.drop(key)
		known = &report{uid: claim.UID}
		if claim.DeletionTimestamp != nil {
			known.deleted = claim.DeletionTimestamp.Time
		}
		if r.claims == nil {
			r.claims = map[types.NamespacedName]*report{}
		}
		r.claims[key] = known
	}
	return known
}

func (known *report) say(facts string, now time.Time) (say, again bool) {
	again = known.facts != ""
	if known.facts == facts && now.Sub(known.said) < sayAgainAfter {
		return false, again
	}
	if known.events >= sayAtOnce && now.Sub(known.said) < sayGap {
		return false, again // The next look says it, if it is still true.
	}
	known.facts, known.said = facts, now
	known.events++
	return true, again
}

// look says that the claim is looked at.
func (r *reports) look(claim *corev1.PersistentVolumeClaim, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.claims[requestFor(claim).NamespacedName]
	if known != nil && known.uid == claim.UID {
		known.byItself = !known.recheck.IsZero() && !now.Before(known.recheck)
		known.recheck = time.Time{}
	}
}

// unconfirmed reports whether the claim is known to be blocked, but no live list
// has confirmed it since.
func (r *reports) unconfirmed(claim *corev1.PersistentVolumeClaim, since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.claims[requestFor(claim).NamespacedName]
	return known != nil && known.uid == claim.UID && known.blocked && known.confirmed.Before(since)
}

// released forgets the claim. It returns whether something was said about it. If it
// was blocked and only a recheck found out that it is not, an event was lost.
func (r *reports) released(claim types.NamespacedName) (waited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.claims[claim]
	if known != nil && known.blocked && known.byItself && !known.notified {
		r.suspect(claim, known)
	}
	r.drop(claim)
	return known != nil
}

// suspect counts an event as lost unless it comes in a while. The caller must hold
// the lock.
func (r *reports) suspect(claim types.NamespacedName, known *report) {
	if r.suspects == nil {
		r.suspects = map[types.NamespacedName]*report{}
	}
	r.suspects[claim] = known
	time.AfterFunc(lostAfter, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !known.notified {
			metrics.LostEvents.Inc()
		}
		if r.suspects[claim] == known {
			delete(r.suspects, claim)
		}
	})
}

// notify says that an event of a pod that names the claim has come.
func (r *reports) notify(claim types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range []*report{r.claims[claim], r.suspects[claim]} {
		if known != nil {
			known.notified = true
		}
	}
}

// forget says that the claim does not wait any more. It returns whether it was blocked.
func (r *reports) forget(claim types.NamespacedName) (wasBlocked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.claims[claim]
	wasBlocked = known != nil && known.blocked
	r.drop(claim)
	return wasBlocked
}

func (r *reports) drop(claim types.NamespacedName) {
	if known := r.claims[claim]; known != nil {
		known.uncount()
	}
	delete(r.claims, claim)
}

func (known *report) uncount() {
	if known.counted {
		known.counted = false
		metrics.Claims.Blocked.Add(-1)
	}
}

// gone says that the cache has the claim no more, or without the finalizer. Whoever
// has released it, it is not blocked; the rest is remembered until it is looked at.
func (r *reports) gone(claim *corev1.PersistentVolumeClaim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.claims[requestFor(claim).NamespacedName]; known != nil && known.uid == claim.UID {
		known.uncount()
	}
}

// unsay says that what is known about the claim could not be said.
func (r *reports) unsay(claim *corev1.PersistentVolumeClaim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.claims[requestFor(claim).NamespacedName]; known != nil && known.uid == claim.UID {
		known.said = time.Time{}
	}
}

// oldest returns when the blocked claim was deleted that waits longest, and false
// if none does.
func (r *reports) oldest() (deleted time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.claims {
		if known.counted && (!ok || known.deleted.Before(deleted)) {
			deleted, ok = known.deleted, true
		}
	}
	return deleted, ok
}
