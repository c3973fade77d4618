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
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"pvc-protection-operator/test/faultproxy"
)

// fixture is a client of a proxy of a backend.
type fixture struct {
	t       *testing.T
	ctx     context.Context
	backend *backend
	proxy   *faultproxy.Proxy
	config  *rest.Config
	client  *http.Client
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, ctx: testContext(t), backend: newBackend(t)}
	f.newProxy(t.Context(), f.backend.config())
	return f
}

// newProxy makes a proxy and a client of it with the given server.
func (f *fixture) newProxy(ctx context.Context, upstream *rest.Config) {
	f.t.Helper()
	proxy, err := faultproxy.New(ctx, upstream)
	must(f.t, err)
	f.t.Cleanup(func() { must(f.t, proxy.Close()) })
	f.proxy = proxy
	config, err := proxy.Config(f.backend.config())
	must(f.t, err)
	f.use(config)
}

// use makes the client one of the given configuration.
func (f *fixture) use(config *rest.Config) {
	f.t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(f.t, err)
	f.config, f.client = config, client
}

// useHTTP1 makes the client use HTTP/1.1.
func (f *fixture) useHTTP1() {
	f.t.Helper()
	base := f.backend.config()
	base.NextProtos = []string{"http/1.1"}
	config, err := f.proxy.Config(base)
	must(f.t, err)
	f.use(config)
}

// testContext returns a context that ends a test that hangs.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	proto  int
	body   string
	err    error
}

func (a answer) String() string {
	return fmt.Sprintf("HTTP/%d %d %v %q, error %v", a.proto, a.status, a.header, a.body, a.err)
}

// connectionLost returns whether the client has lost its connection. To a client that was about to write, a reset
// looks like an end.
func (a answer) connectionLost() bool {
	return slices.ContainsFunc([]error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF},
		func(err error) bool { return errors.Is(a.err, err) })
}

func (f *fixture) get(path string) answer {
	return f.do(f.ctx, http.MethodGet, path, "")
}

func (f *fixture) do(ctx context.Context, method, path, content string) answer {
	request, err := http.NewRequestWithContext(ctx, method, f.config.Host+path, strings.NewReader(content))
	if err != nil {
		return answer{err: err}
	}
	response, err := f.client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, response.ProtoMajor, string(got), err}
}

// begin makes a request whose answer is not awaited.
func (f *fixture) begin(ctx context.Context, method, path string) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- f.do(ctx, method, path, "") }()
	return answers
}

// wantBody checks that the request was answered by the backend.
func (f *fixture) wantBody(got answer) {
	f.t.Helper()
	if got.err != nil || got.status != http.StatusOK || got.body != body {
		f.t.Errorf("not the backend's answer: %v", got)
	}
}

// wantPending checks that there is no answer.
func (f *fixture) wantPending(answers <-chan answer) {
	f.t.Helper()
	select {
	case got := <-answers:
		f.t.Errorf("answered too early: %v", got)
	default:
	}
}

func (f *fixture) clientset() *kubernetes.Clientset {
	f.t.Helper()
	client, err := kubernetes.NewForConfig(f.config)
	must(f.t, err)
	return client
}

// clientWatch is the client's side of a watch.
type clientWatch struct {
	t      *testing.T
	ctx    context.Context
	server *serverWatch
	// answered is closed when the client has got the head of the answer.
	answered chan struct{}
	events   chan string
}

// watch begins a watch, and returns when it is answered.
func (f *fixture) watch(path string) *clientWatch {
	f.t.Helper()
	w := f.beginWatch(path)
	select {
	case <-w.answered:
	case <-f.ctx.Done():
		f.t.Fatal("the watch is not answered")
	}
	return w
}

// beginWatch begins a watch, and returns when it has reached the server.
func (f *fixture) beginWatch(path string) *clientWatch {
	f.t.Helper()
	w := &clientWatch{t: f.t, ctx: f.ctx, answered: make(chan struct{}), events: make(chan string, 100)}
	go func() { w.events <- fmt.Sprintf("end: %v", w.receive(f.client, f.config.Host+path)) }()
	select {
	case w.server = <-f.backend.watches:
	case <-f.ctx.Done():
		f.t.Fatal("the watch has not reached the server")
	}
	return w
}

// receive returns how the watch has ended.
func (w *clientWatch) receive(client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	close(w.answered)
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		w.events <- lines.Text()
	}
	return lines.Err()
}

func (w *clientWatch) send(events ...string) {
	w.t.Helper()
	for _, event := range events {
		select {
		case w.server.events <- event:
		case <-w.ctx.Done():
			w.t.Fatalf("the server cannot send %q", event)
		}
	}
}

// want checks which events come next.
func (w *clientWatch) want(events ...string) {
	w.t.Helper()
	for _, event := range events {
		select {
		case got := <-w.events:
			if got != event {
				w.t.Fatalf("got %q, want %q", got, event)
			}
		case <-w.ctx.Done():
			w.t.Fatalf("%q has not come", event)
		}
	}
}

// wantNothing checks that no event has come that is not accounted for.
func (w *clientWatch) wantNothing() {
	w.t.Helper()
	select {
	case got := <-w.events:
		w.t.Errorf("got %q, want nothing", got)
	default:
	}
}

const cleanEnd = "end: <nil>"
