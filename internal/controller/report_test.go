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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pvc-protection-operator/internal/metrics"
)

// maxNote is the API server's limit of an event's note, in bytes.
const maxNote = 1024

func TestDescribe(t *testing.T) {
	const used = "in use"
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
		"one":       {holders("a"), "pod a on node n (in use)"},
		"in order":  {holders("b", "a"), "pod a on node n (in use), pod b on node n (in use)"},
		"five":      {holders("c", "e", "d", "b", "a"), "pod a … pod e"},
		"six":       {holders("f", "c", "e", "d", "b", "a"), "pod a … pod e, and 1 more"},
		"a hundred": {holders(strings.Split(strings.Repeat("x ", 95)+"a b c d e", " ")...), "pod a … pod e, and 95 more"},
		"states": {[]holder{{name: "a", node: "n", state: "shutting down"}, {name: "b", node: "m", state: used}},
			"pod a on node n (shutting down), pod b on node m (in use)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := test.want
			if strings.Contains(want, "…") {
				var five []string
				for _, name := range []string{"a", "b", "c", "d", "e"} {
					five = append(five, "pod "+name+" on node n (in use)")
				}
				want = strings.Replace(want, "pod a … pod e", strings.Join(five, ", "), 1)
			}
			if got := describe(test.holders); got != want {
				t.Errorf("describe() = %q, want %q", got, want)
			}
		})
	}
}

// TestDescribeIsStable proves that the order in which holders are found makes no
// difference: it would look like a change.
func TestDescribeIsStable(t *testing.T) {
	var holders []holder
	for i := range 7 {
		holders = append(holders, holder{name: fmt.Sprint("pod-", i), node: "n", state: "in use"})
	}
	want := describe(slices.Clone(holders))
	for range holders {
		holders = append(holders[1:], holders[0])
		if got := describe(slices.Clone(holders)); got != want {
			t.Errorf("describe() = %q, want %q", got, want)
		}
	}
}

// TestNoteFits proves that the API server takes every note, also of pods and nodes
// of the longest names, in the longest state.
func TestNoteFits(t *testing.T) {
	ended := podOf("x", "c1")
	ended.Status.Phase = corev1.PodSucceeded
	longest := stateOf(&ended)
	for _, count := range []int{1, 2, 3, 5, 6, 1000} {
		for _, length := range []int{4, 63, 100, 110, 150, 253} {
			w := &world{}
			r := &PersistentVolumeClaimReconciler{Recorder: w, Clock: clock.RealClock{}}
			var holders []holder
			for i := range count {
				name := fmt.Sprintf("%0*d", length, i)
				holders = append(holders, holder{name: name, node: strings.Repeat("n", length), state: longest})
			}
			r.reportBlocked(log.IntoContext(t.Context(), logr.Discard()), candidate("c1"), holders, metrics.Cache)
			note := w.events[0].note
			if len(note) > maxNote {
				t.Errorf("the note about %d pods with names of %d bytes has %d bytes, want at most %d",
					count, length, len(note), maxNote)
			}
			if !strings.Contains(note, "pod 0") {
				t.Errorf("the note %q names no pod", note)
			}
		}
	}
}

func TestStateOf(t *testing.T) {
	running := podOf("p")
	deleted, ended, failed := podOf("p"), podOf("p"), podOf("p")
	deleted.DeletionTimestamp = new(metav1.Now())
	ended.Status.Phase = corev1.PodSucceeded
	failed.Status.Phase = corev1.PodFailed
	failed.DeletionTimestamp = new(metav1.Now())
	for _, test := range []struct {
		pod  corev1.Pod
		want string
	}{
		{running, "in use"}, {deleted, "shutting down"}, {ended, "ended"}, {failed, "ended"},
	} {
		if got := stateOf(&test.pod); !strings.HasPrefix(got, test.want) {
			t.Errorf("stateOf() = %q, want %q", got, test.want)
		}
	}
}

func TestAppendHolder(t *testing.T) {
	a, b := podOf("a"), podOf("b")
	var holders []holder
	for _, pod := range []*corev1.Pod{&a, &a, &b, &b, &b} {
		holders = appendHolder(holders, pod)
	}
	want := []holder{
		{name: "a", node: "node", state: "in use", uid: "a-uid"},
		{name: "b", node: "node", state: "in use", uid: "b-uid"},
	}
	if !slices.Equal(holders, want) {
		t.Errorf("the holders are %+v, want %+v", holders, want)
	}
}

func TestReportsChanged(t *testing.T) {
	var r reports
	now := time.Now()
	c1, c2, again := candidate("c1"), candidate("c2"), candidate("c1")
	again.UID = "again"
	r.forget(requestFor(c1).NamespacedName) // of what was never reported
	steps := []struct {
		claim *corev1.PersistentVolumeClaim
		text  string // or "" to forget
		want  bool
		count float64
	}{
		{c1, "a", true, 1}, {c1, "a", false, 1}, {c2, "a", true, 2}, {c1, "a", false, 2},
		{c1, "b", true, 2}, {c1, "b", false, 2}, {c1, "a", true, 2}, // a transition each
		{c1, "", false, 1}, {c2, "a", false, 1}, {c1, "a", true, 2}, {c1, "a", false, 2},
		{again, "a", true, 2}, {again, "a", false, 2}, {again, "", false, 1}, {c2, "", false, 0}, {c2, "", false, 0},
	}
	for i, step := range steps {
		if step.text == "" {
			r.forget(requestFor(step.claim).NamespacedName)
		} else if got := r.changed(step.claim, step.text, now, i%2 == 0); got != step.want {
			t.Errorf("step %d: changed(%s, %q) = %v, want %v", i, step.claim.Name, step.text, got, step.want)
		}
		if got := blockedClaims(t); got != step.count {
			t.Errorf("step %d: %v claims are blocked, want %v", i, got, step.count)
		}
	}
}

// TestReportsConfirmed proves from when on the holders of a claim count as not
// confirmed by a live list.
func TestReportsConfirmed(t *testing.T) {
	var r reports
	start := time.Now()
	claim, again := candidate("c1"), candidate("c1")
	again.UID = "again"
	at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }

	if r.unconfirmed(claim, at(9)) {
		t.Error("a claim that is not blocked is unconfirmed")
	}
	r.changed(claim, "a", at(1), false) // has just become a candidate
	r.changed(claim, "b", at(3), false) // seen by the cache only
	for minute, want := range map[int]bool{0: false, 1: false, 2: true, 4: true} {
		if got := r.unconfirmed(claim, at(minute)); got != want {
			t.Errorf("unconfirmed() since minute %d = %v, want %v", minute, got, want)
		}
	}
	if r.unconfirmed(again, at(9)) {
		t.Error("another claim of the same name is unconfirmed")
	}
	r.changed(claim, "b", at(4), true)
	if r.unconfirmed(claim, at(4)) || !r.unconfirmed(claim, at(5)) {
		t.Error("a live list at minute 4 does not count as one")
	}
	r.changed(again, "b", at(6), false)
	if r.unconfirmed(again, at(6)) {
		t.Error("another claim of the same name takes over what was confirmed")
	}
	r.forget(requestFor(claim).NamespacedName)
	if r.unconfirmed(again, at(9)) {
		t.Error("a claim that was forgotten is unconfirmed")
	}
}

// TestReportsTransitionsOnly proves that an event is made of every change, and of
// nothing else.
func TestReportsTransitionsOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := holder{name: "a", node: "n", state: "in use"}, holder{name: "b", node: "n", state: "in use"}
		later := a
		later.state = "shutting down"
		claim, again := candidate("c1"), candidate("c1")
		again.UID = "again"
		steps := []struct {
			claim   *corev1.PersistentVolumeClaim
			holders []holder
			events  int
		}{
			{claim, []holder{a}, 1}, {claim, []holder{a}, 1}, {claim, []holder{b, a}, 2}, {claim, []holder{a, b}, 2},
			{claim, []holder{later, b}, 3}, {claim, []holder{later}, 4}, {again, []holder{later}, 5},
		}
		for i, step := range steps {
			w.reportBlocked(w.ctx, step.claim, step.holders, metrics.Cache)
			if got := len(w.events); got != step.events {
				t.Errorf("after step %d, there are %d events, want %d", i, got, step.events)
			}
		}
		if got := w.events[1]; got.pod != "a" || got.claim != "c1" {
			t.Errorf("the event is about claim %s and pod %s, want the first pod by name", got.claim, got.pod)
		}
		w.reportReleased(w.ctx, claim)
		w.reportBlocked(w.ctx, claim, []holder{a}, metrics.LiveList)
		if got := len(w.events); got != 6 {
			t.Errorf("after a release, there are %d events, want 6", got)
		}
	})
}

// TestNoteIsNoFormat proves that a name is never read as a format.
func TestNoteIsNoFormat(t *testing.T) {
	inWorld(t, func(w *world) {
		w.reportBlocked(w.ctx, candidate("c1"), []holder{{name: "100%d", node: "%s", state: "%v"}}, metrics.Cache)
		if got, want := w.events[0].note, "pod 100%d on node %s (%v)"; !strings.HasSuffix(got, want) {
			t.Errorf("the note is %q, want it to end with %q", got, want)
		}
	})
}
