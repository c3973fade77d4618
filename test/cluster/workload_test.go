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

package cluster_test

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// testWorkload needs every component to do its part: controllers make pods and claims and bind the claims, the
// scheduler assigns the pods, kwok runs them.
func testWorkload(t *testing.T, admin kubernetes.Interface) {
	const replicas = 2
	labels := map[string]string{"app": "web"}
	spec := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name:  "web",
						Image: "web",
						VolumeMounts: []corev1.VolumeMount{
							{Name: "data", MountPath: "/data"},
							{Name: "scratch", MountPath: "/scratch"},
						},
					}},
					Volumes: []corev1.Volume{{
						Name: "scratch",
						VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
							VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec},
						}},
					}},
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec:       spec,
			}},
		},
	}
	sets := admin.AppsV1().StatefulSets(namespace)
	if _, err := sets.Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll(t, func(ctx context.Context) (bool, error) {
		current, err := sets.Get(ctx, set.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return current.Status.ReadyReplicas == replicas, nil
	})

	claims, err := admin.CoreV1().PersistentVolumeClaims(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(claims.Items))
	for _, claim := range claims.Items {
		names = append(names, claim.Name)
		if claim.Status.Phase != corev1.ClaimBound {
			t.Errorf("claim %s is %s", claim.Name, claim.Status.Phase)
		}
		// Neither the admission plugin nor the controller is there to add it.
		if slices.Contains(claim.Finalizers, inTreeFinalizer) {
			t.Errorf("claim %s has the in-tree finalizer", claim.Name)
		}
	}
	slices.Sort(names)
	if want := []string{"data-web-0", "data-web-1", "web-0-scratch", "web-1-scratch"}; !slices.Equal(names, want) {
		t.Errorf("got claims %v, want %v", names, want)
	}
}
