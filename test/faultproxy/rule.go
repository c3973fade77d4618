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

package faultproxy

import (
	"context"
	"slices"
)

// Rule applies a fault to requests.
type Rule struct {
	// Match selects the requests.
	Match Match

	// Skip is how many of them are left alone at first. Defaults to none.
	Skip int

	// Times is how many of them the rule applies to. Defaults to all, for as long as the rule is there.
	Times int

	// Fault is what happens to them. Defaults to nothing, which makes a rule that counts.
	Fault Fault
}

// ActiveRule is a Rule that a Proxy obeys.
type ActiveRule struct {
	proxy *Proxy
	rule  Rule
	hits  tally

	// skipped is guarded by the proxy's lock.
	skipped int
}

// Add makes the proxy obey a rule from now on, until it is removed.
func (p *Proxy) Add(rule Rule) *ActiveRule {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(rule)
}

// add is Add for callers that hold the lock.
func (p *Proxy) add(rule Rule) *ActiveRule {
	active := &ActiveRule{proxy: p, rule: rule}
	p.rules = append(p.rules, active)
	return active
}

// Remove ends the rule. What it has begun goes on: requests that are held remain so until their gate is released, and
// responses that are awaited meet the fault when they come.
func (r *ActiveRule) Remove() {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	r.proxy.rules = slices.DeleteFunc(r.proxy.rules, func(other *ActiveRule) bool { return other == r })
}

// Hits returns how many requests the rule has been applied to.
func (r *ActiveRule) Hits() int {
	return r.hits.value()
}

// Wait returns when the rule has been applied to n requests, or with an error when the context ends.
func (r *ActiveRule) Wait(ctx context.Context, n int) error {
	return r.hits.wait(ctx, n)
}

// take returns whether the rule applies to the request, and counts it.
func (r *ActiveRule) take(request Request) bool {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	if !slices.Contains(r.proxy.rules, r) || !r.rule.Match.matches(request) {
		return false
	}
	if r.skipped < r.rule.Skip {
		r.skipped++
		return false
	}
	if r.rule.Times > 0 && r.hits.value() >= r.rule.Times {
		return false
	}
	r.hits.add(1)
	return true
}
