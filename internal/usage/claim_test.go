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

package usage_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/internal/usage"
)

func TestClaimStates(t *testing.T) {
	tests := map[string]struct {
		claim                      *corev1.PersistentVolumeClaim
		needsProtection, candidate bool
	}{
		"new":                          {newClaim("c"), true, false},
		"protected":                    {newClaim("c", finalizers(finalizer)), false, false},
		"protected among others":       {newClaim("c", finalizers("a/b", finalizer, "c/d")), false, false},
		"protected by somebody else":   {newClaim("c", finalizers("kubernetes.io/pvc-protection")), true, false},
		"a longer finalizer":           {newClaim("c", finalizers(finalizer+"2")), true, false},
		"a shorter finalizer":          {newClaim("c", finalizers(finalizer[1:])), true, false},
		"terminating":                  {newClaim("c", terminating), false, false},
		"terminating, ours":            {newClaim("c", terminating, finalizers(finalizer)), false, true},
		"terminating, ours and more":   {newClaim("c", terminating, finalizers("a/b", finalizer)), false, true},
		"terminating, somebody else's": {newClaim("c", terminating, finalizers("a/b")), false, false},
		"terminating, a longer one":    {newClaim("c", terminating, finalizers(finalizer+"2")), false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usage.NeedsProtection(test.claim, finalizer); got != test.needsProtection {
				t.Errorf("NeedsProtection() = %v, want %v", got, test.needsProtection)
			}
			if got := usage.IsCandidate(test.claim, finalizer); got != test.candidate {
				t.Errorf("IsCandidate() = %v, want %v", got, test.candidate)
			}
		})
	}
}
