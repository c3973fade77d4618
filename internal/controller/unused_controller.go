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
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

// The permission to patch persistentvolumeclaims/status has no kubebuilder:rbac
// marker: it is a role of its own, config/rbac/unused_condition_role.yaml, which is
// left out where the condition is switched off.

// The reasons of the Unused condition are upstream's.
const (
	reasonUnused = "NoPodsUsingPVC"
	reasonUsed   = "PodUsingPVC"
)

// UnusedReconciler keeps the Unused condition of bound claims: whether no pod
// refers to the claim, and since when.
//
// It is for information only, so it is kept apart from the protection of claims: a
// controller with a queue and a few workers of its own, which takes its word from
// the cache and never lists live. A condition may be late, but not for good: it
// depends on nothing but objects of the cache, and every change of one of them
// gives the claim another look.
type UnusedReconciler struct {
	// Client reads claims and pods from the manager's cache, and writes.
	client.Client

	// Clock tells when a condition changed. Defaults to the real clock.
	Clock clock.PassiveClock

	// refusals is the pace of log lines about patches that are not allowed.
	refusals flowcontrol.RateLimiter
}

// When a claim is looked at again if no event asks for it.
const (
	supersededAgain = 30 * time.Second
	forbiddenAgain  = time.Minute
)

// Reconcile writes the claim's Unused condition if its status is not right, by
// whomever it was written. Its reason and message alone are no reason to write.
func (r *UnusedReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := r.Get(ctx, request.NamespacedName, claim, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !usage.WantsUnused(claim) {
		return reconcile.Result{}, nil
	}
	condition, err := r.condition(ctx, claim)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("looking up the pods that name the claim in the cache: %w", err)
	}
	if condition.Status == usage.UnusedStatus(claim) {
		return reconcile.Result{}, nil
	}
	err = r.write(ctx, claim, condition)
	if ctx.Err() != nil {
		// The manager stops. Unlike a finalizer, this is not worth waiting for.
		return reconcile.Result{}, nil
	}
	metrics.UnusedConditionWrites.WithLabelValues(resultOf(err)).Inc()
	switch {
	case errors.Is(err, errSuperseded):
		// The change that came before is an event. If there is none, an admission
		// webhook has only said so.
		return reconcile.Result{RequeueAfter: supersededAgain}, nil
	case apierrors.IsForbidden(err):
		// It concerns all claims, or those of a namespace, and for long.
		if r.refusals.TryAccept() {
			log.FromContext(ctx).Error(err, "The API server refuses Unused conditions; for a while, further refusals are only counted")
		}
		return reconcile.Result{RequeueAfter: forbiddenAgain}, nil
	default:
		return reconcile.Result{}, err
	}
}

// condition returns the condition that the claim ought to have. Its time is now.
func (r *UnusedReconciler) condition(
	ctx context.Context, claim *corev1.PersistentVolumeClaim,
) (*corev1.PersistentVolumeClaimCondition, error) {
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(claim.Namespace),
		client.MatchingFields{usage.PodClaimIndex: claim.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	condition := &corev1.PersistentVolumeClaimCondition{
		Type:               corev1.PersistentVolumeClaimUnused,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(r.Clock.Now()),
		Reason:             reasonUnused,
		Message:            "No pod that has not ended refers to this claim",
	}
	for i := range pods.Items {
		if usage.Refers(&pods.Items[i], claim) {
			condition.Status = corev1.ConditionFalse
			condition.Reason = reasonUsed
			condition.Message = "A pod that has not ended refers to this claim"
			break
		}
	}
	return condition, nil
}

// write patches the condition into the claim's status. It returns errSuperseded if
// the claim is not what was decided about any more: the change that made it so is
// an event of the claim, and the next look.
//
// Conditions merge by their type, so this touches no other. It names the
// resourceVersion all the same: a cache that does not show our last write yet, or
// another writer's, would have it written again and lose the time of the change.
func (r *UnusedReconciler) write(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, condition *corev1.PersistentVolumeClaimCondition,
) error {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": claim.UID, "resourceVersion": claim.ResourceVersion},
		"status":   map[string]any{"conditions": []any{condition}},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	// The answer is decoded into an object of its own: the claim is the cache's.
	answer := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}}
	err = r.Status().Patch(ctx, answer, client.RawPatch(types.StrategicMergePatchType, data))
	if gone(err, claim.Name) || apierrors.IsConflict(err) || refused(err, "metadata.uid") {
		return errSuperseded
	}
	return err
}
