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
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errSuperseded says that a claim changed so that the decision about it no
// longer applies: nothing was written and nothing needs to be.
var errSuperseded = errors.New("the claim is gone, is another one, or is being deleted already")

// The keys of the patches. Finalizers merge as a set in a strategic merge patch,
// so both patches change our finalizer in whatever list the server has, without
// a resourceVersion: they do not conflict with other writers and do not undo
// them. The UID cannot be changed, so naming it makes the server refuse the patch
// for a claim that was recreated under the same name.
const (
	addFinalizers    = "finalizers"
	removeFinalizers = "$deleteFromPrimitiveList/finalizers"
)

func finalizerPatch(claim *corev1.PersistentVolumeClaim, key, finalizer string) (client.Patch, error) {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": claim.UID, key: []string{finalizer}},
	})
	if err != nil {
		return nil, err
	}
	return client.RawPatch(types.StrategicMergePatchType, data), nil
}

// patchFinalizer adds the finalizer to the claim or removes it. It returns
// errSuperseded if the claim that was decided about does not exist any more or
// is beyond protection.
func (r *PersistentVolumeClaimReconciler) patchFinalizer(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, key string,
) error {
	patch, err := finalizerPatch(claim, key, r.Options.Finalizer)
	if err != nil {
		return err
	}
	// The answer is decoded into an object of its own: the claim is the cache's.
	answer := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}}
	err = r.Patch(ctx, answer, patch)
	if gone(err, claim.Name) || refused(err, "metadata.uid") ||
		key == addFinalizers && refused(err, "metadata.finalizers") {
		return errSuperseded
	}
	return err
}

// gone reports whether the API server says that the claim does not exist. A proxy in
// between that does not find the API server may answer with the same code, and so
// may an admission webhook that refuses the patch, but not about the claim.
func gone(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	details := status.Status().Details
	return details.Kind == claimsResource && details.Name == name && len(details.Causes) == 0
}

// refused reports whether the API server found the field invalid.
func refused(err error, field string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == field
	})
}
