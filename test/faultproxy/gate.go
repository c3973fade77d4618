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
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// Gate holds requests, responses or events of watches until it is released. Those that come later pass.
type Gate struct {
	waiting  tally
	released chan struct{}
	release  func()
}

// NewGate returns a gate, for rules that hold some of the requests they select. Where all are to be held, the methods
// of a Proxy are shorter.
func NewGate() *Gate {
	g := &Gate{released: make(chan struct{})}
	g.release = sync.OnceFunc(func() { close(g.released) })
	return g
}

// HoldRequests holds the selected requests before the server sees them.
func (p *Proxy) HoldRequests(match Match) *Gate {
	g := NewGate()
	p.hold(g, Rule{Match: match, Fault: g.HoldRequest()})
	return g
}

// HoldResponses holds the responses to the selected requests after the server has answered them in full. Of watches,
// it holds the head of the response and with it everything.
func (p *Proxy) HoldResponses(match Match) *Gate {
	g := NewGate()
	p.hold(g, Rule{Match: match, Fault: g.HoldResponse()})
	return g
}

// hold adds a rule that goes when the gate is released.
func (p *Proxy) hold(g *Gate, rule Rule) {
	active := p.Add(rule)
	g.release = sync.OnceFunc(func() {
		active.Remove()
		close(g.released)
	})
}

// HoldRequest returns a fault that holds a request before the server sees it.
func (g *Gate) HoldRequest() Fault {
	return Fault{before: func(_ http.ResponseWriter, r *http.Request, _ Request) bool {
		if g.wait(r.Context()) != nil {
			panic(http.ErrAbortHandler) // the client has gone
		}
		return false
	}}
}

// HoldResponse returns a fault that holds a response after the server has answered in full.
func (g *Gate) HoldResponse() Fault {
	return Fault{after: func(response *http.Response, request Request) error {
		if request.Verb != verbWatch {
			body, err := io.ReadAll(response.Body)
			var reader io.Reader = bytes.NewReader(body)
			if err != nil {
				reader = io.MultiReader(reader, brokenReader{err})
			}
			response.Body = replaceBody(response.Body, reader)
		}
		return g.wait(response.Request.Context())
	}}
}

// Release lets everything pass that waits or comes later, events in the order in which the server sent them. A second
// call does nothing.
func (g *Gate) Release() {
	g.release()
}

// Waiting returns when at least n requests, responses or watches wait at the gate, or with an error when the context
// ends. A watch waits once the server has sent something on it, be it an event or a bookmark, or has ended it.
func (g *Gate) Waiting(ctx context.Context, n int) error {
	return g.waiting.wait(ctx, n)
}

// wait returns when the gate is released, or with an error when the context ends.
func (g *Gate) wait(ctx context.Context) error {
	g.waiting.add(1)
	defer g.waiting.add(-1)
	select {
	case <-g.released:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
