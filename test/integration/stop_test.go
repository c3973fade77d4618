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
	"path"
	"slices"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// TestStopDuringRelease has an operator that is told to stop in the middle of a release of many claims. It finishes the
// writes that it has begun and leaves the other claims alone; the next operator does the rest.
func TestStopDuringRelease(t *testing.T) {
	e := newEnv(t)
	writes := newPatchDam()
	o := behindProxy(e, writes.handler)
	claims := deleteMany(e)

	writes.wait(t)
	e.fatalIf(o.Signal(syscall.SIGTERM))
	close(writes.letGo)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	exitCode, err := o.Wait(ctx)
	e.fatalIf(err)
	if exitCode != 0 {
		t.Errorf("the exit code is %d, want 0", exitCode)
	}

	written, abandoned := writes.result()
	if len(abandoned) > 0 {
		t.Errorf("the operator did not wait for its patches of %q", abandoned)
	}
	released := releasedOf(t.Context(), e)
	if !slices.Equal(released, written) {
		t.Errorf("the operator wrote to %q, and those that are released are %q", written, released)
	}
	if len(released) == len(claims) {
		t.Errorf("all %d claims were released, although the operator was told to stop", len(claims))
	}
	t.Logf("%d of %d claims were released when the operator had ended", len(released), len(claims))
	releaseRest(e, claims)
}

// TestKillDuringRelease has an operator that is killed in the middle of a release of many claims.
func TestKillDuringRelease(t *testing.T) {
	e := newEnv(t)
	writes := newPatchDam()
	o := behindProxy(e, writes.handler)
	claims := deleteMany(e)

	writes.wait(t)
	e.fatalIf(o.Kill())
	close(writes.letGo)
	if released := releasedOf(t.Context(), e); len(released) == len(claims) {
		t.Errorf("all %d claims were released, although the operator was killed", len(claims))
	}
	releaseRest(e, claims)
}

// deleteMany creates claims that stay when they are released, so that it can be seen which are, and deletes them.
func deleteMany(e *env) []*corev1.PersistentVolumeClaim {
	e.Helper()
	claims := createTogether(e.T, []*env{e}, 400, foreignFinalizer)
	deleteTogether(e.T, claims)
	return claims
}

// releasedOf returns the names of the claims that the operator has released, sorted.
func releasedOf(ctx context.Context, e *env) []string {
	e.Helper()
	var list corev1.PersistentVolumeClaimList
	e.fatalIf(suite.admin.List(ctx, &list, client.InNamespace(e.namespace)))
	var names []string
	for _, claim := range list.Items {
		if claim.DeletionTimestamp != nil && !slices.Contains(claim.Finalizers, harness.Finalizer) {
			names = append(names, claim.Name)
		}
	}
	slices.Sort(names)
	return names
}

// releaseRest starts an operator that has to release those claims that are not yet.
func releaseRest(e *env, claims []*corev1.PersistentVolumeClaim) {
	e.Helper()
	startOperator(e.T, harness.Options{Args: []string{"--watch-namespaces=" + e.namespace}})
	e.eventually("all claims have to be released", func(ctx context.Context) error {
		if released := len(releasedOf(ctx, e)); released < len(claims) {
			return fmt.Errorf("%d of %d are", released, len(claims))
		}
		return nil
	})
	forEach(e.T, claims, func(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
		return removeFinalizer(ctx, claim, foreignFinalizer)
	})
}

// patchDam lets some patches of claims pass and then holds all of them back until it is told to let go.
type patchDam struct {
	full, letGo chan struct{}

	mu    sync.Mutex
	begun int
	// written are the claims whose patch was answered, abandoned those whose patch was not waited for.
	written, abandoned []string
}

// passing is how many patches a dam lets pass.
const passing = 100

func newPatchDam() *patchDam {
	return &patchDam{full: make(chan struct{}), letGo: make(chan struct{})}
}

func (d *patchDam) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isClaimPatch(r) {
			next.ServeHTTP(w, r)
			return
		}
		d.mu.Lock()
		d.begun++
		hold := d.begun > passing
		if d.begun == passing+1 {
			close(d.full)
		}
		d.mu.Unlock()
		if hold {
			<-d.letGo
		}
		next.ServeHTTP(w, r)

		d.mu.Lock()
		defer d.mu.Unlock()
		if r.Context().Err() == nil {
			d.written = append(d.written, path.Base(r.URL.Path))
		} else {
			d.abandoned = append(d.abandoned, path.Base(r.URL.Path))
		}
	})
}

// wait waits until the dam holds a patch back.
func (d *patchDam) wait(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-d.full:
	case <-ctx.Done():
		t.Fatal("the operator did not begin to release the claims")
	}
}

// result returns the names of the claims, sorted. The operator must have ended.
func (d *patchDam) result() (written, abandoned []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.written)
	return d.written, d.abandoned
}
