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
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/internal/usage"
)

var _ client.IndexerFunc = usage.IndexPodByClaim

func TestIndexPodByClaim(t *testing.T) {
	tests := map[string]struct {
		object client.Object
		want   []string
	}{
		"no volumes":              {newPod(), nil},
		"volumes without a claim": {newPod(otherVolumes), nil},
		"claims":                  {newPod(claims("b", "a")), []string{"a", "b"}},
		"each claim once":         {newPod(claims("a", "b", "a", "b", "a")), []string{"a", "b"}},
		"ephemeral volumes":       {newPod(ephemeralVolume("v"), ephemeralVolume("w")), []string{"pod-v", "pod-w"}},
		"ephemeral and by name":   {newPod(ephemeralVolume("v"), claims("pod-v")), []string{"pod-v"}},
		"claims without a name":   {newPod(claims("", "a")), []string{"a"}},
		"not scheduled":           {newPod(unscheduled, pending, claims("a")), []string{"a"}},
		"succeeded":               {newPod(succeeded, claims("a")), []string{"a"}},
		"shut down":               {newPod(shutDown, ephemeralVolume("v")), []string{"pod-v"}},
		"not a pod":               {newClaim("a"), nil},
		"nothing":                 {nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usage.IndexPodByClaim(test.object); !slices.Equal(got, test.want) {
				t.Errorf("IndexPodByClaim() = %q, want %q", got, test.want)
			}
		})
	}
}
