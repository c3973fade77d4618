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
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/test/faultproxy"
)

// backlog is many free claims and one in use in each namespace.
type backlog struct {
	free, used []*corev1.PersistentVolumeClaim
	users      []*corev1.Pod
}

func (e *env) backlog(claimsPerNamespace int) *backlog {
	e.Helper()
	b := &backlog{}
	for _, namespace := range e.namespaces {
		b.free = append(b.free, e.claimsIn(namespace, claimsPerNamespace)...)
		claim, pod := e.usedClaim(namespace, "used")
		b.used, b.users = append(b.used, claim), append(b.users, pod)
	}
	return b
}

// deleteBacklog asks for the deletion of all claims, those in use first.
func (e *env) deleteBacklog(b *backlog) {
	e.Helper()
	e.deleteClaims(b.used)
	e.deleteClaims(b.free)
}

// released waits until all free claims have gone while those in use have stayed, and then lets these go too.
func (e *env) released(b *backlog) {
	e.Helper()
	e.allGone(e.namespaces, b.used...)
	e.held(b.used...)
	e.kill(b.users...)
	e.allGone(e.namespaces)
}

// TestAnswers has all sorts of answers in place of the wanted ones, to lists and to patches, several of each.
func TestAnswers(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 3)
	b := e.backlog(60)
	e.start("--recheck-interval=1h")
	var rules []*faultproxy.ActiveRule
	const times = 3
	for _, match := range []faultproxy.Match{liveLists(""), patches("")} {
		for _, fault := range []faultproxy.Fault{
			faultproxy.AnswerRetryAfter(http.StatusTooManyRequests, time.Second),
			faultproxy.Answer(http.StatusTooManyRequests),
			faultproxy.AnswerRetryAfter(http.StatusServiceUnavailable, time.Second),
			faultproxy.Answer(http.StatusServiceUnavailable),
			faultproxy.Answer(http.StatusInternalServerError),
			faultproxy.Answer(http.StatusConflict),
			faultproxy.Answer(http.StatusGatewayTimeout),
			faultproxy.Answer(http.StatusForbidden),
			faultproxy.Reset(),
			faultproxy.Cut(0),
			faultproxy.Cut(20),
		} {
			rules = append(rules, e.proxy.Add(faultproxy.Rule{Match: match, Times: times, Fault: fault}))
		}
	}
	e.deleteBacklog(b)
	e.released(b)
	for i, rule := range rules {
		if rule.Hits() < times {
			t.Errorf("fault %d was met %d times, want %d", i, rule.Hits(), times)
		}
	}
}

// TestLongRetryAfter has an API server that asks for more patience than the operator may have with it.
func TestLongRetryAfter(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]faultproxy.Match{"list": liveLists(""), "patch": patches("")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, 1)
			claim := e.claim("data")
			e.start("--recheck-interval=1h")
			fault := faultproxy.AnswerRetryAfter(http.StatusTooManyRequests, time.Hour)
			rule := e.proxy.Add(faultproxy.Rule{Match: match, Times: 1, Fault: fault})
			e.delete(claim)
			e.hits(rule, 1)
			e.gone(claim)
		})
	}
}
