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

package integration_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pvc-protection-operator/test/harness"
)

// behindProxy starts an operator that sees and does nothing outside the namespace, and reaches the API server through
// the handlers only.
func behindProxy(
	e *env, wrap func(next http.Handler) http.Handler, args ...string,
) *harness.Operator {
	e.Helper()
	proxy, err := harness.StartProxy(suite.cluster.Config(), wrap)
	e.fatalIf(err)
	kubeconfig := filepath.Join(e.TempDir(), "kubeconfig")
	e.fatalIf(proxy.Kubeconfig(suite.kubeconfig, kubeconfig))
	e.Cleanup(func() { // after the operator has been stopped
		if err := proxy.Stop(); err != nil {
			e.Error(err)
		}
	})
	return startOperator(e.T, harness.Options{
		Kubeconfig: kubeconfig,
		Args:       append([]string{"--watch-namespaces=" + e.namespace}, args...),
	})
}

// The requests that tests wait for.

func isPodWatch(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods") && isTrue(r, "watch")
}

// isFirstWatch tells whether the watch brings everything that exists, as an informer's first one does.
func isFirstWatch(r *http.Request) bool { return isTrue(r, "sendInitialEvents") }

func isTrue(r *http.Request, parameter string) bool {
	value := r.URL.Query().Get(parameter)
	return value == "true" || value == "1"
}

func isLiveListRequest(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods") && !r.URL.Query().Has("watch") &&
		strings.Contains(r.URL.Query().Get("fieldSelector"), "spec.nodeName")
}

func isClaimPatch(r *http.Request) bool {
	return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/persistentvolumeclaims/")
}

func isPatchOf(r *http.Request, claim string) bool {
	return isClaimPatch(r) && strings.HasSuffix(r.URL.Path, "/"+claim)
}

// refuse answers with a status of the API server's making.
func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `"}`))
}

// hold holds the first request that matches until it is let go.
type hold struct {
	matches func(*http.Request) bool

	arrived, letGo chan struct{}
	once           sync.Once
}

func newHold(matches func(*http.Request) bool) *hold {
	return &hold{matches: matches, arrived: make(chan struct{}), letGo: make(chan struct{})}
}

// request is to be called with every request before it is passed on, or before its answer is.
func (h *hold) request(r *http.Request) {
	if !h.matches(r) {
		return
	}
	h.once.Do(func() {
		close(h.arrived)
		select {
		case <-h.letGo:
		case <-r.Context().Done():
		}
	})
}

// before returns a handler that holds the request.
func (h *hold) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.request(r)
		next.ServeHTTP(w, r)
	})
}

// after returns a handler that holds the answer: the API server has made it when the request counts as arrived.
func (h *hold) after(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.matches(r) {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&heldWriter{ResponseWriter: w, release: func() { h.request(r) }}, r)
	})
}

// heldWriter calls release before the first byte of the answer.
type heldWriter struct {
	http.ResponseWriter
	release func()
}

func (w *heldWriter) WriteHeader(code int) {
	w.release()
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// wait waits until the request is there.
func (h *hold) wait(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-h.arrived:
	case <-ctx.Done():
		t.Fatal("the request that the test waits for did not come")
	}
}

// podWatch is the operator's watch of pods, which can be cut.
type podWatch struct {
	mu sync.Mutex
	// down is closed when the watch is cut, up when there may be one again.
	down, up chan struct{}
	// relist makes the next watch start over.
	relist bool
}

func newPodWatch() *podWatch {
	w := &podWatch{down: make(chan struct{}), up: make(chan struct{})}
	close(w.up)
	return w
}

// cut ends the watch. Until restore, the operator learns nothing about pods but by asking for them.
func (w *podWatch) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = make(chan struct{})
	close(w.down)
}

// restore brings the watch back. What has happened in the meantime is history that the API server does not know any
// more: the operator sees what there is now.
func (w *podWatch) restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = make(chan struct{})
	w.relist = true
	close(w.up)
}

func (w *podWatch) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !isPodWatch(r) {
			next.ServeHTTP(rw, r)
			return
		}
		select {
		case <-w.whenUp():
		case <-r.Context().Done():
			return
		}
		down, expired := w.begin(isFirstWatch(r))
		if expired {
			refuse(rw, http.StatusGone, "Expired")
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-down:
				cancel()
			case <-ctx.Done():
			}
		}()
		next.ServeHTTP(rw, r.WithContext(ctx))
	})
}

func (w *podWatch) whenUp() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.up
}

// begin returns what ends the watch, or that it cannot go on where the one before has ended.
func (w *podWatch) begin(first bool) (down <-chan struct{}, expired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first {
		w.relist = false
	}
	return w.down, w.relist
}
