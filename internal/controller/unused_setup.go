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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"pvc-protection-operator/internal/batch"
	"pvc-protection-operator/internal/usage"
)

// unusedWorkers is the number of conditions that are written at once. It is a
// handful, so that a cluster full of claims without the condition, at the first
// start, takes neither the API server's share for this client nor the CPU from
// protection, whose writes come from the same identity: 4 in flight are hundreds of
// conditions a second, and nobody waits for one.
const unusedWorkers = 4

// SetupWithManager adds the controller to the manager. The manager's cache must
// have been made with CacheOptions, and PersistentVolumeClaimReconciler must have
// been set up with it, too: it indexes the pods.
func (r *UnusedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	r.refusals = newRefusals()
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName + "-unused").
		WatchesRawSource(source.Kind(mgr.GetCache(), &corev1.PersistentVolumeClaim{},
			&handler.TypedEnqueueRequestForObject[*corev1.PersistentVolumeClaim]{}, unusedClaimEvents())).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&corev1.Pod{}),
			handler.EnqueueRequestsFromMapFunc(claimsOfPod), unusedPodEvents())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: unusedWorkers,
			RateLimiter:             batch.RateLimiter[reconcile.Request](),
		}).
		Complete(r)
}

// unusedClaimEvents passes every event of a claim that is to have the condition.
// Such claims seldom change, and a write that was superseded counts on the event of
// the change that came before it.
func unusedClaimEvents() predicate.TypedPredicate[*corev1.PersistentVolumeClaim] {
	return predicate.NewTypedPredicateFuncs(usage.WantsUnused)
}

// unusedPodEvents passes events of pods after which a claim may be referred to by a
// pod more or less. As with podEvents, pods of the initial list pass none, and
// deletions that the informer has missed pass.
func unusedPodEvents() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return !e.IsInInitialList && usage.MayRefer(usage.CachedPod(e.Object))
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			return usage.MayReferOtherwise(usage.CachedPod(e.ObjectOld), usage.CachedPod(e.ObjectNew))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return usage.NamesClaims(usage.CachedPod(e.Object)) },
	}
}

// UnusedPermissions returns what an UnusedReconciler needs besides Permissions,
// in the given namespaces or, if there are none, in all.
func UnusedPermissions(namespaces ...string) []Permission {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	needed := make([]Permission, 0, len(namespaces))
	for _, namespace := range namespaces {
		needed = append(needed, Permission{
			Namespace: namespace, Verb: "patch", Resource: claimsResource, Subresource: "status",
		})
	}
	return needed
}
