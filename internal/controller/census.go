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
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

// census counts the claims in the cache by their state, for the metrics. It is told
// of every change by the informer, which gives the old object with the new one: it
// needs no memory of its own. It tells of candidates that are none any more.
func census(finalizer string, gone func(*corev1.PersistentVolumeClaim)) toolscache.ResourceEventHandler {
	count := func(obj any, by int64) {
		if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		claim, ok := obj.(*corev1.PersistentVolumeClaim)
		if !ok {
			return
		}
		counterOf(claim, finalizer).Add(by)
		if by < 0 == usage.IsCandidate(claim, finalizer) {
			gone(claim)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { count(obj, 1) },
		UpdateFunc: func(old, updated any) {
			count(old, -1)
			count(updated, 1)
		},
		DeleteFunc: func(obj any) { count(obj, -1) },
	}
}

func counterOf(claim *corev1.PersistentVolumeClaim, finalizer string) *atomic.Int64 {
	switch {
	case usage.IsCandidate(claim, finalizer):
		return &metrics.Claims.Candidates
	case usage.NeedsProtection(claim, finalizer):
		return &metrics.Claims.Unprotected
	case claim.DeletionTimestamp != nil:
		return &metrics.Claims.Released
	default:
		return &metrics.Claims.Protected
	}
}
