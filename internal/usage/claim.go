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

package usage

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NeedsProtection reports whether the claim lacks the finalizer and may still
// get it. The API server refuses new finalizers on an object that is being
// deleted, so a terminating claim never needs protection.
func NeedsProtection(claim *corev1.PersistentVolumeClaim, finalizer string) bool {
	return claim.DeletionTimestamp == nil && !slices.Contains(claim.Finalizers, finalizer)
}

// IsCandidate reports whether the claim is being deleted and carries the
// finalizer: it is to be released as soon as no pod holds it.
func IsCandidate(claim *corev1.PersistentVolumeClaim, finalizer string) bool {
	return claim.DeletionTimestamp != nil && slices.Contains(claim.Finalizers, finalizer)
}
