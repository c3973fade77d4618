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
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestFinalizerPatch proves that a patch says no more than what it is for: which
// claim, and one finalizer.
func TestFinalizerPatch(t *testing.T) {
	claim := claimWith("c1", "example.com/other", testFinalizer)
	claim.UID = "9f1c"
	claim.ResourceVersion = "7"
	claim.Labels = map[string]string{"a": "b"}
	for key, want := range map[string]string{
		addFinalizers:    `{"metadata":{"finalizers":["example.com/protection"],"uid":"9f1c"}}`,
		removeFinalizers: `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/protection"],"uid":"9f1c"}}`,
	} {
		patch, err := finalizerPatch(claim, key, testFinalizer)
		if err != nil {
			t.Fatal(err)
		}
		if patch.Type() != types.StrategicMergePatchType {
			t.Errorf("the patch of %s is of type %s", key, patch.Type())
		}
		data, err := patch.Data(claim)
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != want {
			t.Errorf("the patch of %s is %s, want %s", key, data, want)
		}
	}
}

func TestRefused(t *testing.T) {
	status := func(details *metav1.StatusDetails) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: 422, Details: details,
		}}
	}
	causes := func(fields ...string) error {
		details := &metav1.StatusDetails{}
		for _, field := range fields {
			details.Causes = append(details.Causes, metav1.StatusCause{Field: field})
		}
		return status(details)
	}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no error":                 {nil, false},
		"another error":            {errTest, false},
		"its text only":            {errors.New("metadata.uid: Invalid value"), false},
		"not found":                {apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), "c1"), false},
		"a conflict":               {apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), "c1", errTest), false},
		"invalid, of no details":   {status(nil), false},
		"invalid, of no causes":    {causes(), false},
		"invalid, another field":   {causes("metadata.finalizers", "metadata.uid.x", "metadata"), false},
		"invalid, the field":       {causes("metadata.uid"), true},
		"invalid, among others":    {causes("spec", "metadata.uid"), true},
		"invalid, wrapped":         {fmt.Errorf("patch: %w", causes("metadata.uid")), true},
		"invalid, as servers send": {invalid("metadata", "uid"), true},
		"forbidden, the field": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "metadata.uid"}}},
		}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := refused(test.err, "metadata.uid"); got != test.want {
				t.Errorf("refused() = %v, want %v", got, test.want)
			}
		})
	}
}

// TestPatchFinalizer proves which answers make a decision superseded.
func TestPatchFinalizer(t *testing.T) {
	gone := apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), "c1")
	tests := map[string]struct {
		err                  error
		onProtect, onRelease error
	}{
		"it works":                {nil, nil, nil},
		"the claim is gone":       {gone, errSuperseded, errSuperseded},
		"it is another one":       {invalid("metadata", "uid"), errSuperseded, errSuperseded},
		"it is being deleted":     {invalid("metadata", "finalizers"), errSuperseded, invalid("metadata", "finalizers")},
		"something else is wrong": {invalid("spec"), invalid("spec"), invalid("spec")},
		"the server fails":        {errTest, errTest, errTest},
	}
	for name, test := range tests {
		for key, want := range map[string]error{addFinalizers: test.onProtect, removeFinalizers: test.onRelease} {
			t.Run(name+"/"+key, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.onPatch = func(context.Context, string) error { return test.err }
					err := w.patchFinalizer(w.ctx, claimWith("c1"), key)
					if (err == nil) != (want == nil) || want != nil && err.Error() != want.Error() {
						t.Errorf("patchFinalizer() = %v, want %v", err, want)
					}
				}, claimWith("c1", "example.com/other"))
			})
		}
	}
}
