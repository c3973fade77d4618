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
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"pvc-protection-operator/test/faultproxy"
)

func TestHoldRequests(t *testing.T) {
	f := newFixture(t)
	gate := f.proxy.HoldRequests(faultproxy.Match{Namespace: "a"})
	first := f.begin(f.ctx, http.MethodGet, podsOfA)
	second := f.begin(f.ctx, http.MethodPost, podsOfA)
	must(t, gate.Waiting(f.ctx, 2))
	f.wantBody(f.get(podsOfB))
	f.wantPending(first)
	f.wantPending(second)
	if seen := len(f.backend.seen()); seen != 1 {
		t.Errorf("the server has seen %d requests, want the one that is not held", seen)
	}

	gate.Release()
	gate.Release()
	f.wantBody(<-first)
	f.wantBody(<-second)
	f.wantBody(f.get(podsOfA))
}

func TestHoldResponses(t *testing.T) {
	f := newFixture(t)
	gate := f.proxy.HoldResponses(faultproxy.Match{Namespace: "a"})
	first := f.begin(f.ctx, http.MethodGet, podsOfA)
	second := f.begin(f.ctx, http.MethodPost, podsOfA)
	must(t, gate.Waiting(f.ctx, 2))
	f.wantBody(f.get(podsOfB))
	f.wantPending(first)
	f.wantPending(second)
	if seen := len(f.backend.seen()); seen != 3 {
		t.Errorf("the server has seen %d requests, want all 3", seen)
	}

	gate.Release()
	gate.Release()
	f.wantBody(<-first)
	f.wantBody(<-second)
	f.wantBody(f.get(podsOfA))
}

// A response is held when the server has written all of it, however long it is.
func TestHoldResponsesInFull(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat(body, 16<<10)
	answered := make(chan struct{})
	f.backend.handle = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, long)
		close(answered)
	}
	gate := f.proxy.HoldResponses(pods)
	answers := f.begin(f.ctx, http.MethodGet, podsOfA)
	must(t, gate.Waiting(f.ctx, 1))
	select {
	case <-answered:
	case <-f.ctx.Done():
		t.Error("the server cannot finish")
	}
	gate.Release()
	if got := <-answers; got.err != nil || got.body != long {
		t.Errorf("got %d bytes and error %v, want %d", len(got.body), got.err, len(long))
	}
}

func TestHoldResponseThatBreaksOff(t *testing.T) {
	f := newFixture(t)
	f.backend.handle = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, body)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	gate := f.proxy.HoldResponses(pods)
	answers := f.begin(f.ctx, http.MethodGet, podsOfA)
	must(t, gate.Waiting(f.ctx, 1))
	gate.Release()
	if got := <-answers; got.err == nil {
		t.Errorf("got a whole answer: %v", got)
	}
}

func TestHoldResponsesOfWatches(t *testing.T) {
	f := newFixture(t)
	gate := f.proxy.HoldResponses(pods)
	w := f.beginWatch(podsOfA + watch)
	must(t, gate.Waiting(f.ctx, 1))
	w.send("one")
	select {
	case <-w.answered:
		t.Error("the client has an answer")
	default:
	}
	gate.Release()
	w.want("one")
}

// A gate can hold some of the requests, where a rule says so.
func TestGateInARule(t *testing.T) {
	for name, fault := range map[string]func(*faultproxy.Gate) faultproxy.Fault{
		"request":  (*faultproxy.Gate).HoldRequest,
		"response": (*faultproxy.Gate).HoldResponse,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			gate := faultproxy.NewGate()
			f.proxy.Add(faultproxy.Rule{Match: pods, Skip: 1, Times: 1, Fault: fault(gate)})
			f.wantBody(f.get(podsOfA))
			held := f.begin(f.ctx, http.MethodGet, podsOfA)
			must(t, gate.Waiting(f.ctx, 1))
			f.wantBody(f.get(podsOfA))
			f.wantPending(held)
			gate.Release()
			f.wantBody(<-held)
		})
	}
}

// Faults add up: what is held can fail afterwards.
func TestHoldAndFail(t *testing.T) {
	f := newFixture(t)
	gate := f.proxy.HoldResponses(pods)
	f.proxy.Add(faultproxy.Rule{Match: pods, Fault: faultproxy.Cut(10)})
	answers := f.begin(f.ctx, http.MethodGet, podsOfA)
	must(t, gate.Waiting(f.ctx, 1))
	gate.Release()
	if got := <-answers; got.err == nil || got.body != body[:10] {
		t.Errorf("got %v, want %q and an error", got, body[:10])
	}
}

func TestWaiting(t *testing.T) {
	f := newFixture(t)
	gate := f.proxy.HoldRequests(pods)
	ctx, cancel := context.WithCancel(f.ctx)
	answers := f.begin(ctx, http.MethodGet, podsOfA)
	must(t, gate.Waiting(f.ctx, 1))
	must(t, gate.Waiting(f.ctx, 0))
	cancel()
	<-answers
	if err := gate.Waiting(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
