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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"pvc-protection-operator/internal/usage"
)

// claimEvents passes events of claims that may need work. That a claim is gone
// needs none.
func claimEvents(finalizer string) predicate.TypedPredicate[*corev1.PersistentVolumeClaim] {
	needsWork := func(claim *corev1.PersistentVolumeClaim) bool {
		return usage.NeedsProtection(claim, finalizer) || usage.IsCandidate(claim, finalizer)
	}
	return predicate.TypedFuncs[*corev1.PersistentVolumeClaim]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.PersistentVolumeClaim]) bool { return needsWork(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.PersistentVolumeClaim]) bool { return needsWork(e.ObjectNew) },
		DeleteFunc: func(event.TypedDeleteEvent[*corev1.PersistentVolumeClaim]) bool { return false },
	}
}

// podEvents passes events of pods after which a claim may have a holder less.
// Pods of the initial list pass none: all claims are looked at then anyway, after
// both caches have synced.
//
// It passes deletions that the informer has missed as well. The last known state
// of such a pod names its claims, since volumes cannot be changed.
func podEvents() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return !e.IsInInitialList && usage.MayNotHold(usage.CachedPod(e.Object))
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			return usage.MayHoldLess(usage.CachedPod(e.ObjectOld), usage.CachedPod(e.ObjectNew))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return usage.NamesClaims(usage.CachedPod(e.Object)) },
	}
}
