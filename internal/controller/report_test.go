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
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

// maxNote is the API server's limit of an event's note, in bytes.
const maxNote = 1024

func TestDescribe(t *testing.T) {
	const used = "running"
	holders := func(names ...string) []holder {
		var all []holder
		for _, name := range names {
			all = append(all, holder{name: name, node: "n", state: used, uid: types.UID(name)})
		}
		return all
	}
	tests := map[string]struct {
		holders []holder
		want    string
	}{
		"one":       {holders("a"), "pod a on node n (running)"},
		"in order":  {holders("b", "a"), "pod a on node n (running), pod b on node n (running)"},
		"five":      {holders("c", "e", "d", "b", "a"), "pod a … pod e"},
		"six":       {holders("f", "c", "e", "d", "b", "a"), "pod a … pod e, and 1 more"},
		"a hundred": {holders(strings.Split(strings.Repeat("x ", 95)+"a b c d e", " ")...), "pod a … pod e, and 95 more"},
		"states": {[]holder{{name: "a", node: "n", state: "shutting down"}, {name: "b", node: "m", state: used}},
			"pod a on node n (shutting down), pod b on node m (running)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := test.want
			if strings.Contains(want, "…") {
				var five []string
				for _, name := range []string{"a", "b", "c", "d", "e"} {
					five = append(five, "pod "+name+" on node n (running)")
				}
				want = strings.Replace(want, "pod a … pod e", strings.Join(five, ", "), 1)
			}
			if got, _ := describe(test.holders); got != want {
				t.Errorf("describe() = %q, want %q", got, want)
			}
		})
	}
}

// TestFacts proves what counts as a change of the holders: neither their order nor
// that one of very many goes, but everything about those that are named.
func TestFacts(t *testing.T) {
	of := func(holders []holder) string {
		_, facts := describe(slices.Clone(holders))
		return facts
	}
	var holders []holder
	for i := range 1000 {
		name := fmt.Sprintf("pod-%04d", i)
		holders = append(holders, holder{name: name, uid: types.UID(name), node: "n", state: "running"})
	}
	reversed := slices.Clone(holders)
	slices.Reverse(reversed)
	if of(reversed) != of(holders) {
		t.Error("another order counts as a change")
	}
	if of(holders[:999]) != of(holders) {
		t.Error("that the last of a thousand goes counts as a change")
	}
	if of(holders[:6]) == of(holders[:7]) {
		t.Error("that the last of seven goes does not count as a change")
	}
	for what, change := range map[string]func(*holder){
		"its UID": func(h *holder) { h.uid = "x" }, "its node": func(h *holder) { h.node = "x" },
		"its state": func(h *holder) { h.state = "x" },
	} {
		changed := slices.Clone(holders)
		change(&changed[4])
		if of(changed) == of(holders) {
			t.Errorf("%s does not count as a change", what)
		}
	}
	said := map[string]bool{}
	for rest := range holders {
		said[of(holders[:len(holders)-rest])] = true
	}
	if len(said) > 20 {
		t.Errorf("a thousand pods that go one by one, the last first, make %d changes", len(said))
	}
}

// TestNotesFit proves that the API server takes every note, also of pods and nodes of
// the longest names, in the longest state, and of the longest errors.
func TestNotesFit(t *testing.T) {
	const say = time.Minute
	ended, claim := podOf("x", "c1"), candidate("c1")
	ended.Status.Phase = corev1.PodSucceeded
	claim.OwnerReferences = []metav1.OwnerReference{{UID: ended.UID, Controller: new(true)}}
	longest := usage.StateOf(&ended, claim)
	for _, count := range []int{1, 2, 3, 5, 6, 1000} {
		for _, length := range []int{4, 63, 100, 110, 150, 253} {
			inWorld(t, func(w *world) {
				var holders []holder
				for i := range count {
					name := fmt.Sprintf("%0*d", length, i)
					holders = append(holders, holder{name: name, node: strings.Repeat("n", length), state: longest})
				}
				w.reportBlocked(w.ctx, claim, holders, metrics.Cache, say)
				note := w.said(EventReasonBlocked)[0].note
				if len(note) > maxNote {
					t.Errorf("the note about %d pods with names of %d bytes has %d bytes, want at most %d",
						count, length, len(note), maxNote)
				}
				if !strings.Contains(note, "pod 0") {
					t.Errorf("the note %q names no pod", note)
				}
			})
		}
	}
	inWorld(t, func(w *world) {
		err := apierrors.NewInternalError(errors.New(strings.Repeat("🔥", 1000)))
		w.reportFailing(claim, manyFailures, "Listing the pods of the namespace", err)
		note := w.said(EventReasonFailing)[0].note
		if len(note) > maxNote || !utf8.ValidString(note) {
			t.Errorf("the note of a long error has %d bytes, want valid text of at most %d", len(note), maxNote)
		}
	})
}

func TestAppendHolder(t *testing.T) {
	a, b, claim := podOf("a"), podOf("b"), candidate("c1")
	var holders []holder
	for _, pod := range []*corev1.Pod{&a, &a, &b, &b, &b} {
		holders = appendHolder(holders, pod, claim)
	}
	want := []holder{
		{name: "a", node: "node", state: "scheduled", uid: "a-uid"},
		{name: "b", node: "node", state: "scheduled", uid: "b-uid"},
	}
	if !slices.Equal(holders, want) {
		t.Errorf("the holders are %+v, want %+v", holders, want)
	}
}

func TestReports(t *testing.T) {
	var r reports
	now := time.Now()
	c1, c2, another := candidate("c1"), candidate("c2"), candidate("c1")
	another.UID = "another"
	r.forget(requestFor(c1).NamespacedName) // of what was never reported
	blocked := blockedClaims()
	steps := []struct {
		claim      *corev1.PersistentVolumeClaim
		facts      string // or "" to forget
		say, again bool
		count      int64
	}{
		{c1, "a", true, false, 1}, {c1, "a", false, true, 1}, {c2, "a", true, false, 2}, {c1, "a", false, true, 2},
		{c1, "b", true, true, 2}, {c1, "b", false, true, 2}, {c1, "a", true, true, 2}, // a transition each
		{c1, "", false, false, 1}, {c2, "a", false, true, 1}, {c1, "a", true, false, 2}, {c1, "a", false, true, 2},
		{another, "a", true, false, 2}, {another, "a", false, true, 2},
		{another, "", false, false, 1}, {c2, "", false, false, 0}, {c2, "", false, false, 0},
	}
	for i, step := range steps {
		if step.facts == "" {
			r.forget(requestFor(step.claim).NamespacedName)
		} else if say, again := r.blocked(step.claim, step.facts, now, now, i%2 == 0); say != step.say || again != step.again {
			t.Errorf("step %d: blocked(%s, %q) = %v, %v, want %v, %v",
				i, step.claim.Name, step.facts, say, again, step.say, step.again)
		}
		if got := blockedClaims() - blocked; got != step.count {
			t.Errorf("step %d: %v claims are blocked, want %v", i, got, step.count)
		}
	}
}

// TestReportsSayAgain proves that what lasts is said again, rarely.
func TestReportsSayAgain(t *testing.T) {
	var r reports
	claim, start := candidate("c1"), time.Now()
	said := 0
	for minute := range 24 * 60 {
		now := start.Add(time.Duration(minute) * time.Minute)
		if say, _ := r.blocked(claim, "a", now, now, true); say {
			said++
		}
	}
	if said != 24 {
		t.Errorf("in a day, a blocked claim was said to be %d times, want 24", said)
	}
	r.forget(requestFor(claim).NamespacedName)
}

func TestReportsOldest(t *testing.T) {
	var r reports
	now := time.Now()
	if _, ok := r.oldest(); ok {
		t.Error("there is an oldest claim, but none is blocked")
	}
	older, younger, failing := candidate("older"), candidate("younger"), candidate("failing")
	older.DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Hour)))
	failing.DeletionTimestamp = new(metav1.NewTime(now.Add(-2 * time.Hour)))
	r.blocked(younger, "a", now, now, true)
	r.blocked(older, "a", now, now, true)
	r.failing(failing, "a", now)
	if got, ok := r.oldest(); !ok || !got.Equal(older.DeletionTimestamp.Time) {
		t.Errorf("oldest() = %s, %v, want %s", got, ok, older.DeletionTimestamp)
	}
	blocked := blockedClaims()
	r.gone(older)
	if got, _ := r.oldest(); !got.Equal(younger.DeletionTimestamp.Time) {
		t.Errorf("oldest() = %s after that one has gone, want the next", got)
	}
	if got := blockedClaims() - blocked; got != -1 {
		t.Errorf("the number of blocked claims changed by %d, want -1", got)
	}
	for _, claim := range []*corev1.PersistentVolumeClaim{older, younger, failing} {
		r.forget(requestFor(claim).NamespacedName)
	}
	if got := blockedClaims() - blocked; got != -2 {
		t.Errorf("the number of blocked claims changed by %d, want -2", got)
	}
}

// TestReportsConfirmed proves from when on the holders of a claim count as not
// confirmed by a live list.
func TestReportsConfirmed(t *testing.T) {
	var r reports
	start := time.Now()
	claim, another := candidate("c1"), candidate("c1")
	another.UID = "another"
	at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }

	if r.unconfirmed(claim, at(9)) {
		t.Error("a claim that is not blocked is unconfirmed")
	}
	r.failing(claim, "f", at(0))
	if r.unconfirmed(claim, at(9)) {
		t.Error("a claim that fails is unconfirmed")
	}
	r.blocked(claim, "a", at(1), at(2), false) // has just become a candidate
	r.blocked(claim, "b", at(3), at(4), false) // seen by the cache only
	for minute, want := range map[int]bool{0: false, 1: false, 2: true, 4: true} {
		if got := r.unconfirmed(claim, at(minute)); got != want {
			t.Errorf("unconfirmed() since minute %d = %v, want %v", minute, got, want)
		}
	}
	if r.unconfirmed(another, at(9)) {
		t.Error("another claim of the same name is unconfirmed")
	}
	r.blocked(claim, "b", at(4), at(5), true)
	if r.unconfirmed(claim, at(4)) || !r.unconfirmed(claim, at(5)) {
		t.Error("a live list at minute 4 does not count as one")
	}
	r.blocked(another, "b", at(6), at(7), false)
	if r.unconfirmed(another, at(6)) {
		t.Error("another claim of the same name takes over what was confirmed")
	}
	r.forget(requestFor(claim).NamespacedName)
	if r.unconfirmed(another, at(9)) {
		t.Error("a claim that was forgotten is unconfirmed")
	}
}
