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
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

// boundClaim creates a claim, waits until it is protected, and binds it.
func (e *env) boundClaim(name string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	e.Helper()
	return e.markBound(e.claim(name, changes...))
}

// markBound says that the claim is bound, as the controller of volumes does.
func (e *env) markBound(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	e.Helper()
	e.patchStatus(claim, map[string]any{"phase": corev1.ClaimBound})
	return claim
}

func (e *env) patchStatus(claim *corev1.PersistentVolumeClaim, status map[string]any) {
	e.Helper()
	data, err := json.Marshal(map[string]any{"status": status})
	e.fatalIf(err)
	e.fatalIf(suite.admin.Status().Patch(e.Context(), claim.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, data)))
}

// setUnused writes the condition as somebody else.
func (e *env) setUnused(claim *corev1.PersistentVolumeClaim, status corev1.ConditionStatus) {
	e.Helper()
	e.patchStatus(claim, map[string]any{"conditions": []any{corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: status, Reason: "Somebody",
	}}})
}

func conditionOf(
	claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType,
) *corev1.PersistentVolumeClaimCondition {
	for i := range claim.Status.Conditions {
		if condition := &claim.Status.Conditions[i]; condition.Type == kind {
			return condition
		}
	}
	return nil
}

// unused waits until the claim's condition is true, used until it is false, and both return it.

func (e *env) unused(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimCondition {
	e.Helper()
	e.eventually("claim "+claim.Name+" has to be unused", unusedIs(claim, corev1.ConditionTrue))
	return conditionOf(claim, corev1.PersistentVolumeClaimUnused)
}

func (e *env) used(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimCondition {
	e.Helper()
	e.eventually("claim "+claim.Name+" has to be used", unusedIs(claim, corev1.ConditionFalse))
	return conditionOf(claim, corev1.PersistentVolumeClaimUnused)
}

func (e *env) staysUnused(claim *corev1.PersistentVolumeClaim) {
	e.Helper()
	e.unusedSentinel()
	e.consistently("claim "+claim.Name+" has to stay unused", unusedIs(claim, corev1.ConditionTrue))
}

func (e *env) staysUsed(claim *corev1.PersistentVolumeClaim) {
	e.Helper()
	e.consistently("claim "+claim.Name+" has to stay used", unusedIs(claim, corev1.ConditionFalse))
}

func unusedIs(claim *corev1.PersistentVolumeClaim, want corev1.ConditionStatus) harness.Condition {
	return func(ctx context.Context) error {
		if err := exists(ctx, claim, true); err != nil {
			return err
		}
		if got := conditionOf(claim, corev1.PersistentVolumeClaimUnused); got == nil || got.Status != want {
			return fmt.Errorf("the condition is %+v", got)
		}
		return nil
	}
}

// unusedSentinel waits until the operator has given a new claim its condition, as it then has seen what was before.
func (e *env) unusedSentinel() {
	e.Helper()
	sentinel := harness.Claim(e.namespace, "")
	sentinel.GenerateName = "sentinel-"
	e.create(sentinel)
	e.unused(e.markBound(sentinel))
}

// hasWritten checks how often the operator has written the condition of the claim, which must be what it is for good.
func (e *env) hasWritten(claim *corev1.PersistentVolumeClaim, want int) {
	e.Helper()
	// The audit log gets a request once it is answered.
	e.eventually("the writes have to be in the audit log", func(context.Context) error {
		if got := conditionWrites(e, claim.Name, http.StatusOK); got < want {
			return fmt.Errorf("%d writes, want %d", got, want)
		}
		return nil
	})
	if got := conditionWrites(e, claim.Name, http.StatusOK); got > want {
		e.Errorf("the operator wrote the condition of claim %s %d times, want %d", claim.Name, got, want)
	}
}

// conditionWrites returns how many patches of the status of the claim of that name were answered with the code.
func conditionWrites(e *env, name string, code int32) int {
	e.Helper()
	count := 0
	e.fatalIf(forEachRequest(func(event *cluster.AuditEvent, _ url.Values) {
		ref := event.ObjectRef
		if event.Verb == "patch" && ref.Resource == "persistentvolumeclaims" && ref.Subresource == "status" &&
			ref.Namespace == e.namespace && ref.Name == name && event.ResponseStatus != nil && event.ResponseStatus.Code == code {
			count++
		}
	}))
	return count
}
