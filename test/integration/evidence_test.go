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
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/test/harness"
)

// TestHolderUnknownToCache has a pod that the operator's cache has never seen: the live list has to find it, and no
// event will say that it is gone.
func TestHolderUnknownToCache(t *testing.T) {
	e := newEnv(t)
	watch := newPodWatch()
	o := behindProxy(e, watch.handler, "--recheck-interval=1s")
	claim := e.claim("data")

	watch.cut()
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim)
	e.held(claim)
	e.saysBlocked(claim, "web", node)
	found, err := o.Metric(t.Context(), "pvc_protection_answers_total", `answer="blocked"`, `source="live_list"`)
	e.fatalIf(err)
	if found == 0 {
		t.Error("the operator has not counted that a live list found the pod")
	}
	e.kill(pod)
	e.gone(claim)
	watch.restore()
}

// TestMissedPodEvents has pods that go, one of them replaced under its name, while the operator's watch is broken. It
// starts over then, and no event says more than what there is now.
func TestMissedPodEvents(t *testing.T) {
	e := newEnv(t)
	watch := newPodWatch()
	behindProxy(e, watch.handler, "--recheck-interval=1h")
	deleted, replaced, kept := e.claim("deleted"), e.claim("replaced"), e.claim("kept")
	pods := map[string]*corev1.Pod{}
	for _, name := range []string{"deleted", "replaced", "kept"} {
		pods[name] = e.pod(name, harness.OnNode(node), harness.WithClaim(name))
	}
	e.delete(deleted, replaced, kept)
	e.held(deleted, replaced, kept)

	watch.cut()
	e.kill(pods["deleted"], pods["replaced"])
	e.pod("replaced", harness.OnNode(node), harness.WithClaim("other"))
	watch.restore()
	e.gone(deleted, replaced)
	e.held(kept)
	e.kill(pods["kept"])
	e.gone(kept)
}

// TestListInFlight has a claim that is deleted, and a pod that uses it, when a live list for another claim is already
// there: that list says nothing about the second one.
func TestListInFlight(t *testing.T) {
	e := newEnv(t)
	watch := newPodWatch()
	list := newHold(isLiveListRequest)
	behindProxy(e, func(next http.Handler) http.Handler { return watch.handler(list.after(next)) },
		"--recheck-interval=1s", "--batch-window=0s")
	first, second := e.claim("first"), e.claim("second")
	watch.cut()
	e.delete(first)
	list.wait(t)
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("second"))
	e.delete(second)
	e.consistently("the claim has to wait for a list", func(ctx context.Context) error { return exists(ctx, second, true) })
	close(list.letGo)
	e.gone(first)
	e.held(second)
	e.kill(pod)
	e.gone(second)
	watch.restore()
}

// TestListFails has live lists that fail: nothing is released until there is one.
func TestListFails(t *testing.T) {
	const failures = 4
	e := newEnv(t)
	var claim atomic.Pointer[corev1.PersistentVolumeClaim]
	var failed atomic.Int32
	behindProxy(e, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isLiveListRequest(r) && failed.Load() < failures {
				if err := exists(r.Context(), claim.Load().DeepCopy(), true); err != nil {
					t.Errorf("there was no live list so far: %v", err)
				}
				failed.Add(1)
				refuse(w, http.StatusInternalServerError, "InternalError")
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "--recheck-interval=1h")
	claim.Store(e.claim("data"))
	e.delete(claim.Load().DeepCopy())
	e.gone(claim.Load().DeepCopy())
	if failed.Load() != failures {
		t.Errorf("%d live lists failed, the test wants %d", failed.Load(), failures)
	}
	if lists := liveLists(e, e.namespace); lists != 1 {
		t.Errorf("there were %d live lists in addition to those that failed", lists)
	}
}

// TestPatchOfRecreatedClaim has a claim that is recreated under its name, used and deleted after the decision to release
// the old one.
func TestPatchOfRecreatedClaim(t *testing.T) {
	e := newEnv(t)
	var armed atomic.Bool
	patch := newHold(func(r *http.Request) bool { return armed.Load() && isPatchOf(r, "data") })
	behindProxy(e, patch.before, "--recheck-interval=1h")
	old := e.claim("data")
	armed.Store(true)
	e.delete(old)
	patch.wait(t)

	e.removeFinalizer(old, harness.Finalizer)
	e.gone(old)
	claim := harness.Claim(e.namespace, "data")
	claim.Finalizers = []string{harness.Finalizer}
	e.create(claim)
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim)
	close(patch.letGo)
	e.held(claim)
	e.saysBlocked(claim, "web")
	e.kill(pod)
	e.gone(claim)
}

// TestPatchAmongOtherWriters has others write to claims between the operator's decision and its write.
func TestPatchAmongOtherWriters(t *testing.T) {
	e := newEnv(t)
	protect := newHold(func(r *http.Request) bool { return isPatchOf(r, "new") })
	var armed atomic.Bool
	release := newHold(func(r *http.Request) bool { return armed.Load() && isPatchOf(r, "old") })
	behindProxy(e, func(next http.Handler) http.Handler { return protect.before(release.before(next)) })

	created := harness.Claim(e.namespace, "new")
	e.create(created)
	protect.wait(t)
	created.Finalizers = []string{foreignFinalizer}
	created.Labels = map[string]string{"example.com/by": "somebody-else"}
	e.fatalIf(suite.admin.Update(t.Context(), created))
	close(protect.letGo)
	e.protected(created)
	e.fatalIf(e.hasFinalizer(t.Context(), created, foreignFinalizer))
	if len(created.Labels) != 1 {
		t.Errorf("the labels are %q", created.Labels)
	}

	old := e.claim("old", func(claim *corev1.PersistentVolumeClaim) {
		claim.Finalizers = []string{foreignFinalizer, "example.com/other"}
	})
	armed.Store(true)
	e.delete(old)
	release.wait(t)
	e.removeFinalizer(old, "example.com/other")
	close(release.letGo)
	e.eventually("only the foreign finalizer has to be left", func(ctx context.Context) error {
		if err := exists(ctx, old, true); err != nil {
			return err
		}
		if len(old.Finalizers) != 1 || old.Finalizers[0] != foreignFinalizer {
			return fmt.Errorf("the finalizers are %q", old.Finalizers)
		}
		return nil
	})
	e.removeFinalizer(old, foreignFinalizer)
	e.gone(old)
}
