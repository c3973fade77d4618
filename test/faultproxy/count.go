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
	"fmt"
	"io"
	"sync"
)

// Stats are figures about requests.
type Stats struct {
	// Requests is how many there were, whatever became of them.
	Requests int
	// Bytes is how much of the bodies of the server's answers was passed on, as on the wire.
	Bytes int64
}

// Kind is what Snapshot counts by.
type Kind struct {
	Verb, Resource, Namespace string
}

// Snapshot returns the figures of all requests to resources so far.
func (p *Proxy) Snapshot() map[Kind]Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	snapshot := map[Kind]Stats{}
	for request, stats := range p.stats {
		if request.Verb == "" {
			continue
		}
		kind := Kind{Verb: request.Verb, Resource: request.Resource, Namespace: request.Namespace}
		sum := snapshot[kind]
		sum.Requests += stats.Requests
		sum.Bytes += stats.Bytes
		snapshot[kind] = sum
	}
	return snapshot
}

// Count returns how many selected requests there were so far.
func (p *Proxy) Count(match Match) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for request, stats := range p.stats {
		if match.matches(request) {
			count += stats.Requests
		}
	}
	return count
}

// WaitForCount returns when Count is n or more, or with an error when the context ends. To wait for requests from now
// on, add a Rule without a fault and wait for that.
func (p *Proxy) WaitForCount(ctx context.Context, match Match, n int) error {
	for {
		arrivals := p.arrivals.value()
		count := p.Count(match)
		if count >= n {
			return nil
		}
		if err := p.arrivals.wait(ctx, arrivals+1); err != nil {
			return fmt.Errorf("waiting for request %d of %+v after %d: %w", n, match, count, context.Cause(ctx))
		}
	}
}

// countingReader counts the bytes that are read.
type countingReader struct {
	io.Reader
	proxy *Proxy
	stats *Stats
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	r.stats.Bytes += int64(n)
	return n, err
}

// tally is a number to wait for. The zero value is ready for use.
type tally struct {
	mu      sync.Mutex
	n       int
	changed chan struct{}
}

func (t *tally) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n += n
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

func (t *tally) value() int {
	n, _ := t.current()
	return n
}

// wait returns when the number is n or more, or with an error when the context ends.
func (t *tally) wait(ctx context.Context, n int) error {
	for {
		value, changed := t.current()
		if value >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d, got to %d: %w", n, value, context.Cause(ctx))
		}
	}
}

// current returns the number and a channel that is closed when it changes.
func (t *tally) current() (int, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.n, t.changed
}
