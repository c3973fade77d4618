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

package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/internal/metrics"
)

// TestSuperseded proves that a decision whose claim has changed is forgotten.
func TestSuperseded(t *testing.T) {
	gone := func(claim string) error {
		return apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), claim)
	}
	for name, err := range map[string]func(claim string) error{
		"gone":          gone,
		"another claim": func(string) error { return invalid("metadata", "uid") },
		"wrapped":       func(claim string) error { return fmt.Errorf("patch: %w", gone(claim)) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.reportBlocked(w.ctx, candidate("c1"), []holder{{name: "pod"}}, metrics.Cache, time.Minute)
				w.onPatch = func(_ context.Context, claim string) error { return err(claim) }
				w.add("c1", "new")
				want := []string{"protect new", "release c1"}
				if got := w.seen("protect", "release"); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
					t.Errorf("the calls were %q, want %q", got, want)
				}
				if errs := w.failed(); len(errs) > 0 {
					t.Errorf("Reconcile() failed: %v", errs)
				}
				if got := blockedClaims(); got != 0 {
					t.Errorf("%v claims are still reported as blocked", got)
				}
				w.set(func() { w.onPatch = nil }) // It was not the API server that had said so.
				w.wait(w.Options.RecheckInterval + w.Options.RecheckInterval/10)
				w.expect("gone", "c1")
				w.expect(testFinalizer, "new")
			}, candidate("c1"), claimWith("new"))
		})
	}
}

// TestNotFoundByOthers proves that an answer "not found" that is not about the claim is
// a failure like any other.
func TestNotFoundByOthers(t *testing.T) {
	denied := apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), "c1")
	denied.ErrStatus.Details = nil
	denied.ErrStatus.Message = `admission webhook "w" denied the request: no such tenant`
	for name, err := range map[string]error{
		"webhook": denied,
		"tenant":  apierrors.NewNotFound(corev1.Resource("tenants"), "c1"),
		"proxy": apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH",
			corev1.Resource("persistentvolumeclaims"), "c1", "no such page", 0, true),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.onPatch = func(context.Context, string) error { return err }
				w.add("c1")
				if got := len(w.failed()); got < 2 {
					t.Errorf("Reconcile() failed %d times in a second, want a failure and retries", got)
				}
				w.set(func() { w.onPatch = nil })
				w.wait(time.Minute)
				w.expect("gone", "c1")
			}, candidate("c1"))
		})
	}
}

// TestRecreatedClaim is S4: an old decision does not touch a claim that was created
// again under the same name.
func TestRecreatedClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.onList = func(ctx context.Context, _ int) error {
			w.set(func() { w.onList = nil })
			old := &corev1.PersistentVolumeClaim{}
			if err := w.server.Get(ctx, requestOf("c1").NamespacedName, old); err != nil {
				return err
			}
			old.Finalizers = nil
			if err := w.server.Update(ctx, old); err != nil { // ends it
				return err
			}
			again := claimWith("c1", testFinalizer)
			again.UID = "again"
			return w.server.Create(ctx, again)
		}
		w.add("c1")
		w.expect(testFinalizer, "c1")
		want := []string{"list 0", "release c1"}
		if got := w.seen("list", "release"); !slices.Equal(got, want) {
			t.Errorf("the calls were %q, want %q", got, want)
		}
	}, candidate("c1"))
}

func TestResultOf(t *testing.T) {
	for want, err := range map[string]error{
		"success": nil, "superseded": fmt.Errorf("wrapped: %w", errSuperseded), "error": errTest,
	} {
		if got := resultOf(err); got != want {
			t.Errorf("resultOf(%v) = %s, want %s", err, got, want)
		}
	}
}

// TestForeignRelease has a claim that is kept and then loses the finalizer, by somebody else or not.
func TestForeignRelease(t *testing.T) {
	gone := apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), "c1")
	tests := map[string]struct {
		podGoes bool
		// onPatch is what happens to our write, with the claim taken away or not.
		onPatch func(takeAway func()) error
		// takenAway says that somebody takes the finalizer off while a pod uses the claim.
		takenAway bool
		want      float64
	}{
		"while a pod uses it":       {takenAway: true, want: 1},
		"before our write":          {podGoes: true, onPatch: func(takeAway func()) error { takeAway(); return gone }, want: 1},
		"by us":                     {podGoes: true},
		"by us, without an answer":  {podGoes: true, onPatch: func(takeAway func()) error { takeAway(); return errTest }},
		"not at all":                {},
		"by us, after a first fail": {podGoes: true, onPatch: failOnce()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := new(podOf("web", "c1"))
			inWorld(t, func(w *world) {
				before := foreignReleases(t)
				w.add("c1")
				takeAway := func() {
					claim := candidate("c1")
					if err := w.server.Get(w.ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
						t.Error(err)
					}
					claim.Finalizers = nil
					if err := w.server.Update(w.ctx, claim); err != nil {
						t.Error(err)
					}
				}
				if test.onPatch != nil {
					w.set(func() { w.onPatch = func(context.Context, string) error { return test.onPatch(takeAway) } })
				}
				if test.takenAway {
					takeAway()
				}
				if test.podGoes {
					if err := w.server.Delete(w.ctx, pod); err != nil {
						t.Fatal(err)
					}
					w.add("c1")
				}
				w.wait(10 * time.Minute)
				if got := foreignReleases(t) - before; got != test.want {
					t.Errorf("%v releases by others were counted, want %v", got, test.want)
				}
			}, candidate("c1"), pod)
		})
	}
}

func foreignReleases(t *testing.T) float64 {
	t.Helper()
	var metric dto.Metric
	if err := metrics.ForeignReleases.Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetCounter().GetValue()
}
