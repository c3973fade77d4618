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
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/batch"
	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// PersistentVolumeClaimReconciler protects claims with a finalizer, and releases
// those that are being deleted once no pod holds them. It works on the waiting
// claims of one namespace at a time.
//
// A claim is released only if a live list of the namespace's pods shows no
// holder, and only if that list started after this process read the claim with
// its deletionTimestamp. A list that is older than the deletion may miss a pod
// that was scheduled in between.
type PersistentVolumeClaimReconciler struct {
	// Client reads claims and pods from the manager's cache, and writes.
	client.Client

	// APIReader makes the live lists. It must not read from a cache.
	APIReader client.Reader

	// Options are the operator's settings.
	Options Options

	// Clock tells the age of evidence and the pace of live lists. Defaults to
	// the real clock.
	Clock clock.PassiveClock

	batches *batch.Source
	// failedLists is the back-off of namespaces whose live list failed.
	failedLists workqueue.TypedRateLimiter[string]
	// crowd is the pace of batches that have not waited.
	crowd     *crowd
	reports   reports
	announcer *announcer
}

// Reconcile looks at the waiting claims of one namespace. Every claim is settled
// by itself: failures of single claims are retried with a back-off of their own,
// so the error returned is for the log and the metrics.
func (r *PersistentVolumeClaimReconciler) Reconcile(ctx context.Context, namespace batch.Namespace) (reconcile.Result, error) {
	b := r.batches.Take(namespace)
	defer b.Close()
	if len(b.Requests()) == 0 {
		return reconcile.Result{}, nil
	}
	metrics.BatchClaims.Observe(float64(len(b.Requests())))

	// Every claim of the batch is read before the live list starts: evidence
	// for one claim must not free another that was deleted later.
	unprotected, candidates, readErr := r.read(ctx, b)
	protectErr := r.protect(ctx, b, unprotected)
	unknown, confirm, cacheErr := r.keepBlocked(ctx, b, candidates)
	releaseErr := r.release(ctx, b, string(namespace), unknown, confirm)

	if ctx.Err() != nil {
		// The manager stops. What is left undone is found again at the next start.
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, errors.Join(readErr, protectErr, cacheErr, releaseErr)
}

// read reads the claims of the batch from the cache and returns those that need
// protection and the candidates. It settles the others.
func (r *PersistentVolumeClaimReconciler) read(
	ctx context.Context, b *batch.Batch,
) (unprotected, candidates []*corev1.PersistentVolumeClaim, err error) {
	var failed failures
	for _, request := range b.Requests() {
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Get(ctx, request.NamespacedName, claim, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
			r.dismiss(ctx, b, request)
			b.Done(request)
		case err != nil:
			failed.add(fmt.Errorf("reading claim %s from the cache: %w", request, err))
			b.Retry(request)
		case usage.NeedsProtection(claim, r.Options.Finalizer):
			unprotected = append(unprotected, claim)
		case usage.IsCandidate(claim, r.Options.Finalizer):
			r.reports.look(claim, r.Clock.Now())
			candidates = append(candidates, claim)
		default:
			r.dismiss(ctx, b, request)
			b.Done(request)
		}
	}
	return unprotected, candidates, failed.err()
}

func (r *PersistentVolumeClaimReconciler) protect(
	ctx context.Context, b *batch.Batch, claims []*corev1.PersistentVolumeClaim,
) error {
	return r.writeEach(ctx, b, claims, write{
		operation: metrics.Protect, failing: "Adding the finalizer", patchKey: addFinalizers,
		since: r.Clock.Now(), report: r.reportProtected,
	})
}

// keepBlocked settles the candidates that have a holder in the cache, which takes
// no API call, and returns the others. Once in a while, if one of them was last
// confirmed too long ago, it returns these, too, for a live list to confirm: a
// cache that missed an event for good would keep its claim forever, and one list
// checks them together.
func (r *PersistentVolumeClaimReconciler) keepBlocked(
	ctx context.Context, b *batch.Batch, candidates []*corev1.PersistentVolumeClaim,
) (unknown, confirm []*corev1.PersistentVolumeClaim, err error) {
	type blocked struct {
		claim   *corev1.PersistentVolumeClaim
		holders []holder
	}
	var inCache []blocked
	var failed failures
	overdue := false
	for _, claim := range candidates {
		holders, err := r.cachedHolders(ctx, claim)
		switch {
		case err != nil:
			failed.add(err)
			b.Retry(requestFor(claim))
		case len(holders) > 0:
			inCache = append(inCache, blocked{claim, holders})
			overdue = overdue || r.reports.unconfirmed(claim, r.Clock.Now().Add(-r.confirmAfter()))
		default:
			unknown = append(unknown, claim)
		}
	}
	for _, c := range inCache {
		if overdue {
			confirm = append(confirm, c.claim)
		} else {
			r.keep(ctx, b, c.claim, c.holders, metrics.Cache)
		}
	}
	return unknown, confirm, failed.err()
}

// release makes the live list and releases the candidates that it shows no
// holder of. Of those to confirm, the cache knows a holder.
func (r *PersistentVolumeClaimReconciler) release(
	ctx context.Context, b *batch.Batch, namespace string, unknown, confirm []*corev1.PersistentVolumeClaim,
) error {
	candidates := slices.Concat(unknown, confirm)
	if len(candidates) == 0 {
		if !b.OnHold() {
			// Nobody waits for the namespace's lists any more, perhaps because it
			// is gone: its failures need not be remembered.
			r.failedLists.Forget(namespace)
		}
		return nil
	}
	if b.OnHold() {
		hold(b, candidates)
		return nil
	}
	if r.gather(b, namespace, candidates) {
		return nil
	}

	byName := make(map[string]*corev1.PersistentVolumeClaim, len(candidates))
	for _, claim := range candidates {
		byName[claim.Name] = claim
	}
	start := r.Clock.Now()
	holders, err := r.liveHolders(ctx, namespace, byName)
	if err != nil {
		// One failure of the namespace: its candidates wait for the next list
		// together, those that are still to come too, and their own back-off is
		// left alone.
		delay := r.failedLists.When(namespace)
		b.StartHold(batch.HoldTimes{Least: delay})
		for _, claim := range unknown {
			r.reportFailing(claim, r.failedLists.NumRequeues(namespace), "Listing the pods of the namespace", err)
		}
		hold(b, candidates)
		return err
	}
	r.failedLists.Forget(namespace)
	listed := r.Clock.Now()
	defer r.pace(b, listed, listed.Sub(start))

	free := candidates[:0:0]
	for _, claim := range candidates {
		if held := holders[claim.Name]; len(held) > 0 {
			// If the cache does not know this holder, because its watch has lost
			// it for good, no event will ever say that the holder is gone.
			r.keep(ctx, b, claim, held, metrics.LiveList)
		} else {
			metrics.Answers.WithLabelValues(metrics.LiveList, metrics.Free).Inc()
			free = append(free, claim)
		}
	}
	return r.writeEach(ctx, b, free, write{
		operation: metrics.Release, failing: "Removing the finalizer", patchKey: removeFinalizers,
		since: listed, report: r.reportReleased,
	})
}

// keep settles a blocked claim: it is looked at again when an event says so, or
// by itself after a while.
func (r *PersistentVolumeClaimReconciler) keep(
	ctx context.Context, b *batch.Batch, claim *corev1.PersistentVolumeClaim, holders []holder, source string,
) {
	recheck := r.recheckIn(claim.Namespace)
	r.reportBlocked(ctx, claim, holders, source, recheck)
	b.Again(requestFor(claim), recheck)
}

func hold(b *batch.Batch, claims []*corev1.PersistentVolumeClaim) {
	requests := make([]reconcile.Request, 0, len(claims))
	for _, claim := range claims {
		requests = append(requests, requestFor(claim))
	}
	b.Hold(requests...)
}

func requestFor(claim *corev1.PersistentVolumeClaim) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)}
}
