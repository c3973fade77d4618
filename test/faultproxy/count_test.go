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
	"maps"
	"net/http"
	"testing"

	"pvc-protection-operator/test/faultproxy"
)

func TestCounts(t *testing.T) {
	f := newFixture(t)
	f.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verb: "patch"}, Times: 1, Fault: faultproxy.Answer(http.StatusConflict)})
	for _, path := range []string{podsOfA, podsOfA + "?limit=1", podsOfA + "?limit=1&continue=x", podsOfB, "/readyz"} {
		f.wantBody(f.get(path))
	}
	f.do(f.ctx, http.MethodPatch, podsOfA+"/x", "{}")
	f.wantBody(f.do(f.ctx, http.MethodPatch, podsOfA+"/y", "{}"))

	size := int64(len(body))
	want := map[faultproxy.Kind]faultproxy.Stats{
		{Verb: "list", Resource: "pods", Namespace: "a"}:  {Requests: 3, Bytes: 3 * size},
		{Verb: "list", Resource: "pods", Namespace: "b"}:  {Requests: 1, Bytes: size},
		{Verb: "patch", Resource: "pods", Namespace: "a"}: {Requests: 2, Bytes: size},
	}
	if got := f.proxy.Snapshot(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	for _, c := range []struct {
		match faultproxy.Match
		want  int
	}{
		{faultproxy.Match{}, 7},
		{faultproxy.Match{Verb: "list"}, 4},
		{faultproxy.Match{Verb: "list", Namespace: "a"}, 3},
		{faultproxy.Match{Page: faultproxy.LaterPage}, 1},
		{faultproxy.Match{Name: "y"}, 1},
		{faultproxy.Match{Resource: "secrets"}, 0},
	} {
		if got := f.proxy.Count(c.match); got != c.want {
			t.Errorf("counted %d of %+v, want %d", got, c.match, c.want)
		}
	}
}

func TestBytesOfWatchesAndCuts(t *testing.T) {
	f := newFixture(t)
	w := f.watch(podsOfA + watch)
	w.send("1234")
	w.want("1234")
	f.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verb: "list"}, Fault: faultproxy.Cut(10)})
	f.get(podsOfA)
	want := map[faultproxy.Kind]faultproxy.Stats{
		{Verb: "watch", Resource: "pods", Namespace: "a"}: {Requests: 1, Bytes: 5},
		{Verb: "list", Resource: "pods", Namespace: "a"}:  {Requests: 1, Bytes: 10},
	}
	if got := f.proxy.Snapshot(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWaitForCount(t *testing.T) {
	f := newFixture(t)
	lists := faultproxy.Match{Verb: "list"}
	f.wantBody(f.get(podsOfA))
	must(t, f.proxy.WaitForCount(f.ctx, lists, 1))

	done := make(chan error, 1)
	go func() { done <- f.proxy.WaitForCount(f.ctx, lists, 3) }()
	f.wantBody(f.get(podsOfA))
	f.wantBody(f.get(podsOfA + "/x"))
	select {
	case err := <-done:
		t.Fatalf("waited for 2 of 3: %v", err)
	default:
	}
	f.wantBody(f.get(podsOfA))
	must(t, <-done)

	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if err := f.proxy.WaitForCount(ctx, lists, 4); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
