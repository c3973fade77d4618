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

package explain_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"pvc-protection-operator/internal/explain"
)

const (
	finalizer = explain.InTreeFinalizer
	foreign   = "example.com/backup"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

type claimOption func(*corev1.PersistentVolumeClaim)

// claim returns a claim in shop that is two hours old and protected.
func claim(name string, options ...claimOption) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: ago(2 * time.Hour),
		Finalizers: []string{finalizer},
	}}
	for _, option := range options {
		option(c)
	}
	return c
}

func withFinalizers(names ...string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Finalizers = names }
}

func deleted(before time.Duration) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(ago(before)) }
}

func inNamespace(name string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Namespace = name }
}

type podOption func(*corev1.Pod)

// pod returns a pod in shop that has run on a node for an hour and names the claim
// data.
func pod(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: ago(time.Hour),
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Volumes: []corev1.Volume{{
			Name: "data",
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, option := range options {
		option(p)
	}
	return p
}

func unscheduled(p *corev1.Pod) {
	p.Spec.NodeName = ""
	p.Status.Phase = corev1.PodPending
}

func scheduled(before time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: ago(before),
		})
	}
}

func ended(before ...time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		for _, b := range before {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(b)}},
			})
		}
	}
}

// podDeleted is what the API server makes of a deletion.
func podDeleted(before, grace time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = new(ago(before - grace))
		p.DeletionGracePeriodSeconds = new(int64(grace.Seconds()))
	}
}

func podFinalizers(names ...string) podOption {
	return func(p *corev1.Pod) { p.Finalizers = names }
}

// scratch replaces the pod's volume by a generic ephemeral one.
func scratch(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{
		Name:         "scratch",
		VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}},
	}}
}

func scratchOf(p *corev1.Pod) *corev1.PersistentVolumeClaim {
	return claim(p.Name+"-scratch", func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p, corev1.SchemeGroupVersion.WithKind("Pod"))}
	})
}

func ownedBy(kind schema.GroupVersionKind, name string) podOption {
	return func(p *corev1.Pod) {
		owner := &metav1.ObjectMeta{Name: name, UID: types.UID(name)}
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	}
}

var (
	statefulSet = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	daemonSet   = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	replicaSet  = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	job         = batchv1.SchemeGroupVersion.WithKind("Job")
)

// controllerOf knows that ReplicaSets are of Deployment web and Jobs of CronJob
// nightly.
func controllerOf(_ string, of *metav1.OwnerReference) *metav1.OwnerReference {
	switch of.Kind {
	case "ReplicaSet":
		return &metav1.OwnerReference{Kind: "Deployment", Name: "web"}
	case "Job":
		return &metav1.OwnerReference{Kind: "CronJob", Name: "nightly"}
	default:
		return nil
	}
}

// report is on one claim and on pods that may name it.
func report(c *corev1.PersistentVolumeClaim, pods ...*corev1.Pod) *explain.Report {
	return explain.New(&explain.Facts{
		Finalizer:    finalizer,
		Now:          now,
		Claims:       []*corev1.PersistentVolumeClaim{c},
		Pods:         pods,
		ControllerOf: controllerOf,
		Serving:      &explain.Serving{},
	})
}
