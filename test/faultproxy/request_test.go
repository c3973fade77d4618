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
	"net/http"
	"testing"

	"pvc-protection-operator/test/faultproxy"
)

var pods = faultproxy.Match{Resource: "pods"}

func TestRequest(t *testing.T) {
	f := newFixture(t)
	var got faultproxy.Request
	f.proxy.Add(faultproxy.Rule{
		Match: faultproxy.Match{Where: func(r faultproxy.Request) bool {
			got = r
			return true
		}},
		Fault: faultproxy.Answer(http.StatusTeapot),
	})

	const (
		allPods = "/api/v1/pods"
		leases  = "/apis/coordination.k8s.io/v1/namespaces/a/leases"
	)
	for _, c := range []struct {
		method, path string
		want         faultproxy.Request
	}{
		{"GET", podsOfA, faultproxy.Request{Verb: "list", Resource: "pods", Namespace: "a", Page: faultproxy.Unpaged}},
		{"GET", podsOfA + "?limit=0", faultproxy.Request{
			Verb: "list", Resource: "pods", Namespace: "a", Page: faultproxy.Unpaged,
		}},
		{"GET", podsOfA + "?limit=9", faultproxy.Request{
			Verb: "list", Resource: "pods", Namespace: "a", Page: faultproxy.FirstPage,
		}},
		{"GET", podsOfA + "?limit=9&continue=x", faultproxy.Request{
			Verb: "list", Resource: "pods", Namespace: "a", Page: faultproxy.LaterPage,
		}},
		{"GET", allPods, faultproxy.Request{Verb: "list", Resource: "pods", Page: faultproxy.Unpaged}},
		{"GET", allPods + "?fieldSelector=metadata.name%3Dx", faultproxy.Request{
			Verb: "list", Resource: "pods", Name: "x", Page: faultproxy.Unpaged,
		}},
		{"GET", allPods + "?watch=1", faultproxy.Request{Verb: "watch", Resource: "pods"}},
		{"GET", allPods + "?watch=true&resourceVersion=0", faultproxy.Request{Verb: "watch", Resource: "pods"}},
		{"GET", allPods + "?watch=true&resourceVersion=5", faultproxy.Request{
			Verb: "watch", Resource: "pods", Resumed: true,
		}},
		{"GET", allPods + "?watch=true&resourceVersion=5&sendInitialEvents=true", faultproxy.Request{
			Verb: "watch", Resource: "pods",
		}},
		{"GET", podsOfA + "/x", faultproxy.Request{Verb: "get", Resource: "pods", Namespace: "a", Name: "x"}},
		{"POST", podsOfA, faultproxy.Request{Verb: "create", Resource: "pods", Namespace: "a"}},
		{"POST", podsOfA + "/x/eviction", faultproxy.Request{
			Verb: "create", Resource: "pods/eviction", Namespace: "a", Name: "x",
		}},
		{"PUT", leases + "/x", faultproxy.Request{
			Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "a", Name: "x",
		}},
		{"PATCH", podsOfA + "/x", faultproxy.Request{Verb: "patch", Resource: "pods", Namespace: "a", Name: "x"}},
		{"DELETE", podsOfA + "/x", faultproxy.Request{Verb: "delete", Resource: "pods", Namespace: "a", Name: "x"}},
		{"DELETE", podsOfA, faultproxy.Request{Verb: "deletecollection", Resource: "pods", Namespace: "a"}},
		{"GET", "/api/v1/namespaces/a", faultproxy.Request{
			Verb: "get", Resource: "namespaces", Namespace: "a", Name: "a",
		}},
		{"GET", "/apis/apps/v1", faultproxy.Request{Path: "/apis/apps/v1"}},
		{"GET", "/readyz", faultproxy.Request{Path: "/readyz"}},
	} {
		c.want.UserAgent = "tester/1.0"
		if answer := f.do(f.ctx, c.method, c.path, ""); answer.status != http.StatusTeapot {
			t.Fatalf("%s %s: unexpected answer: %v", c.method, c.path, answer)
		}
		if got != c.want {
			t.Errorf("%s %s\n got %+v\nwant %+v", c.method, c.path, got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		name      string
		match     faultproxy.Match
		matches   string
		mismatch  string
		mismatch2 string
	}{
		{"Verb", faultproxy.Match{Verb: "list"}, podsOfA, podsOfA + "/x", "/readyz"},
		{"Resource", faultproxy.Match{Resource: "pods"}, podsOfA, "/api/v1/namespaces/a/secrets", podsOfA + "/x/status"},
		{"Namespace", faultproxy.Match{Namespace: "a"}, podsOfA, podsOfB, "/api/v1/pods"},
		{"Name", faultproxy.Match{Name: "x"}, podsOfA + "/x", podsOfA + "/y", podsOfA},
		{"Page", faultproxy.Match{Page: faultproxy.LaterPage}, podsOfA + "?limit=1&continue=x", podsOfA + "?limit=1", podsOfA},
		{"Where", faultproxy.Match{Where: func(r faultproxy.Request) bool { return r.Path == "/livez" }},
			"/livez", "/readyz", podsOfA},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := f.proxy.Add(faultproxy.Rule{Match: c.match})
			f.wantBody(f.get(c.matches))
			if rule.Hits() != 1 {
				t.Errorf("%s is not selected", c.matches)
			}
			f.wantBody(f.get(c.mismatch))
			f.wantBody(f.get(c.mismatch2))
			if rule.Hits() != 1 {
				t.Errorf("%s or %s is selected", c.mismatch, c.mismatch2)
			}
		})
	}

	t.Run("UserAgent", func(t *testing.T) {
		mine := f.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{UserAgent: "tester"}})
		others := f.proxy.Add(faultproxy.Rule{Match: faultproxy.Match{UserAgent: "manager"}})
		f.wantBody(f.get(podsOfA))
		if mine.Hits() != 1 || others.Hits() != 0 {
			t.Errorf("selected %d times by its user agent and %d times by another", mine.Hits(), others.Hits())
		}
	})

	t.Run("everything", func(t *testing.T) {
		rule := f.proxy.Add(faultproxy.Rule{})
		f.wantBody(f.get(podsOfA))
		f.wantBody(f.get("/readyz"))
		if rule.Hits() != 2 {
			t.Errorf("selected %d of 2", rule.Hits())
		}
	})
}
