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

package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"pvc-protection-operator/internal/controller"
	"pvc-protection-operator/internal/usage"
)

const (
	// pageSize is how many objects a list asks for at once.
	pageSize = 500
	// concurrentWrites is the number of patches in flight.
	concurrentWrites = 16
	// evidenceAge is how long after a list of pods a claim may be released on it.
	evidenceAge = 10 * time.Second
	// requestTimeout bounds one patch.
	requestTimeout = 10 * time.Second
	// maxNamed is how many pods a line names.
	maxNamed = 5
)

// pass is what came of going through all claims once.
type pass struct {
	// looked is the number of claims, inTree of those with the in-tree finalizer.
	looked, inTree int

	mu sync.Mutex
	// taken have lost the finalizer, held keep it because they are in use, changed
	// have changed since they were read, and failed could not be written.
	taken, held, changed, failed int
	err                          error // of the first that failed
}

// idle reports whether the pass found nothing to do.
func (p *pass) idle() bool { return p.taken == 0 && p.changed == 0 && p.failed == 0 }

func (p *pass) count(counter *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*counter++
}

func (p *pass) fail(claim *corev1.PersistentVolumeClaim, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed++; p.err == nil {
		p.err = fmt.Errorf("claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
}

// pass goes through all claims, page by page.
func (d *drainer) pass(ctx context.Context) (*pass, error) {
	p := &pass{}
	var group errgroup.Group
	group.SetLimit(concurrentWrites)
	candidates := map[string][]*corev1.PersistentVolumeClaim{}
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return d.client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, options)
	})
	list.PageSize = pageSize
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		claim := object.(*corev1.PersistentVolumeClaim)
		p.looked++
		if slices.Contains(claim.Finalizers, controller.DefaultFinalizer) {
			p.inTree++
		}
		switch {
		case !slices.Contains(claim.Finalizers, d.finalizer):
		case keepsAlone(claim, d.finalizer):
			candidates[claim.Namespace] = append(candidates[claim.Namespace], claim)
		default:
			group.Go(func() error {
				d.take(ctx, p, claim)
				return nil
			})
		}
		return nil
	})
	_ = group.Wait() // No error is returned above: each claim is counted by itself.
	if err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	for _, namespace := range slices.Sorted(maps.Keys(candidates)) {
		if err := d.release(ctx, p, namespace, candidates[namespace]); err != nil {
			return nil, fmt.Errorf("listing the pods of namespace %s: %w", namespace, err)
		}
	}
	return p, nil
}

// keepsAlone reports whether the claim is being deleted and would lose what protects
// it with the finalizer. The in-tree finalizer is known to protect, others are not.
func keepsAlone(claim *corev1.PersistentVolumeClaim, finalizer string) bool {
	return claim.DeletionTimestamp != nil &&
		(finalizer == controller.DefaultFinalizer || !slices.Contains(claim.Finalizers, controller.DefaultFinalizer))
}

// release takes the finalizer off the claims that no pod holds, all of which are
// being deleted, by the operator's own rule: on a list of pods that starts after the
// claims were read.
func (d *drainer) release(
	ctx context.Context, p *pass, namespace string, claims []*corev1.PersistentVolumeClaim,
) error {
	holders, err := d.holders(ctx, namespace, claims)
	if err != nil {
		return err
	}
	listed := time.Now()
	var group errgroup.Group
	group.SetLimit(concurrentWrites)
	for _, claim := range claims {
		if names := holders[claim.Name]; len(names) > 0 {
			p.count(&p.held)
			d.keep(claim, names)
			continue
		}
		group.Go(func() error {
			if time.Since(listed) > evidenceAge {
				p.count(&p.changed)
			} else {
				d.take(ctx, p, claim)
			}
			return nil
		})
	}
	return group.Wait()
}

// holders returns the names of the pods that hold the claims, by the name of the
// claim.
func (d *drainer) holders(
	ctx context.Context, namespace string, claims []*corev1.PersistentVolumeClaim,
) (map[string][]string, error) {
	byName := make(map[string]*corev1.PersistentVolumeClaim, len(claims))
	for _, claim := range claims {
		byName[claim.Name] = claim
	}
	holders := map[string][]string{}
	pods := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return d.client.CoreV1().Pods(namespace).List(ctx, options)
	})
	pods.PageSize = pageSize
	err := pods.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		pod := object.(*corev1.Pod)
		for name := range usage.ClaimNames(pod) {
			claim := byName[name]
			if claim != nil && usage.Holds(pod, claim) && !slices.Contains(holders[name], pod.Name) {
				holders[name] = append(holders[name], pod.Name)
			}
		}
		return nil
	})
	return holders, err
}

// keep says, once, why the claim keeps the finalizer.
func (d *drainer) keep(claim *corev1.PersistentVolumeClaim, pods []string) {
	if !d.kept.Has(claim.UID) {
		d.kept.Insert(claim.UID)
		more := ""
		if len(pods) > maxNamed {
			more = fmt.Sprintf(" and %d more", len(pods)-maxNamed)
			pods = pods[:maxNamed]
		}
		d.progress.printf("claim %s/%s keeps the finalizer: it is being deleted and in use by pod %s%s",
			claim.Namespace, claim.Name, strings.Join(pods, ", "), more)
	}
}

// take takes the finalizer off the claim if it is still as it was read: a claim that
// was deleted since, or recreated, is decided about anew.
func (d *drainer) take(ctx context.Context, p *pass, claim *corev1.PersistentVolumeClaim) {
	if d.dryRun {
		p.count(&p.taken)
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":                                 claim.UID,
		"resourceVersion":                     claim.ResourceVersion,
		"$deleteFromPrimitiveList/finalizers": []string{d.finalizer},
	}})
	if err != nil {
		p.fail(claim, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = d.client.CoreV1().PersistentVolumeClaims(claim.Namespace).
		Patch(ctx, claim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	switch {
	case err == nil:
		p.count(&p.taken)
		d.progress.took()
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		p.count(&p.changed)
	default:
		p.fail(claim, err)
	}
}
