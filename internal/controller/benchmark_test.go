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
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pages answers every list with the same pods, in pages.
type pages struct {
	client.Reader
	pods []corev1.Pod
}

func (p pages) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	start := 0
	if options.Continue != "" {
		if _, err := fmt.Sscan(options.Continue, &start); err != nil {
			return err
		}
	}
	end := min(start+int(options.Limit), len(p.pods))
	page := list.(*corev1.PodList)
	page.Items, page.Continue = p.pods[start:end], ""
	if end < len(p.pods) {
		page.Continue = fmt.Sprint(end)
	}
	return nil
}

// BenchmarkLiveList is what it costs to make the live list's pages an index by claim:
// it must grow with claims + pods, not with their product.
func BenchmarkLiveList(b *testing.B) {
	for _, n := range []int{500, 5000, 50_000} {
		candidates := map[string]*corev1.PersistentVolumeClaim{}
		reader := pages{}
		for i := range n {
			name := fmt.Sprint("claim-", i)
			candidates[name] = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
			reader.pods = append(reader.pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i)},
				Spec: corev1.PodSpec{NodeName: "node", Volumes: []corev1.Volume{
					{Name: "config"},
					{Name: "data", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "other-" + name},
					}},
				}},
			})
		}
		reader.pods[n/2].Spec.Volumes[1].PersistentVolumeClaim.ClaimName = "claim-0"
		b.Run(fmt.Sprintf("%d claims and pods", n), func(b *testing.B) {
			r := &PersistentVolumeClaimReconciler{APIReader: reader, Clock: clock.RealClock{}}
			b.ReportAllocs()
			for b.Loop() {
				holders, err := r.liveHolders(b.Context(), "ns", candidates)
				if err != nil || len(holders) != 1 {
					b.Fatalf("liveHolders() = %v, %v, want the one holder", holders, err)
				}
			}
		})
	}
}
