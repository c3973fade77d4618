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
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"pvc-protection-operator/test/faultproxy"
)

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		name       string
		fault      faultproxy.Fault
		is         func(error) bool
		code       int32
		retryAfter int
	}{
		{"500", faultproxy.Answer(500), apierrors.IsInternalError, 500, 0},
		{"503", faultproxy.Answer(503), apierrors.IsServiceUnavailable, 503, 0},
		{"429", faultproxy.AnswerRetryAfter(429, 6500*time.Millisecond), apierrors.IsTooManyRequests, 429, 7},
		{"503 with Retry-After", faultproxy.AnswerRetryAfter(503, 3*time.Second), apierrors.IsServiceUnavailable, 503, 3},
		{"409", faultproxy.Answer(409), apierrors.IsConflict, 409, 0},
		{"403", faultproxy.Answer(403), apierrors.IsForbidden, 403, 0},
		{"410", faultproxy.Answer(410), apierrors.IsResourceExpired, 410, 0},
		{"expired", faultproxy.Expired(), apierrors.IsResourceExpired, 410, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.proxy.Add(faultproxy.Rule{Match: pods, Fault: c.fault})
			// A response of 429, or one that is to be retried, would be tried again.
			err := f.clientset().CoreV1().RESTClient().Patch("application/merge-patch+json").Namespace("a").
				Resource("pods").Name("x").Body([]byte("{}")).MaxRetries(0).Do(f.ctx).Into(&corev1.Pod{})
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != c.code || !c.is(err) {
				t.Fatalf("got %#v", err)
			}
			if seconds, _ := apierrors.SuggestsClientDelay(err); seconds != c.retryAfter {
				t.Errorf("retry after %d seconds, want %d", seconds, c.retryAfter)
			}
			header := f.get(podsOfA).header
			if got := header.Get("Retry-After"); (got != "") != (c.retryAfter > 0) {
				t.Errorf("header Retry-After is %q", got)
			}
			if len(f.backend.seen()) != 0 {
				t.Error("the server has seen the request")
			}
		})
	}
}

func TestExpiredOnAWatch(t *testing.T) {
	const (
		json     = "application/json"
		protobuf = "application/vnd.kubernetes.protobuf"
	)
	for _, c := range []struct{ name, accept, contentType string }{
		{"JSON", json, json},
		{"protobuf", protobuf + "," + json, protobuf + ";stream=watch"},
		{"protobuf of metadata", protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", protobuf + ";stream=watch"},
		{"something unknown", "application/cbor," + json, json},
		{"nothing in particular", "*/*", json},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.config.AcceptContentTypes = c.accept
			var contentType string
			f.config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					response, err := inner.RoundTrip(r)
					if err == nil {
						contentType = response.Header.Get("Content-Type")
					}
					return response, err
				})
			})
			f.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verb: "watch"}, Fault: faultproxy.Expired()})
			watch, err := f.clientset().CoreV1().Pods("a").Watch(f.ctx, metav1.ListOptions{ResourceVersion: "5"})
			must(t, err)
			defer watch.Stop()
			if contentType != c.contentType {
				t.Errorf("the content type is %q, want %q", contentType, c.contentType)
			}
			event := <-watch.ResultChan()
			if err := apierrors.FromObject(event.Object); event.Type != kwatch.Error || !apierrors.IsResourceExpired(err) {
				t.Errorf("got %s: %v", event.Type, err)
			}
			if _, ok := <-watch.ResultChan(); ok {
				t.Error("the watch goes on")
			}
			if len(f.backend.seen()) != 0 {
				t.Error("the server has seen the request")
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return r(request)
}

func TestReset(t *testing.T) {
	f := newFixture(t)
	w := f.watch(podsOfB + watch)
	f.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verb: "patch"}, Times: 1, Fault: faultproxy.Reset()})

	if got := f.do(f.ctx, http.MethodPatch, podsOfA+"/x", "{}"); !got.connectionLost() {
		t.Errorf("got %v, want a lost connection", got)
	}
	if len(f.backend.seen()) != 1 {
		t.Error("the server has seen the request")
	}
	// It is the connection that is reset, with everything on it.
	select {
	case event := <-w.events:
		if event == cleanEnd || strings.Contains(event, "stream error") {
			t.Errorf("got %q on the watch, want a lost connection", event)
		}
	case <-f.ctx.Done():
		t.Error("the watch goes on")
	}
	f.wantBody(f.do(f.ctx, http.MethodPatch, podsOfA+"/x", "{}"))
}

// A client that does nothing but wait for the answer sees a reset for what it is.
func TestResetIsNoEnd(t *testing.T) {
	f := newFixture(t)
	f.useHTTP1()
	f.proxy.Add(faultproxy.Rule{Fault: faultproxy.Reset()})
	if got := f.get(podsOfA); !errors.Is(got.err, syscall.ECONNRESET) {
		t.Errorf("got %v, want %v", got, syscall.ECONNRESET)
	}
}

func TestCut(t *testing.T) {
	f := newFixture(t)
	w := f.watch(podsOfB + watch)
	for _, c := range []struct {
		name   string
		bytes  int64
		status int
		want   string
	}{
		{"in the middle of the body", 123, http.StatusOK, body[:123]},
		{"everything", 0, 0, ""},
		{"after the body", int64(len(body)), http.StatusOK, body},
		{"beyond the body", 1 << 20, http.StatusOK, body},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := len(f.backend.seen())
			f.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Verb: "list"}, Times: 1, Fault: faultproxy.Cut(c.bytes)})
			got := f.get(podsOfA)
			if got.err == nil || got.status != c.status || got.body != c.want {
				t.Errorf("got %d and %q, want %d, %q and an error", got.status, got.body, c.status, c.want)
			}
			if len(f.backend.seen()) != seen+1 {
				t.Error("the server has not seen the request")
			}
			f.wantBody(f.get(podsOfA))
		})
	}
	// It is one response that is cut, and not the connection.
	w.send("still there")
	w.want("still there")
}

func TestCutOfAWatch(t *testing.T) {
	f := newFixture(t)
	f.proxy.Add(faultproxy.Rule{Match: pods, Fault: faultproxy.Cut(3)})
	w := f.watch(podsOfA + watch)
	w.send("12345")
	w.want("123")
	select {
	case event := <-w.events:
		if event == cleanEnd || !strings.HasPrefix(event, "end: ") {
			t.Errorf("got %q, want an error", event)
		}
	case <-f.ctx.Done():
		t.Error("the watch goes on")
	}
}

// A response of known length is cut like any other.
func TestCutOfKnownLength(t *testing.T) {
	f := newFixture(t)
	f.backend.handle = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, body[:10])
	}
	f.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{Namespace: "b"}, Fault: faultproxy.Cut(5)})
	if got := f.get(podsOfA); got.err != nil || got.body != body[:10] {
		t.Errorf("got %v", got)
	}
	if got := f.get(podsOfB); got.err == nil || got.body != body[:5] {
		t.Errorf("got %v, want %q and an error", got, body[:5])
	}
}
