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
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/internal/usage"
)

// usualPods are a pod without claims and one with two, as large as pods are.
var usualPods = map[string]*corev1.Pod{
	"without claims": newPod(otherVolumes, large),
	"with 2 claims":  newPod(claims("data", "logs"), otherVolumes, large),
}

func large(p *corev1.Pod) {
	p.Annotations = map[string]string{"example.com/filler": strings.Repeat("x", 2<<10)}
	p.Spec.Containers = make([]corev1.Container, 3)
	p.Status.ContainerStatuses = make([]corev1.ContainerStatus, 3)
}

func BenchmarkTrimPod(b *testing.B) {
	for name, pod := range usualPods {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := usage.TrimPod(pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTrimClaim(b *testing.B) {
	b.ReportAllocs()
	claim := newClaim("data", finalizers(finalizer), terminating)
	for b.Loop() {
		if _, err := usage.TrimClaim(claim); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIndexPodByClaim(b *testing.B) {
	for name, pod := range usualPods {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				usage.IndexPodByClaim(pod)
			}
		})
	}
}

// BenchmarkMayHoldLess is what an event of a pod costs that changes nothing.
func BenchmarkMayHoldLess(b *testing.B) {
	for name, pod := range usualPods {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if usage.MayHoldLess(pod, pod) {
					b.Fatal("nothing has changed")
				}
			}
		})
	}
}

func BenchmarkHolds(b *testing.B) {
	plain := newClaim("data")
	ephemeral := newClaim("pod-scratch", controlledBy("pod-uid"))
	for _, volumes := range []int{1, 10, 100} {
		pod := newPod(ephemeralVolume("scratch"))
		for i := range volumes - 1 {
			claims(fmt.Sprint("claim-", i))(pod)
		}
		claims("data")(pod)
		b.Run(fmt.Sprintf("%d volumes", volumes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !usage.Holds(pod, plain) || !usage.Holds(pod, ephemeral) {
					b.Fatal("the pod holds both")
				}
			}
		})
	}
}
