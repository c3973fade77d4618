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

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"pvc-protection-operator/internal/batch"
	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

const controllerName = "persistentvolumeclaim"

// CacheOptions returns the cache that the reconciler needs: trimmed pods and
// claims, of the given namespaces or, if there are none, of all.
//
// Objects are handed out without a copy. Nothing in this process may change them.
func CacheOptions(namespaces ...string) cache.Options {
	trimmed := func(transform func(any) (any, error)) cache.ByObject {
		return cache.ByObject{Transform: transform, UnsafeDisableDeepCopy: new(true)}
	}
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.PersistentVolumeClaim{}: trimmed(usage.TrimClaim),
		&corev1.Pod{}:                   trimmed(usage.TrimPod),
	}}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// SetupWithManager adds the controller to the manager, whose cache must have been
// made with CacheOptions.
//
// The caches of claims and pods are filled before the manager is elected, so that
// a standby takes over at once. Events are handled from then on only: what exists
// is replayed to the handlers when the controller starts.
func (r *PersistentVolumeClaimReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	r.announcer = newAnnouncer(mgr.GetClient(), r.Clock, r.reports.unsay)
	if err := r.announcer.SetupWithManager(mgr); err != nil {
		return err
	}
	metrics.Claims.SetOldest(r.reports.oldest)
	r.crowd = newCrowd()
	r.failedLists = batch.RateLimiter[string]()
	r.batches = batch.NewSource(
		batch.Options{
			Name:    controllerName + "-claims",
			Window:  r.Options.BatchWindow,
			MaxSize: r.Options.MaxBatchSize,
		},
		source.Kind(mgr.GetCache(), &corev1.PersistentVolumeClaim{},
			&handler.TypedEnqueueRequestForObject[*corev1.PersistentVolumeClaim]{}, claimEvents(r.Options.Finalizer)),
		source.Kind(mgr.GetCache(), client.Object(&corev1.Pod{}),
			handler.EnqueueRequestsFromMapFunc(r.notifiedClaims), podEvents()),
	)

	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, usage.PodClaimIndex, usage.IndexPodByClaim); err != nil {
		return fmt.Errorf("indexing pods by claim: %w", err)
	}
	if err := addReadyCheck(ctx, mgr); err != nil {
		return err
	}
	claims, err := mgr.GetCache().GetInformer(ctx, &corev1.PersistentVolumeClaim{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("creating the informer of claims: %w", err)
	}
	if _, err := claims.AddEventHandler(census(r.Options.Finalizer, r.reports.gone)); err != nil {
		return fmt.Errorf("counting claims: %w", err)
	}

	c, err := controller.NewTyped(controllerName, mgr, controller.TypedOptions[batch.Namespace]{
		Reconciler:              r,
		MaxConcurrentReconciles: r.Options.ConcurrentNamespaces,
		RateLimiter:             batch.RateLimiter[batch.Namespace](),
		LogConstructor:          logConstructor(mgr.GetLogger()),
	})
	if err != nil {
		return fmt.Errorf("creating the controller: %w", err)
	}
	return c.Watch(r.batches)
}

// logConstructor names the controller and, while a batch is looked at, its
// namespace.
func logConstructor(base logr.Logger) func(*batch.Namespace) logr.Logger {
	base = base.WithValues("controller", controllerName)
	return func(namespace *batch.Namespace) logr.Logger {
		if namespace == nil {
			return base
		}
		return base.WithValues("namespace", *namespace)
	}
}

// notifiedClaims is claimsOfPod, and remembers that an event has come for them.
func (r *PersistentVolumeClaimReconciler) notifiedClaims(ctx context.Context, pod client.Object) []reconcile.Request {
	requests := claimsOfPod(ctx, pod)
	for _, request := range requests {
		r.reports.notify(request.NamespacedName)
	}
	return requests
}

// claimsOfPod maps a pod to the claims that its volumes name.
func claimsOfPod(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	pod := usage.CachedPod(obj)
	for name := range usage.ClaimNames(pod) {
		requests = append(requests, reconcile.Request{
			NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name},
		})
	}
	return requests
}

// addReadyCheck makes the manager ready once both caches have synced. It also
// starts both informers with the manager's cache, before the election.
func addReadyCheck(ctx context.Context, mgr ctrl.Manager) error {
	for name, object := range map[string]client.Object{
		"claims": &corev1.PersistentVolumeClaim{},
		"pods":   &corev1.Pod{},
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("creating the informer of %s: %w", name, err)
		}
		var check healthz.Checker = func(*http.Request) error {
			if !informer.HasSynced() {
				return fmt.Errorf("the cache of %s has not synced", name)
			}
			return nil
		}
		if err := mgr.AddReadyzCheck("cache-of-"+name, check); err != nil {
			return fmt.Errorf("adding the ready check of %s: %w", name, err)
		}
	}
	return nil
}
