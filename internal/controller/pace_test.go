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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestBurst proves that claims that keep coming do not cost a list each.
func TestBurst(t *testing.T) {
	const claims, every = 200, 15 * time.Millisecond // 3 s
	tests := map[string]struct{ list, patch time.Duration }{
		"slow lists": {100 * time.Millisecond, time.Millisecond},
		"fast lists": {time.Millisecond, 30 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for i := range claims {
				objects = append(objects, candidate(fmt.Sprint("c", i)))
			}
			inWorld(t, func(w *world) {
				w.onList = func(context.Context, int) error {
					<-time.After(test.list)
					return nil
				}
				w.onPatch = func(context.Context, string) error {
					<-time.After(test.patch)
					return nil
				}
				for _, object := range objects {
					w.feed.Add(requestOf(object.GetName()))
					w.wait(every)
				}
				w.wait(10 * time.Second)
				// The first one, one after a pause of 3 s, one for the rest, and some
				// because a batch holds 100 claims.
				if got := len(w.seen("list")); got > 6 {
					t.Errorf("%d claims in 3 seconds cost %d lists, want at most 6", claims, got)
				}
				for _, object := range objects {
					w.expect("gone", object.GetName())
				}
			}, objects...)
		})
	}
}

// TestCrowd proves that claims that are deleted in many namespaces at once, round
// and round, cost about a list for each namespace and not for each claim; and that
// those in a few do not wait.
func TestCrowd(t *testing.T) {
	for _, test := range []struct{ namespaces, most, least int }{{60, 80, 60}, {2, 10, 10}} {
		t.Run(fmt.Sprint(test.namespaces, " namespaces"), func(t *testing.T) {
			var objects []client.Object
			for i := range 5 {
				for n := range test.namespaces {
					claim := candidate(fmt.Sprint("c", i))
					claim.Namespace = fmt.Sprint("ns", n)
					objects = append(objects, claim)
				}
			}
			inWorld(t, func(w *world) {
				w.wait(time.Millisecond) // What there is at the start does not wait.
				for _, object := range objects {
					w.feed.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
					if object.GetNamespace() == fmt.Sprint("ns", test.namespaces-1) {
						w.wait(300 * time.Millisecond)
					}
				}
				w.wait(time.Second)
				if got := len(w.seen("list")); got < test.least || got > test.most {
					t.Errorf("5 claims in each of %d namespaces cost %d lists, want %d to %d",
						test.namespaces, got, test.least, test.most)
				}
				var left corev1.PersistentVolumeClaimList
				if err := w.server.List(w.ctx, &left); err != nil || len(left.Items) > 0 {
					t.Errorf("%d claims are left (error: %v)", len(left.Items), err)
				}
			}, objects...)
		})
	}
}

// TestAloneInACrowd proves that claims that are deleted now and then, each in another
// namespace, do not wait, also after many were deleted at once and while the lists of
// other namespaces fail.
func TestAloneInACrowd(t *testing.T) {
	var crowd, alone []client.Object
	for n := range 40 {
		claim := candidate("c")
		claim.Namespace = fmt.Sprint("crowd", n)
		crowd = append(crowd, claim)
		claim = candidate("c")
		claim.Namespace = fmt.Sprint("alone", n)
		alone = append(alone, claim)
	}
	inWorld(t, func(w *world) {
		w.wait(time.Millisecond)
		w.onListIn = func(namespace string) error {
			return unless(strings.TrimRight(namespace, "0123456789"), "crowd", errTest)
		}
		for _, object := range crowd {
			w.feed.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		w.wait(2 * time.Second)
		w.seen("")
		for _, object := range alone {
			w.feed.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			w.wait(250 * time.Millisecond)
			if got := w.seen("release"); len(got) != 1 {
				t.Errorf("claim %s waits", object.GetNamespace())
			}
		}
	}, slices.Concat(crowd, alone)...)
}

// TestBacklogDoesNotWait proves that claims of many namespaces that are there at the
// start are released at once: there is nobody to wait for.
func TestBacklogDoesNotWait(t *testing.T) {
	var objects []client.Object
	for n := range 10 {
		claim := candidate("c")
		claim.Namespace = fmt.Sprint("ns", n)
		objects = append(objects, claim)
	}
	inWorld(t, func(w *world) {
		for _, object := range objects { // in the moment in which the source has synced
			w.feed.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		w.wait(w.Options.BatchWindow)
		if got := len(w.seen("release")); got != len(objects) {
			t.Errorf("%d claims were released, want %d", got, len(objects))
		}
	}, objects...)
}

// TestAloneNeverWaits proves that the pace is for bursts only.
func TestAloneNeverWaits(t *testing.T) {
	names := []string{"c1", "c2", "c3", "c4"}
	inWorld(t, func(w *world) {
		w.onList = func(context.Context, int) error {
			<-time.After(400 * time.Millisecond)
			return nil
		}
		for _, name := range names {
			w.feed.Add(requestOf(name))
			w.wait(w.Options.BatchWindow + 400*time.Millisecond)
			w.expect("gone", name)
		}
	}, candidates(names...)...)
}

// TestOneNamespaceIsNoCrowd proves that claims of one namespace that are deleted one
// after the other, as fast as their lists allow, do not wait for each other.
func TestOneNamespaceIsNoCrowd(t *testing.T) {
	var names []string
	for i := range 3 * crowdBurst {
		names = append(names, fmt.Sprint("c", i))
	}
	inWorld(t, func(w *world) {
		w.wait(time.Millisecond)
		for _, name := range names {
			w.feed.Add(requestOf(name))
			w.wait(w.Options.BatchWindow)
			w.expect("gone", name)
		}
	}, candidates(names...)...)
}

// TestFullBatchesDoNotWait proves that what a full batch left over is listed for at
// once: it is worth a list.
func TestFullBatchesDoNotWait(t *testing.T) {
	var objects []client.Object
	for i := range 250 {
		objects = append(objects, candidate(fmt.Sprint("c", i)))
	}
	inWorld(t, func(w *world) {
		for _, object := range objects {
			w.feed.Add(requestOf(object.GetName()))
		}
		w.wait(w.Options.BatchWindow)
		if got := len(w.seen("list")); got != 3 {
			t.Errorf("250 claims cost %d lists, want 3, since a batch holds 100", got)
		}
		for _, object := range objects {
			w.expect("gone", object.GetName())
		}
	}, objects...)
}

// TestRecheckIn proves that the blocked claims of a namespace are looked at again
// together, whenever they were blocked, and those of others at other times.
func TestRecheckIn(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, time.Minute, 7 * time.Minute, time.Hour} {
		start := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
		fakeClock := clocktesting.NewFakePassiveClock(start)
		r := &PersistentVolumeClaimReconciler{Clock: fakeClock, Options: Options{RecheckInterval: interval}}
		moments := map[time.Duration]bool{}
		for i := range 50 {
			namespace := fmt.Sprint("namespace-", i)
			var moment time.Duration
			for step := range 40 {
				now := start.Add(time.Duration(step) * interval / 13)
				fakeClock.SetTime(now)
				delay := r.recheckIn(namespace)
				if delay < interval/10 || delay >= interval+interval/10 {
					t.Errorf("recheckIn() = %s for an interval of %s", delay, interval)
				}
				// A look at the time that it gave comes an interval before the next.
				fakeClock.SetTime(now.Add(delay))
				if next := r.recheckIn(namespace); next != interval {
					t.Errorf("after a recheck, recheckIn() = %s, want %s", next, interval)
				}
				got := time.Duration(now.Add(delay).UnixNano()) % interval
				if step == 0 {
					moment = got
				} else if got != moment {
					t.Errorf("the recheck is at %s of the interval, and at %s for others of the namespace", got, moment)
				}
			}
			moments[moment] = true
		}
		if len(moments) < 45 {
			t.Errorf("50 namespaces are looked at again at %d moments of %s", len(moments), interval)
		}
	}
}
