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

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

// fullPage is how many pods the operator asks for in a page of a live list.
const fullPage = 250

// fillPage creates as many scheduled pods as there are in a page, whose names come first.
func (e *env) fillPage() {
	e.Helper()
	e.each(fullPage, func(ctx context.Context, i int) error {
		return e.admin.Create(ctx, harness.Pod(e.namespace, fmt.Sprintf("filler-%04d", i), harness.OnNode(node)))
	})
}

func pagesOf(namespace string, page faultproxy.Page) faultproxy.Match {
	match := liveLists(namespace)
	match.Page = page
	return match
}

// TestHolderOnPageTwo has a pod that only the second page of a live list shows.
func TestHolderOnPageTwo(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 1)
	e.fillPage()
	claim, free := e.claim("data"), e.claim("free")
	o := e.start("--recheck-interval=1h")
	watch := e.proxy.HoldEvents(faultproxy.Match{Resource: pods})
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim, free)
	e.gone(free)
	e.foundByLiveList(o, 1, claim)
	if later := e.proxy.Count(pagesOf(e.namespace, faultproxy.LaterPage)); later == 0 {
		t.Error("the live lists had one page, the test wants two")
	}
	e.held(claim)

	watch.Release()
	e.kill(pod)
	e.gone(claim)
}

// TestListBreaks has live lists that fail or break off, at the first page or at the second: nothing is released on what
// was there until then.
func TestListBreaks(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 1)
	e.fillPage()
	o := e.start("--recheck-interval=1h")
	// The cache does not know this pod, and the second page does.
	watch := e.proxy.HoldEvents(faultproxy.Match{Resource: pods})
	used, pod := e.usedClaim(e.namespace, "used")
	e.delete(used)
	e.foundByLiveList(o, 1, used)

	for i, tc := range []struct {
		name  string
		page  faultproxy.Page
		fault faultproxy.Fault
	}{
		{"page one is refused", faultproxy.FirstPage, faultproxy.Answer(http.StatusInternalServerError)},
		{"page one is cut", faultproxy.FirstPage, faultproxy.Cut(1000)},
		{"page two is refused", faultproxy.LaterPage, faultproxy.Answer(http.StatusInternalServerError)},
		{"page two is cut", faultproxy.LaterPage, faultproxy.Cut(10)},
		{"page two has expired", faultproxy.LaterPage, faultproxy.Expired()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &env{
				T: t, installation: e.installation, proxy: e.proxy, namespace: e.namespace, namespaces: e.namespaces,
			}
			free := e.claim(fmt.Sprintf("free-%d", i))
			rule := e.proxy.Add(faultproxy.Rule{Match: pagesOf(e.namespace, tc.page), Fault: tc.fault})
			defer rule.Remove()
			e.delete(free)
			e.hits(rule, 1)
			e.touch(used) // which lets the operator look at it
			e.eventually("lists have to fail while the claims stay", func(ctx context.Context) error {
				if err := e.protected(ctx, used, free); err != nil {
					t.Fatal(err)
				}
				if rule.Hits() < 3 {
					return errors.New("there was not yet a third list")
				}
				return nil
			})
			rule.Remove()
			e.gone(free)
			e.fatalIf(e.protected(t.Context(), used))
		})
	}

	watch.Release()
	e.kill(pod)
	e.gone(used)
}
