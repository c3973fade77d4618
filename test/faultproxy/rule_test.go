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
	"net/http"
	"slices"
	"testing"

	"pvc-protection-operator/test/faultproxy"
)

// statuses returns the status codes of so many lists.
func (f *fixture) statuses(n int) []int {
	var codes []int
	for range n {
		got := f.get(podsOfA)
		if got.err != nil {
			f.t.Fatal(got.err)
		}
		codes = append(codes, got.status)
	}
	return codes
}

func TestRules(t *testing.T) {
	const (
		ok      = http.StatusOK
		broken  = http.StatusInternalServerError
		away    = http.StatusServiceUnavailable
		refused = http.StatusForbidden
	)
	for _, c := range []struct {
		name  string
		rules []faultproxy.Rule
		want  []int
		hits  []int
	}{
		{
			name:  "all, without a number",
			rules: []faultproxy.Rule{{Fault: faultproxy.Answer(broken)}},
			want:  []int{broken, broken, broken, broken},
			hits:  []int{4},
		},
		{
			name:  "a number of times",
			rules: []faultproxy.Rule{{Times: 2, Fault: faultproxy.Answer(broken)}},
			want:  []int{broken, broken, ok, ok},
			hits:  []int{2},
		},
		{
			name:  "not the first ones",
			rules: []faultproxy.Rule{{Skip: 1, Times: 2, Fault: faultproxy.Answer(broken)}},
			want:  []int{ok, broken, broken, ok},
			hits:  []int{2},
		},
		{
			name: "one after the other",
			rules: []faultproxy.Rule{
				{Times: 1, Fault: faultproxy.Answer(broken)},
				{Times: 1, Fault: faultproxy.Answer(away)},
				{Skip: 1, Times: 1, Fault: faultproxy.Answer(refused)},
			},
			want: []int{broken, away, ok, refused},
			hits: []int{1, 1, 1},
		},
		{
			name:  "only what is selected",
			rules: []faultproxy.Rule{{Match: faultproxy.Match{Namespace: "b"}, Fault: faultproxy.Answer(broken)}},
			want:  []int{ok},
			hits:  []int{0},
		},
		{
			name:  "nothing, but count",
			rules: []faultproxy.Rule{{}, {Fault: faultproxy.Answer(broken)}, {}},
			want:  []int{broken, broken},
			hits:  []int{2, 2, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			var active []*faultproxy.ActiveRule
			for _, rule := range c.rules {
				active = append(active, f.proxy.Add(rule))
			}
			if got := f.statuses(len(c.want)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			for i, rule := range active {
				if rule.Hits() != c.hits[i] {
					t.Errorf("rule %d has %d hits, want %d", i, rule.Hits(), c.hits[i])
				}
			}
		})
	}
}

func TestRemove(t *testing.T) {
	f := newFixture(t)
	broken := f.proxy.Add(faultproxy.Rule{Fault: faultproxy.Answer(http.StatusInternalServerError)})
	refused := f.proxy.Add(faultproxy.Rule{Fault: faultproxy.Answer(http.StatusForbidden)})
	codes := f.statuses(1)
	broken.Remove()
	codes = append(codes, f.statuses(1)...)
	refused.Remove()
	refused.Remove()
	codes = append(codes, f.statuses(1)...)
	if want := []int{500, 403, 200}; !slices.Equal(codes, want) {
		t.Errorf("got %v, want %v", codes, want)
	}
}

// A rule that is removed while another one holds a request is not for that request any more.
func TestRemoveWhileHeld(t *testing.T) {
	f := newFixture(t)
	gate := f.proxy.HoldRequests(faultproxy.Match{})
	rule := f.proxy.Add(faultproxy.Rule{Fault: faultproxy.Answer(http.StatusInternalServerError)})
	answers := f.begin(f.ctx, http.MethodGet, podsOfA)
	must(t, gate.Waiting(f.ctx, 1))
	rule.Remove()
	gate.Release()
	f.wantBody(<-answers)
}

func TestWait(t *testing.T) {
	f := newFixture(t)
	rule := f.proxy.Add(faultproxy.Rule{Match: pods})
	done := make(chan error, 1)
	go func() { done <- rule.Wait(f.ctx, 3) }()
	for range 2 {
		f.wantBody(f.get(podsOfA))
	}
	select {
	case err := <-done:
		t.Fatalf("waited for 2 of 3: %v", err)
	default:
	}
	f.wantBody(f.get(podsOfA))
	must(t, <-done)

	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if err := rule.Wait(ctx, 4); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
