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
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// TestRecreatedClaim has a claim that goes and comes again under its name while the patch that releases it is under way:
// the decision was about another claim.
func TestRecreatedClaim(t *testing.T) {
	t.Parallel()
	for name, used := range map[string]bool{"used": true, "unused": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, 1)
			old := e.claim("data")
			o := e.start("--recheck-interval=1h")
			patch := e.proxy.HoldRequests(patches(e.namespace))
			e.delete(old)
			e.waiting(patch, 1)

			e.removeFinalizer(old, harness.Finalizer)
			e.gone(old)
			claim := e.claim("data")
			var users []*corev1.Pod
			if used {
				users = append(users, e.pod("web", harness.OnNode(node), harness.WithClaim("data")))
				e.delete(claim)
			}
			patch.Release()
			e.superseded(o)
			e.held(claim)

			if used {
				e.kill(users...)
			} else {
				e.delete(claim)
			}
			e.gone(claim)
		})
	}
}

// TestOtherWriter has somebody else who writes to hundreds of claims all the time, also between the decision to release
// them and the write. Nobody's changes are lost, and every claim takes one write.
func TestOtherWriter(t *testing.T) {
	t.Parallel()
	const count = 200
	e := newEnv(t, 1)
	made := e.claimsIn(e.namespace, count, "example.com/first", "example.com/second", foreignFinalizer)
	// Claims that are deleted within six seconds make one batch.
	e.start("--recheck-interval=1h", "--batch-window=300ms")
	writer := &otherWriter{env: e, made: make([]writtenClaim, count)}
	for i, claim := range made {
		writer.made[i] = writtenClaim{claim: claim, finalizers: claim.Finalizers}
	}
	stop := writer.start()

	list := e.proxy.HoldResponses(liveLists(e.namespace))
	e.deleteClaims(made)
	e.waiting(list, 1)
	// The operator has read the claims and is about to write. So does the other one now, every claim.
	writer.removes.Add(1)
	writer.passed(2)
	list.Release()
	e.allReleased()
	writer.removes.Add(1)
	writer.passed(2)
	e.fatalIf(stop())

	left, err := e.left(t.Context(), e.namespace)
	e.fatalIf(err)
	for _, claim := range left {
		if !slices.Equal(claim.Finalizers, []string{foreignFinalizer}) {
			t.Errorf("claim %s has the finalizers %q, want the foreign one", claim.Name, claim.Finalizers)
		}
	}
	if len(left) != count {
		t.Errorf("%d claims are left, want %d", len(left), count)
	}
	const most = count + count/20
	if writes := e.proxy.Count(patches(e.namespace)); writes < count || writes > most {
		t.Errorf("it took %d patches to release %d claims", writes, count)
	}
	for i := range left {
		e.removeFinalizer(&left[i], foreignFinalizer)
	}
}

// allReleased waits until the finalizer is on none of the claims.
func (e *env) allReleased() {
	e.Helper()
	e.eventually("all claims have to be released", func(ctx context.Context) error {
		left, err := e.left(ctx, e.namespace)
		for _, claim := range left {
			if slices.Contains(claim.Finalizers, harness.Finalizer) {
				return fmt.Errorf("claim %s has the finalizers %q", claim.Name, claim.Finalizers)
			}
		}
		return err
	})
}

// otherWriter changes labels and finalizers of claims in tight loops, and finds out if somebody undoes that.
type otherWriter struct {
	*env
	made []writtenClaim
	// removes is how many finalizers are to be taken off each claim so far.
	removes atomic.Int32
	passes  [2]atomic.Int32
}

// writtenClaim is a claim as it was last written.
type writtenClaim struct {
	claim      *corev1.PersistentVolumeClaim
	label      string
	finalizers []string
}

// start starts the loops, which share the claims between them, and returns a function that ends them.
func (w *otherWriter) start() (stop func() error) {
	ctx, cancel := context.WithCancel(w.Context())
	group := &errgroup.Group{}
	for loop := range w.passes {
		group.Go(func() error {
			for ctx.Err() == nil {
				for i := loop; i < len(w.made); i += len(w.passes) {
					if err := w.write(&w.made[i]); err != nil {
						cancel()
						return err
					}
				}
				w.passes[loop].Add(1)
			}
			return nil
		})
	}
	return func() error {
		cancel()
		return group.Wait()
	}
}

// passed waits until every loop has written to each of its claims so many times more.
func (w *otherWriter) passed(times int32) {
	w.Helper()
	var before [len(w.passes)]int32
	for loop := range w.passes {
		before[loop] = w.passes[loop].Load()
	}
	for loop := range w.passes {
		w.eventually("the other writer has to write", func(context.Context) error {
			if passes := w.passes[loop].Load() - before[loop]; passes < times {
				return fmt.Errorf("there were %d more passes", passes)
			}
			return nil
		})
	}
}

func (w *otherWriter) write(c *writtenClaim) error {
	const label = "example.com/step"
	for {
		current := &corev1.PersistentVolumeClaim{}
		if err := w.admin.Get(w.Context(), client.ObjectKeyFromObject(c.claim), current); err != nil {
			return err
		}
		ours := func(finalizer string) bool { return finalizer == harness.Finalizer }
		others := slices.DeleteFunc(slices.Clone(current.Finalizers), ours)
		wanted := slices.DeleteFunc(slices.Clone(c.finalizers), ours)
		if !slices.Equal(others, wanted) || current.Labels[label] != c.label {
			return fmt.Errorf("claim %s was written with label %q and finalizers %q, and has %q and %q",
				c.claim.Name, c.label, wanted, current.Labels[label], others)
		}

		step, _ := strconv.Atoi(c.label) // 0 at first
		updated := current.DeepCopy()
		updated.Labels = map[string]string{label: strconv.Itoa(step + 1)}
		all := []string{"example.com/first", "example.com/second"}
		for _, finalizer := range all[:w.removes.Load()] {
			updated.Finalizers = slices.DeleteFunc(updated.Finalizers, func(f string) bool { return f == finalizer })
		}
		err := w.admin.Update(w.Context(), updated)
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil {
			c.label, c.finalizers = updated.Labels[label], updated.Finalizers
		}
		return err
	}
}
