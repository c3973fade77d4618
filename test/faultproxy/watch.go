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
	"io"
	"sync"
)

// HoldEvents holds back what the server sends on the selected watches, those that run and those to come, without their
// noticing: a watch that begins is answered, and then delivers nothing. That includes the initial events of a watch
// that takes the place of a list. The verb of the Match is always watch.
//
// The proxy takes from the server what it holds back, so that the server has no reason to end a watch that it finds
// slow.
func (p *Proxy) HoldEvents(match Match) *Gate {
	match.Verb = verbWatch
	g := NewGate()
	g.release = func() { p.releaseEvents(g) }

	p.mu.Lock()
	defer p.mu.Unlock()
	p.gates[g] = match
	for stream, request := range p.streams {
		if match.matches(request) {
			stream.hold(g)
		}
	}
	return g
}

func (p *Proxy) releaseEvents(g *Gate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.gates, g)
	for stream := range p.streams {
		stream.unhold(g)
	}
}

// EndWatches ends the selected watches that run, as the server does after some time, and returns how many these are.
// Events that are held back on them are lost. The verb of the Match is always watch.
func (p *Proxy) EndWatches(match Match) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endWatches(match)
}

// endWatches is EndWatches for callers that hold the lock.
func (p *Proxy) endWatches(match Match) int {
	match.Verb = verbWatch
	ended := 0
	for stream, request := range p.streams {
		if match.matches(request) && stream.end() {
			ended++
		}
	}
	return ended
}

// Expire ends the selected watches, as EndWatches does, and tells the next so many that want to go on from where one
// ended that this is not possible any more, so that these clients have to relist. For 0 it tells all, until the rule is
// removed. Watches that begin with what exists are not told.
//
// Which clients are told is a matter of who comes first: one that lists, and then watches from where its list was, is
// told again if there is still something to tell. Moreover, a reflector whose watch has ended within a second and
// without an event relists unasked. To wait for a client, wait for what it does then: a list, or a watch that is not
// Resumed.
func (p *Proxy) Expire(match Match, times int) *ActiveRule {
	match.Verb = verbWatch
	resumed := match
	resumed.Where = func(r Request) bool { return r.Resumed && (match.Where == nil || match.Where(r)) }

	p.mu.Lock()
	defer p.mu.Unlock()
	rule := p.add(Rule{Match: resumed, Times: times, Fault: Expired()})
	p.endWatches(match)
	return rule
}

// stream is what the server sends on a watch, on its way to the client.
type stream struct {
	mu      sync.Mutex
	changed sync.Cond

	// gates hold the stream. The value is whether the stream counts as waiting at the gate.
	gates map[*Gate]bool
	// sent is what the server has sent and the client has not got.
	sent bytes.Buffer
	// err is how the server has ended the stream.
	err error
	// ended is true when nothing is to be delivered any more.
	ended bool
}

func newStream() *stream {
	s := &stream{gates: map[*Gate]bool{}}
	s.changed.L = &s.mu
	return s
}

// fill takes everything from the server.
func (s *stream) fill(body io.Reader) {
	chunk := make([]byte, 16<<10)
	for {
		n, err := body.Read(chunk)
		s.update(func() {
			s.sent.Write(chunk[:n])
			s.err = err
		})
		if err != nil {
			return
		}
	}
}

// Read hands to the client what the server has sent, unless it is held.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended && (len(s.gates) > 0 || !s.pending()) {
		s.changed.Wait()
	}
	switch {
	case s.ended:
		return 0, io.EOF
	case s.sent.Len() > 0:
		return s.sent.Read(p)
	default:
		return 0, s.err
	}
}

func (s *stream) hold(g *Gate) {
	s.update(func() { s.gates[g] = false })
}

func (s *stream) unhold(g *Gate) {
	s.update(func() {
		if s.gates[g] {
			g.waiting.add(-1)
		}
		delete(s.gates, g)
	})
}

// end makes the client see the end of the stream. It returns false if that was so before.
func (s *stream) end() bool {
	var first bool
	s.update(func() { first, s.ended = !s.ended, true })
	return first
}

// close forgets the stream.
func (s *stream) close() {
	s.update(func() {
		s.ended = true
		for g, waiting := range s.gates {
			if waiting {
				g.waiting.add(-1)
			}
		}
		clear(s.gates)
	})
}

func (s *stream) pending() bool {
	return s.sent.Len() > 0 || s.err != nil
}

// update changes the stream and lets those know whom it concerns.
func (s *stream) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	for g, waiting := range s.gates {
		if !waiting && s.pending() {
			s.gates[g] = true
			g.waiting.add(1)
		}
	}
	s.changed.Broadcast()
}
