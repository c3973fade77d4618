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
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"pvc-protection-operator/test/faultproxy"
)

func TestProxyPassesRequestsOn(t *testing.T) {
	f := newFixture(t)
	f.backend.handle = func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		w.Header().Set("Warning", "as the server says")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(append([]byte("got "), content...))
	}

	got := f.do(f.ctx, http.MethodPut, podsOfA+"/x?dryRun=All", "content")
	if got.err != nil || got.status != http.StatusAccepted || got.body != "got content" ||
		got.header.Get("Warning") != "as the server says" {
		t.Errorf("unexpected answer: %v", got)
	}
	request := f.backend.seen()[0]
	if request.Method != http.MethodPut || request.URL.RequestURI() != podsOfA+"/x?dryRun=All" {
		t.Errorf("the server got %s %s", request.Method, request.URL)
	}
	if credentials := request.Header.Values("Authorization"); len(credentials) != 1 || credentials[0] != "Bearer "+token {
		t.Errorf("the server got credentials %q", credentials)
	}
	if agent := request.UserAgent(); agent != "tester/1.0" {
		t.Errorf("the server got user agent %q", agent)
	}
	if got.proto != 2 || request.ProtoMajor != 2 {
		t.Errorf("HTTP/%d to the client and HTTP/%d to the server, want HTTP/2", got.proto, request.ProtoMajor)
	}
}

func TestProxyUsesNoCredentialsOfItsOwn(t *testing.T) {
	f := newFixture(t)
	certificate, key, err := cert.GenerateSelfSignedCertKey("somebody", nil, nil)
	must(t, err)
	upstream := f.backend.config()
	upstream.CertData, upstream.KeyData = certificate, key
	f.newProxy(t.Context(), upstream)
	f.use(rest.AnonymousClientConfig(f.config))
	f.wantBody(f.get(podsOfA))
	request := f.backend.seen()[0]
	if credentials := request.Header.Values("Authorization"); len(credentials) > 0 {
		t.Errorf("the server got credentials %q", credentials)
	}
	if len(request.TLS.PeerCertificates) > 0 {
		t.Error("the server got a certificate")
	}
}

// Whether to compress is between client and server.
func TestProxyDoesNotAskForCompression(t *testing.T) {
	f := newFixture(t)
	f.config.DisableCompression = true
	f.use(f.config)
	f.wantBody(f.get(podsOfA))
	if encoding := f.backend.seen()[0].Header.Values("Accept-Encoding"); len(encoding) > 0 {
		t.Errorf("the server may use %q", encoding)
	}
}

func TestProxyStreams(t *testing.T) {
	f := newFixture(t)
	w := f.watch(podsOfA + watch)
	for _, event := range []string{"one", "two", "three"} {
		w.send(event)
		w.want(event)
	}
	close(w.server.events)
	w.want(cleanEnd)
}

func TestServerThatIsNotThere(t *testing.T) {
	f := newFixture(t)
	f.backend.CloseClientConnections()
	f.backend.Close()
	if got := f.get(podsOfA); !got.connectionLost() {
		t.Errorf("got %v, want a lost connection", got)
	}
}

func TestServerThatBreaksOff(t *testing.T) {
	f := newFixture(t)
	f.backend.handle = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, body)
		panic(http.ErrAbortHandler)
	}
	if got := f.get(podsOfA); got.err == nil {
		t.Errorf("got a whole answer: %v", got)
	}
}

// A client that gives one request up must not lose the others on its connection.
func TestClientThatGivesUp(t *testing.T) {
	for name, hold := range map[string]func(*faultproxy.Proxy, faultproxy.Match) *faultproxy.Gate{
		"before the server sees it":    (*faultproxy.Proxy).HoldRequests,
		"after the server's answer":    (*faultproxy.Proxy).HoldResponses,
		"while the server is thinking": nil,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			thinking := make(chan struct{})
			arrived := func() error {
				<-thinking
				return nil
			}
			if hold != nil {
				gate := hold(f.proxy, faultproxy.Match{Verb: "list"})
				arrived = func() error { return gate.Waiting(f.ctx, 1) }
			} else {
				f.backend.handle = func(_ http.ResponseWriter, r *http.Request) {
					close(thinking)
					<-r.Context().Done()
				}
			}

			w := f.watch(podsOfA + watch)
			ctx, giveUp := context.WithCancel(f.ctx)
			answers := f.begin(ctx, http.MethodGet, podsOfA)
			must(t, arrived())
			giveUp()
			if got := <-answers; !errors.Is(got.err, context.Canceled) {
				t.Errorf("unexpected answer: %v", got)
			}
			w.send("still there")
			w.want("still there")
		})
	}
}

func TestClose(t *testing.T) {
	for name, end := range map[string]func(*faultproxy.Proxy, context.CancelFunc) error{
		"by a call": func(p *faultproxy.Proxy, _ context.CancelFunc) error { return p.Close() },
		"by the context": func(_ *faultproxy.Proxy, cancel context.CancelFunc) error {
			cancel()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f.newProxy(ctx, f.backend.config())

			requests := f.proxy.HoldRequests(faultproxy.Match{Namespace: "a"})
			responses := f.proxy.HoldResponses(faultproxy.Match{Namespace: "b"})
			events := f.proxy.HoldEvents(faultproxy.Match{Namespace: "c"})
			held := []<-chan answer{
				f.begin(f.ctx, http.MethodPost, podsOfA),
				f.begin(f.ctx, http.MethodGet, podsOfB),
			}
			w := f.watch("/api/v1/namespaces/c/pods" + watch)
			w.send("held back")
			for _, gate := range []*faultproxy.Gate{requests, responses, events} {
				must(t, gate.Waiting(f.ctx, 1))
			}

			idle, err := tls.Dial("tcp", strings.TrimPrefix(f.proxy.URL(), "https://"),
				&tls.Config{InsecureSkipVerify: true})
			must(t, err)
			context.AfterFunc(f.ctx, func() { _ = idle.Close() })

			must(t, end(f.proxy, cancel))
			if _, err := idle.Read(make([]byte, 1)); errors.Is(err, net.ErrClosed) {
				t.Error("an idle connection stays open")
			}
			for _, answers := range held {
				if got := <-answers; got.err == nil {
					t.Errorf("got an answer: %v", got)
				}
			}

			must(t, f.proxy.Close())
			if got := f.get(podsOfA); got.err == nil {
				t.Errorf("got an answer of a closed proxy: %v", got)
			}
			// Nothing is in progress any more, and so nothing can wait.
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for _, gate := range []*faultproxy.Gate{requests, responses, events, f.proxy.HoldEvents(faultproxy.Match{})} {
				if gate.Waiting(ended, 1) == nil {
					t.Error("something waits at a gate of a closed proxy")
				}
			}
		})
	}
}
