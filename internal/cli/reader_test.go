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

package cli

import (
	"slices"
	"testing"
)

func TestClaimNames(t *testing.T) {
	got := claimNames([]string{"b", "pvc/a", "persistentvolumeclaim/b", "persistentvolumeclaims/c", "pod/d"})
	if want := []string{"a", "b", "c", "pod/d"}; !slices.Equal(got, want) {
		t.Errorf("claimNames() = %q, want %q", got, want)
	}
}
