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

package faultproxy_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"pvc-protection-operator/test/faultproxy"
)

const resumed = "&resourceVersion=5"

func TestHoldEvents(t *testing.T) {
	f := newFixture(t)
	running := f.watch(podsOfA + watch)
	other := f.watch(podsOfB + watch)
	running.send("before")
	running.want("before")

	gate := f.proxy.HoldEvents(faultproxy.Match{Resource: "pods", Namespace: "a"})
	fresh := f.watch(podsOfA + watch)
	running.send("one", "two")
	fresh.send("three", "four")
	must(t, gate.Waiting(f.ctx, 2))
	other.send("other")
	other.want("other")
	otherFresh := f.watch(podsOfB + watch)
	otherFresh.send("other")
	otherFresh.want("other")
	running.wantNothing()
	fresh.wantNothing()
	// Only watches are held.
	f.wantBody(f.get(podsOfA))

	gate.Release()
	gate.Release()
	running.want("one", "two")
	fresh.want("three", "four")
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	if gate.Waiting(ended, 1) == nil {
		t.Error("a watch waits at a gate that is released")
	}
	running.send("after")
	running.want("after")
	later := f.watch(podsOfA + watch)
	later.send("five")
	later.want("five")
}

// What is held back is held back from the client, and not from the server, which would end a watch that is slow.
func TestHoldEventsBeyondAllBuffers(t *testing.T) {
	f := newFixture(t)
	w := f.watch(podsOfA + watch)
	gate := f.proxy.HoldEvents(pods)
	var events []string
	for i := range 64 {
		events = append(events, strconv.Itoa(i)+strings.Repeat(" ", 256<<10))
	}
	w.send(events...)
	close(w.server.events)
	must(t, gate.Waiting(f.ctx, 1))
	w.wantNothing()
	gate.Release()
	w.want(events...)
	w.want(cleanEnd)
}

func TestHoldEventsByTwoGates(t *testing.T) {
	f := newFixture(t)
	w := f.watch(podsOfA + watch)
	first := f.proxy.HoldEvents(pods)
	w.send("one")
	must(t, first.Waiting(f.ctx, 1))
	second := f.proxy.HoldEvents(faultproxy.Match{Namespace: "a"})
	must(t, second.Waiting(f.ctx, 1))
	first.Release()
	// The end comes before the event if, and only if, the event is still held.
	f.proxy.EndWatches(pods)
	w.want(cleanEnd)

	w = f.watch(podsOfA + watch)
	w.send("two")
	must(t, second.Waiting(f.ctx, 1))
	second.Release()
	w.want("two")
}

// A watch that has ended does not wait any more.
func TestHoldEventsOfWatchesThatEnd(t *testing.T) {
	f := newFixture(t)
	gate := f.proxy.HoldEvents(pods)
	for range 2 {
		w := f.watch(podsOfA + watch)
		w.send("one")
		must(t, gate.Waiting(f.ctx, 1))
		f.proxy.EndWatches(pods)
		w.want(cleanEnd)
	}
	last := f.watch(podsOfA + watch)
	close(last.server.events)
	must(t, gate.Waiting(f.ctx, 1))
	last.wantNothing()
	gate.Release()
	last.want(cleanEnd)
}

// A watch that the server refuses has no events.
func TestHoldEventsOfRefusedWatches(t *testing.T) {
	f := newFixture(t)
	f.backend.handle = func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "refused", http.StatusForbidden)
	}
	f.proxy.HoldEvents(pods)
	// The backend itself takes this for a list.
	got := f.get(podsOfA + "?watch=1")
	if got.err != nil || got.status != http.StatusForbidden || got.body != "refused\n" {
		t.Errorf("got %v", got)
	}
}

func TestEndWatches(t *testing.T) {
	f := newFixture(t)
	first, second, other := f.watch(podsOfA+watch), f.watch(podsOfA+watch), f.watch(podsOfB+watch)
	gate := f.proxy.HoldEvents(faultproxy.Match{Namespace: "a"})
	first.send("lost")
	must(t, gate.Waiting(f.ctx, 1))

	if ended := f.proxy.EndWatches(faultproxy.Match{Resource: "pods", Namespace: "a"}); ended != 2 {
		t.Errorf("ended %d watches, want 2", ended)
	}
	first.want(cleanEnd)
	second.want(cleanEnd)
	gate.Release()
	other.send("still there")
	other.want("still there")
	again := f.watch(podsOfA + watch)
	again.send("again")
	again.want("again")
}

// A watch that the server has yet to answer runs.
func TestEndWatchesThatAreNotAnswered(t *testing.T) {
	f := newFixture(t)
	gate := f.proxy.HoldResponses(pods)
	w := f.beginWatch(podsOfA + watch)
	must(t, gate.Waiting(f.ctx, 1))
	if ended := f.proxy.EndWatches(pods); ended != 1 {
		t.Errorf("ended %d watches, want 1", ended)
	}
	if ended := f.proxy.EndWatches(pods); ended != 0 {
		t.Errorf("ended %d watches again", ended)
	}
	gate.Release()
	w.want(cleanEnd)
}

func TestExpire(t *testing.T) {
	f := newFixture(t)
	w, other := f.watch(podsOfA+watch+resumed), f.watch(podsOfB+watch+resumed)
	gate := f.proxy.HoldEvents(pods)
	w.send("lost")
	must(t, gate.Waiting(f.ctx, 1))

	namespace := faultproxy.Match{Resource: "pods", Namespace: "a"}
	rule := f.proxy.Expire(namespace, 2)
	w.want(cleanEnd)
	f.watch(podsOfB + watch + resumed)
	for range 2 {
		got := f.get(podsOfA + watch + resumed)
		if got.err != nil || got.status != http.StatusOK || !strings.Contains(got.body, `"code":410`) {
			t.Errorf("got %v, want an event with code 410", got)
		}
		// Neither a list nor a watch that takes the place of one can be too old.
		f.wantBody(f.get(podsOfA))
		fresh := f.watch(podsOfA + watch + resumed + "&sendInitialEvents=true")
		f.proxy.EndWatches(namespace)
		fresh.want(cleanEnd)
	}
	must(t, rule.Wait(f.ctx, 2))

	gate.Release()
	again := f.watch(podsOfA + watch + resumed)
	again.send("again")
	again.want("again")
	other.send("still there")
	other.want("still there")
}

func TestExpireUntilRemoved(t *testing.T) {
	f := newFixture(t)
	rule := f.proxy.Expire(faultproxy.Match{Where: func(r faultproxy.Request) bool { return r.Namespace == "a" }}, 0)
	for range 3 {
		if got := f.get(podsOfA + watch + resumed); !strings.Contains(got.body, `"code":410`) {
			t.Errorf("got %v, want an event with code 410", got)
		}
	}
	other := f.watch(podsOfB + watch + resumed)
	other.send("not selected")
	other.want("not selected")
	rule.Remove()
	w := f.watch(podsOfA + watch + resumed)
	w.send("back")
	w.want("back")
}
