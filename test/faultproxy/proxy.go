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
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Proxy passes requests on to an API server, except for the faults that it was told of. Its methods may be called
// concurrently.
type Proxy struct {
	url       string
	identity  *identity
	transport *http.Transport
	reverse   *httputil.ReverseProxy
	server    *http.Server
	cancel    context.CancelFunc

	// calls are the requests in progress, and what else runs on behalf of the proxy.
	calls    sync.WaitGroup
	arrivals tally

	mu     sync.Mutex
	closed bool
	rules  []*ActiveRule
	// gates hold the events of the watches that the Match selects.
	gates   map[*Gate]Match
	streams map[*stream]Request
	stats   map[Request]*Stats
}

// call is a request in progress.
type call struct {
	request Request
	stats   *Stats
	// stream is what the server sends on a watch, and nil for other requests.
	stream *stream
	// faults await the server's answer.
	faults []Fault
}

type (
	callKey       struct{}
	connectionKey struct{}
)

// New returns a proxy to the API server of a client configuration, of which address and trust are used and credentials
// are not. It serves until it is closed or the context ends.
func New(ctx context.Context, upstream *rest.Config) (*Proxy, error) {
	anonymous := rest.AnonymousClientConfig(upstream)
	target, _, err := rest.DefaultServerUrlFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	clientTLS, err := rest.TLSConfigFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("trust in the API server: %w", err)
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(ctx)
	p := &Proxy{
		url:      "https://" + listener.Addr().String(),
		identity: identity,
		// Whether to compress is between client and server.
		transport: utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: clientTLS, DisableCompression: true}),
		cancel:    cancel,
		gates:     map[*Gate]Match{},
		streams:   map[*stream]Request{},
		stats:     map[Request]*Stats{},
	}
	// What goes wrong goes wrong on purpose, and the client learns of it.
	quiet := log.New(io.Discard, "", 0)
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      p.transport,
		FlushInterval:  -1, // whatever arrived before a fault is to be seen by the client
		ModifyResponse: p.answered,
		ErrorHandler:   unanswered,
		ErrorLog:       quiet,
	}
	p.server = &http.Server{
		Handler:     http.HandlerFunc(p.serve),
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{identity.certificate}},
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, connection net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, connection)
		},
		ErrorLog: quiet,
	}
	p.calls.Go(func() {
		// Returns when the server is closed, and with nothing else to say.
		_ = p.server.ServeTLS(listener, "", "")
	})
	context.AfterFunc(ctx, func() { _ = p.Close() })
	return p, nil
}

// URL returns the proxy's address.
func (p *Proxy) URL() string {
	return p.url
}

// Close closes all connections and returns when no request is in progress any more, those at closed gates included.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()

	p.cancel()
	err := p.server.Close()
	p.calls.Wait()
	p.transport.CloseIdleConnections()
	return err
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	c, rules := p.begin(r)
	if c == nil {
		panic(http.ErrAbortHandler)
	}
	defer p.end(c)

	for _, rule := range rules {
		if !rule.take(c.request) {
			continue
		}
		if fault := rule.rule.Fault; fault.before != nil && fault.before(w, r, c.request) {
			return
		} else if fault.after != nil {
			c.faults = append(c.faults, fault)
		}
	}
	p.reverse.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
}

// begin counts the request and returns the rules that may apply to it. From here on, gates and ends of watches concern
// it too. It returns nothing when the proxy is closed.
func (p *Proxy) begin(r *http.Request) (*call, []*ActiveRule) {
	request := parse(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil
	}
	p.calls.Add(1)

	c := &call{request: request, stats: p.stats[request]}
	if c.stats == nil {
		c.stats = &Stats{}
		p.stats[request] = c.stats
	}
	c.stats.Requests++
	p.arrivals.add(1)

	if request.Verb == verbWatch {
		c.stream = newStream()
		p.streams[c.stream] = request
		for gate, match := range p.gates {
			if match.matches(request) {
				c.stream.hold(gate)
			}
		}
	}
	return c, slices.Clone(p.rules)
}

func (p *Proxy) end(c *call) {
	defer p.calls.Done()
	if c.stream == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, c.stream)
	c.stream.close()
}

// answered is called with the head of the server's answer.
func (p *Proxy) answered(response *http.Response) error {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	ctx := response.Request.Context()
	c := ctx.Value(callKey{}).(*call)
	if c.stream != nil && response.StatusCode == http.StatusOK {
		body := response.Body
		p.calls.Go(func() { c.stream.fill(body) })
		context.AfterFunc(ctx, func() { c.stream.end() })
		response.Body = replaceBody(body, c.stream)
	}
	for _, fault := range c.faults {
		if err := fault.after(response, c.request); err != nil {
			return err
		}
	}
	response.Body = replaceBody(response.Body, &countingReader{Reader: response.Body, proxy: p, stats: c.stats})
	return nil
}

// unanswered is called when no answer can be passed on. The client loses its connection, as it would to a server that
// is not there, or only its stream, if it has given up itself or a fault says so.
func unanswered(_ http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil && !errors.Is(err, errCut) {
		resetConnection(r.Context())
	}
	panic(http.ErrAbortHandler)
}

// resetConnection closes the connection of a request by a TCP reset.
func resetConnection(ctx context.Context) {
	connection := ctx.Value(connectionKey{}).(*tls.Conn).NetConn().(*net.TCPConn)
	// A connection that cannot be reset or closed is closed already.
	_ = errors.Join(connection.SetLinger(0), connection.Close())
}

// replaceBody returns a body that reads from the reader and closes the given one.
func replaceBody(body io.Closer, reader io.Reader) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{reader, body}
}
