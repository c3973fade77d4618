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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodClaimIndex is the name of the field index of pods by the claims that
// their volumes name. Register it with IndexPodByClaim.
const PodClaimIndex = "spec.volumes.claimName"

// IndexPodByClaim is a client.IndexerFunc. It returns the names of the claims
// that the pod's volumes name, sorted and each once, whatever state the pod is in;
// it returns nothing for objects that are not pods.
func IndexPodByClaim(obj client.Object) []string {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	names := slices.Collect(ClaimNames(pod))
	slices.Sort(names)
	return slices.Compact(names)
}
