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
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/batch"
	"pvc-protection-operator/internal/metrics"
)

const recheck = time.Minute

var (
	podA = holder{name: "a", node: "n", state: "running", uid: "a-uid"}
	podB = holder{name: "b", node: "n", state: "running", uid: "b-uid"}
)

// TestEventsOfTransitionsOnly proves that an event is made of every change, also back
// to what was said before, and of nothing else.
func TestEventsOfTransitionsOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		later, replaced := podA, podA
		later.state = "shutting down"
		replaced.uid = "replaced"
		claim, another := candidate("c1"), candidate("c1")
		another.UID = "another"
		steps := []struct {
			claim   *corev1.PersistentVolumeClaim
			holders []holder
			events  int
		}{
			{claim, []holder{podA}, 1}, {claim, []holder{podA}, 1}, {claim, []holder{podB, podA}, 2},
			{claim, []holder{podA, podB}, 2}, {claim, []holder{later, podB}, 3}, {claim, []holder{later}, 4},
			{claim, []holder{podA}, 5}, {claim, []holder{podB, podA}, 6}, {claim, []holder{podA}, 7},
			{claim, []holder{replaced}, 8}, {another, []holder{replaced}, 9},
		}
		for i, step := range steps {
			w.reportBlocked(w.ctx, step.claim, step.holders, metrics.Cache, recheck)
			if got := len(w.said(EventReasonBlocked)); got != step.events {
				t.Errorf("after step %d, there are %d events, want %d", i, got, step.events)
			}
			w.wait(sayGap)
		}
		if got := w.said(EventReasonBlocked)[1]; got.pod != "a" || got.claim != "c1" {
			t.Errorf("the event is about claim %s and pod %s, want the first pod by name", got.claim, got.pod)
		}
	})
}

// TestEventsOfRestlessHolders proves that a claim whose holders change all the time
// does not take the events of others.
func TestEventsOfRestlessHolders(t *testing.T) {
	inWorld(t, func(w *world) {
		claim := candidate("c1")
		for i := range 600 { // a minute
			restless := podA
			restless.uid = types.UID(fmt.Sprint(i))
			w.reportBlocked(w.ctx, claim, []holder{restless}, metrics.Cache, recheck)
			w.wait(100 * time.Millisecond)
		}
		if got, most := len(w.said(EventReasonBlocked)), sayAtOnce+6; got > most || got < sayAtOnce {
			t.Errorf("a minute of changes made %d events, want at most %d", got, most)
		}
	})
}

// TestEventsAfterFailover proves that the next leader does not say once more what was
// said, but what has changed.
func TestEventsAfterFailover(t *testing.T) {
	inWorld(t, func(w *world) {
		w.reportBlocked(w.ctx, candidate("c1"), []holder{podA}, metrics.Cache, recheck)
		w.reportBlocked(w.ctx, candidate("c2"), []holder{podA, podB}, metrics.Cache, recheck)
		w.said(EventReasonBlocked)
		w.reportBlocked(w.ctx, candidate("c2"), []holder{podB}, metrics.Cache, recheck)
		before := len(w.said(EventReasonBlocked))

		w.forgetAll() // as another process does not know them
		w.wait(time.Minute)
		w.reportBlocked(w.ctx, candidate("c1"), []holder{podA}, metrics.Cache, recheck)
		w.reportBlocked(w.ctx, candidate("c2"), []holder{podB}, metrics.Cache, recheck)
		if got := w.said(EventReasonBlocked); len(got) != before {
			t.Errorf("it said %q", got[before:])
		}
		w.reportBlocked(w.ctx, candidate("c1"), []holder{podB}, metrics.Cache, recheck)
		if got := len(w.said(EventReasonBlocked)) - before; got != 1 {
			t.Errorf("a change made %d events, want 1", got)
		}
	})
}

// TestLatestOnly proves that what is over by the time that its event could be written
// is not said.
func TestLatestOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		w.onEvent = func(*eventsv1.Event) error { return errTest }
		w.reportBlocked(w.ctx, candidate("c1"), []holder{podA}, metrics.Cache, recheck)
		w.reportBlocked(w.ctx, candidate("c2"), []holder{podA}, metrics.Cache, recheck)
		w.wait(eventRetry / 2)
		w.set(func() { w.onEvent = nil })
		w.reportReleased(w.ctx, candidate("c1"))
		w.wait(eventRetry)
		if got := w.said(EventReasonBlocked); len(got) != 1 || got[0].claim != "c2" {
			t.Errorf("the events are %q, want one of the claim that is still blocked", got)
		}
		if got := w.said(EventReasonReleased); len(got) != 1 || !strings.Contains(got[0].note, "after its deletion") {
			t.Errorf("the events are %q, want one", got)
		}
	})
}

// TestEventFails proves that an event that cannot be written is tried a few times, and
// then, or if that cannot help, is given up.
func TestEventFails(t *testing.T) {
	resource := schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	terminating := apierrors.NewForbidden(resource, "e", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"for some reason":              {errTest, maxEventTries},
		"without permission":           {apierrors.NewForbidden(resource, "e", errTest), 1},
		"in a namespace that ends":     {terminating, 1},
		"in a namespace that is gone":  {apierrors.NewNotFound(resource, "ns"), 1},
		"because it was said already":  {apierrors.NewAlreadyExists(resource, "e"), 1},
		"because the server has rules": {apierrors.NewInternalError(errTest), maxEventTries},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				tries := 0
				w.onEvent = func(*eventsv1.Event) error {
					tries++
					return test.err
				}
				w.reportBlocked(w.ctx, candidate("c1"), []holder{podA}, metrics.Cache, recheck)
				w.wait(time.Hour)
				if tries != test.want {
					t.Errorf("it was tried %d times, want %d", tries, test.want)
				}
			})
		})
	}
}

// TestEventIsSaidLater proves that what could not be said is said at a later look, if
// it still holds.
func TestEventIsSaidLater(t *testing.T) {
	pod := podOf("pod", "c1")
	inWorld(t, func(w *world) {
		w.onEvent = func(*eventsv1.Event) error { return errTest }
		w.pages = [][]corev1.Pod{{pod}}
		w.add("c1")
		w.wait(maxEventTries * eventRetry)
		w.set(func() { w.onEvent = nil })
		w.wait(2 * w.Options.RecheckInterval)
		if got := w.said(EventReasonBlocked); len(got) != 1 {
			t.Errorf("the events are %q, want one", got)
		}
	}, candidate("c1"), &pod)
}

// TestGoneBeforeItIsSaid proves that no event tells of a claim that is gone.
func TestGoneBeforeItIsSaid(t *testing.T) {
	pod := podOf("pod", "c1")
	c1 := candidate("c1")
	inWorld(t, func(w *world) {
		w.onEvent = func(*eventsv1.Event) error { return errTest }
		w.pages = [][]corev1.Pod{{pod}}
		w.add("c1")
		end := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := w.server.Patch(w.ctx, c1, end); err != nil { // by somebody else
			t.Fatal(err)
		}
		w.set(func() { w.onEvent = nil })
		w.add("c1")
		w.wait(time.Minute)
		if got := w.said(EventReasonBlocked); len(got) > 0 {
			t.Errorf("the events are %q, want none", got)
		}
	}, c1, &pod)
}

// TestEventsAreLimited proves that many claims at once do not make a storm of events,
// that none of a blocked claim is lost, and that others do not pile up.
func TestEventsAreLimited(t *testing.T) {
	inWorld(t, func(w *world) {
		const many = 1000
		for i := range many {
			w.reportReleased(w.ctx, candidate(fmt.Sprint("released-", i)))
			w.reportBlocked(w.ctx, candidate(fmt.Sprint("blocked-", i)), []holder{podA}, metrics.Cache, recheck)
		}
		w.wait(10 * time.Second)
		most := eventBurst + 10*eventsPerSecond + 1
		if got := len(w.said(EventReasonBlocked)) + len(w.said(EventReasonReleased)); got > most {
			t.Errorf("%d events were written in 10 seconds, want at most %d", got, most)
		}
		w.wait(many / eventsPerSecond * time.Second)
		if got := len(w.said(EventReasonBlocked)); got != many {
			t.Errorf("%d events were written about blocked claims, want %d", got, many)
		}
		if got := len(w.said(EventReasonReleased)); got < 10 || got > 10*optionalBurst {
			t.Errorf("%d events were written about released claims, want some", got)
		}
	})
}

// TestSayBeforeStart proves that nothing is lost that is said before the controller of
// events has started.
func TestSayBeforeStart(t *testing.T) {
	inWorld(t, func(w *world) {
		a := newAnnouncer(interceptor.NewClient(w.server, interceptor.Funcs{Create: w.create}), w.Clock, nil)
		a.say(statement{claim: candidate("c1"), eventType: corev1.EventTypeNormal, reason: "R", action: "A", note: "n"})
		queue := workqueue.NewTypedRateLimitingQueue(batch.RateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		if err := a.Start(w.ctx, queue); err != nil {
			t.Fatal(err)
		}
		request, _ := queue.Get()
		if _, err := a.Reconcile(w.ctx, request); err != nil {
			t.Fatal(err)
		}
		if got := w.said("R"); len(got) != 1 {
			t.Errorf("the events are %q, want 1", got)
		}
	})
}

// TestEventNames proves that the names are those of valid objects, and differ.
func TestEventNames(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, name := range []string{"c1", strings.Repeat("c", 253), strings.Repeat("c", 237)} {
			claim := candidate(name)
			claim.UID = uuid.NewUUID()
			w.reportBlocked(w.ctx, claim, []holder{podA}, metrics.Cache, recheck)
		}
		w.said("")
		var events eventsv1.EventList
		if err := w.server.List(w.ctx, &events); err != nil || len(events.Items) != 3 {
			t.Fatalf("there are %d events, want 3 (error: %v)", len(events.Items), err)
		}
		for _, event := range events.Items {
			if len(event.Name) > 253 || !strings.Contains(event.Name, ".") {
				t.Errorf("the name %q is not valid", event.Name)
			}
		}
	})
}

// TestEventsAreDocumented proves that the README has every reason, and no other.
func TestEventsAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "| event on a claim |")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)`").FindAllStringSubmatch(table, -1) {
		got = append(got, row[1])
	}
	want := []string{EventReasonBlocked, EventReasonReleased, EventReasonProtected, EventReasonFailing}
	if !slices.Equal(got, want) {
		t.Errorf("the README has %q, want %q", got, want)
	}
}

// TestNoteIsNoFormat proves that a name is never read as a format.
func TestNoteIsNoFormat(t *testing.T) {
	inWorld(t, func(w *world) {
		w.reportBlocked(w.ctx, candidate("c1"), []holder{{name: "100%d", node: "%s", state: "%v"}}, metrics.Cache, recheck)
		if got, want := w.said(EventReasonBlocked)[0].note, "pod 100%d on node %s (%v)"; !strings.HasSuffix(got, want) {
			t.Errorf("the note is %q, want it to end with %q", got, want)
		}
	})
}

// TestFailingIsSaid proves that a claim whose writes, or whose namespace's lists, keep
// failing says why, once for each cause, and not at the first failure.
func TestFailingIsSaid(t *testing.T) {
	denied := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "c1", errors.New("the webhook says no"))
	fails := map[string]func(*world, error){
		"Removing the finalizer": func(w *world, err error) {
			w.onPatch = func(_ context.Context, claim string) error { return unless(claim, "c1", numbered(err)) }
		},
		"Listing the pods": func(w *world, err error) { w.onList = func(context.Context, int) error { return numbered(err) } },
	}
	for what, fail := range fails {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(w *world) {
				fail(w, denied)
				w.add("c1")
				w.wait(10 * time.Minute)
				w.set(func() { fail(w, errTest) })
				w.wait(10 * time.Minute)
				var notes []string
				for _, e := range w.said(EventReasonFailing) {
					if e.kind != corev1.EventTypeWarning || e.claim != "c1" || !strings.HasPrefix(e.note, what) {
						t.Errorf("the event is %q", e)
					}
					notes = append(notes, e.note)
				}
				if len(notes) != 2 || !strings.Contains(notes[0], "the webhook says no") ||
					strings.Contains(notes[1], errTest.Error()) {
					t.Errorf("the notes are %q, want the server's words, and no inner error", notes)
				}
				w.set(func() { fail(w, nil) })
				w.wait(time.Minute)
				w.expect("gone", "c1")
			}, candidate("c1"))
		})
	}
	t.Run("once", func(t *testing.T) {
		inWorld(t, func(w *world) {
			failed := false
			w.onPatch = func(context.Context, string) error {
				defer func() { failed = true }()
				return unless(fmt.Sprint(failed), "false", denied)
			}
			w.add("c1")
			w.wait(time.Minute)
			if got := w.said(EventReasonFailing); len(got) > 0 {
				t.Errorf("the events are %q, want none", got)
			}
		}, candidate("c1"))
	})
}

// TestProtectedIsSaid proves that an event says of old claims only that they were
// protected.
func TestProtectedIsSaid(t *testing.T) {
	older, younger := claimWith("older"), claimWith("younger")
	inWorld(t, func(w *world) {
		w.add("older", "younger")
		w.expect(testFinalizer, "older", "younger")
		said := w.said(EventReasonProtected)
		if !slices.Equal(claimsOf(said), []string{"older"}) {
			t.Errorf("the events are %q, want one of the older claim", said)
		}
	}, aged(older, time.Hour), aged(younger, 0))
}

func claimsOf(events []recordedEvent) (claims []string) {
	for _, e := range events {
		claims = append(claims, e.claim)
	}
	return claims
}

func aged(claim *corev1.PersistentVolumeClaim, age time.Duration) client.Object {
	bubble := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // where synctest's time begins
	claim.CreationTimestamp = metav1.NewTime(bubble.Add(-age))
	return claim
}

var number atomic.Int64

// numbered returns the error with words that differ every time.
func numbered(err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	copied := *status
	copied.ErrStatus.Message += fmt.Sprintf(" (request %d)", number.Add(1))
	return &copied
}

func unless(got, want string, err error) error {
	if got == want {
		return err
	}
	return nil
}
