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
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

const (
	token = "the-clients-own-token"

	podsOfA = "/api/v1/namespaces/a/pods"
	podsOfB = "/api/v1/namespaces/b/pods"
	watch   = "?watch=true"
)

// body is what the backend answers by default.
var body = strings.Repeat("0123456789", 100)

// backend mimics an API server: it answers watches with what the test sends, and everything else with body.
type backend struct {
	*httptest.Server
	// handle answers what is not a watch.
	handle http.HandlerFunc
	// watches are those that the server has begun to answer.
	watches chan *serverWatch

	mu       sync.Mutex
	requests []*http.Request
}

// serverWatch is the server's side of a watch.
type serverWatch struct {
	events chan string
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{
		handle:  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) },
		watches: make(chan *serverWatch, 10),
	}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(b.serve))
	b.EnableHTTP2 = true
	b.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	b.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.StartTLS()
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

func (b *backend) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.requests = append(b.requests, r)
	b.mu.Unlock()

	if r.URL.Query().Get("watch") != "true" {
		b.handle(w, r)
		return
	}
	_ = http.NewResponseController(w).Flush()
	watch := &serverWatch{events: make(chan string)}
	b.watches <- watch
	for {
		select {
		case event, ok := <-watch.events:
			if !ok {
				return
			}
			_, _ = io.WriteString(w, event+"\n")
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// seen returns the requests that have reached the server.
func (b *backend) seen() []*http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests
}

func (b *backend) config() *rest.Config {
	return &rest.Config{
		Host: b.URL,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw}),
		},
		BearerToken: token,
		UserAgent:   "tester/1.0",
		QPS:         -1,
	}
}
