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

package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"pvc-protection-operator/test/faultproxy"
)

// saboteur injects faults between the replicas and the API server.
type saboteur struct {
	replicas []*replica
	// running are faults that last for a while.
	running sync.WaitGroup

	mu       sync.Mutex
	injected map[Kind]int
	rules    []*faultproxy.ActiveRule
}

func newSaboteur(replicas []*replica) *saboteur {
	return &saboteur{replicas: replicas, injected: map[Kind]int{}}
}

// inject begins a fault, which ends after its time or with the context.
func (s *saboteur) inject(ctx context.Context, op Op) {
	target := s.target(ctx, op)
	switch op.Kind {
	case Kill, Stop, Pause:
		if !target.disturb(ctx, op) {
			return // it is busy with another one
		}
	default:
		end := s.begin(target.proxy, op)
		s.running.Go(func() {
			defer end()
			pass(ctx, op.For)
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.injected[op.Kind]++
}

// target returns whom the fault is for.
func (s *saboteur) target(ctx context.Context, op Op) *replica {
	if op.LeaderFirst {
		for _, r := range s.replicas {
			if r.leads(ctx) {
				return r
			}
		}
	}
	return s.replicas[op.Replica]
}

// begin begins a fault and returns what ends it.
func (s *saboteur) begin(proxy *faultproxy.Proxy, op Op) (end func()) {
	lists := faultproxy.Match{Verb: "list", Resource: "pods"}
	patches := faultproxy.Match{Verb: "patch", Resource: "persistentvolumeclaims"}
	add := func(match faultproxy.Match, times int, fault faultproxy.Fault) (end func()) {
		rule := proxy.Add(faultproxy.Rule{Match: match, Times: times, Fault: fault})
		s.keep(rule)
		return rule.Remove
	}
	hold := func(match faultproxy.Match, fault func(*faultproxy.Gate) faultproxy.Fault) (end func()) {
		gate := faultproxy.NewGate()
		remove := add(match, 0, fault(gate))
		return func() { remove(); gate.Release() }
	}
	expire := func(resource string) (end func()) {
		// What happens around it is lost to the replica: it sees what there is then.
		gate := proxy.HoldEvents(faultproxy.Match{Resource: resource})
		return func() {
			s.keep(proxy.Expire(faultproxy.Match{Resource: resource}, 1))
			gate.Release()
		}
	}
	retryAfter := time.Duration(0)
	if op.Times%3 == 0 {
		retryAfter = time.Second // client-go itself tries again
	}
	switch op.Kind {
	case HoldPods:
		return proxy.HoldEvents(faultproxy.Match{Resource: "pods"}).Release
	case HoldClaims:
		return proxy.HoldEvents(faultproxy.Match{Resource: "persistentvolumeclaims"}).Release
	case ExpirePods:
		return expire("pods")
	case ExpireClaims:
		return expire("persistentvolumeclaims")
	case EndWatches:
		proxy.EndWatches(faultproxy.Match{})
		return func() {}
	case FailLists:
		return add(lists, op.Times, faultproxy.AnswerRetryAfter(op.Code, retryAfter))
	case CutLists:
		return add(lists, op.Times, faultproxy.Cut(int64(op.Code)))
	case SlowLists:
		return hold(lists, (*faultproxy.Gate).HoldResponse)
	case FailWrites:
		return add(patches, op.Times, faultproxy.Answer(op.Code))
	case LoseWrites:
		return add(patches, op.Times, faultproxy.Cut(0))
	case SlowWrites:
		return hold(patches, (*faultproxy.Gate).HoldResponse)
	case LateWrites:
		return hold(patches, (*faultproxy.Gate).HoldRequest)
	case ResetAll:
		return add(faultproxy.Match{}, op.Times, faultproxy.Reset())
	case FailLeases:
		return add(faultproxy.Match{Resource: "leases"}, 0, faultproxy.Answer(op.Code))
	default:
		panic(fmt.Sprintf("unknown fault %q", op.Kind))
	}
}

func (s *saboteur) keep(rule *faultproxy.ActiveRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, rule)
}

// end returns when the faults have ended, once their context has.
func (s *saboteur) end() {
	s.running.Wait()
	for _, r := range s.replicas {
		r.resume()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range s.rules {
		rule.Remove()
	}
}

// count returns how many faults there were, and how many requests they have hit, apart from watches.
func (s *saboteur) count() (faults, requests int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := make([]string, 0, len(s.injected))
	for _, kind := range slices.Sorted(maps.Keys(s.injected)) {
		faults += s.injected[kind]
		parts = append(parts, fmt.Sprintf("%s %d", kind, s.injected[kind]))
	}
	for _, rule := range s.rules {
		requests += rule.Hits()
	}
	return faults, requests, strings.Join(parts, ", ")
}

// pass lets time pass.
func pass(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
