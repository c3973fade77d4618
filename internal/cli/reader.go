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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"pvc-protection-operator/internal/usage"
)

// pageSize is how many objects a list asks for at once, as kubectl does.
const pageSize = 500

// reader reads what reports are made of.
type reader struct {
	client kubernetes.Interface
	// namespace is the one to work in. Empty means all.
	namespace string
	// selector is a label query for claims.
	selector string
}

// namedClaims returns the claims that exist, and an error if that is not all.
func (r *reader) namedClaims(ctx context.Context, names []string) ([]*corev1.PersistentVolumeClaim, error) {
	var claims []*corev1.PersistentVolumeClaim
	var errs []error
	for _, name := range claimNames(names) {
		claim, err := r.client.CoreV1().PersistentVolumeClaims(r.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			errs = append(errs, fmt.Errorf("claim %s/%s: %w", r.namespace, name, err))
			continue
		}
		claims = append(claims, claim)
	}
	return claims, errors.Join(errs...)
}

// claimNames returns the names, sorted and each once. They may be as kubectl takes
// them, with the type before.
func claimNames(names []string) []string {
	plain := make([]string, 0, len(names))
	for _, name := range names {
		if kind, rest, ok := strings.Cut(name, "/"); ok && slices.Contains(claimKinds, kind) {
			name = rest
		}
		plain = append(plain, name)
	}
	slices.Sort(plain)
	return slices.Compact(plain)
}

var claimKinds = []string{"pvc", "persistentvolumeclaim", "persistentvolumeclaims"}

// claims returns the selected claims that fit. A nil function fits all.
func (r *reader) claims(
	ctx context.Context, fits func(*corev1.PersistentVolumeClaim) bool,
) ([]*corev1.PersistentVolumeClaim, error) {
	var claims []*corev1.PersistentVolumeClaim
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.client.CoreV1().PersistentVolumeClaims(r.namespace).List(ctx, options)
	}
	err := forEach(ctx, list, metav1.ListOptions{LabelSelector: r.selector}, func(claim *corev1.PersistentVolumeClaim) {
		if fits == nil || fits(claim) {
			claims = append(claims, &corev1.PersistentVolumeClaim{ObjectMeta: trimmedMeta(&claim.ObjectMeta)})
		}
	})
	return claims, err
}

// pods returns the pods that name claims, with what reports need of them.
func (r *reader) pods(ctx context.Context) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.client.CoreV1().Pods(r.namespace).List(ctx, options)
	}
	err := forEach(ctx, list, metav1.ListOptions{}, func(pod *corev1.Pod) {
		if !usage.NamesClaims(pod) {
			return
		}
		pods = append(pods, &corev1.Pod{
			ObjectMeta: trimmedMeta(&pod.ObjectMeta),
			Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: pod.Spec.Volumes},
			Status: corev1.PodStatus{
				Phase:             pod.Status.Phase,
				Conditions:        pod.Status.Conditions,
				ContainerStatuses: pod.Status.ContainerStatuses,
			},
		})
	})
	return pods, err
}

// controllerOf returns a function that reads ReplicaSets and Jobs, which have
// controllers themselves, each once. Who may not read them sees no further.
func (r *reader) controllerOf(ctx context.Context) func(string, *metav1.OwnerReference) *metav1.OwnerReference {
	known := map[types.UID]*metav1.OwnerReference{}
	return func(namespace string, of *metav1.OwnerReference) *metav1.OwnerReference {
		controller, ok := known[of.UID]
		if !ok {
			controller = r.readController(ctx, namespace, of)
			known[of.UID] = controller
		}
		return controller
	}
}

func (r *reader) readController(ctx context.Context, namespace string, of *metav1.OwnerReference) *metav1.OwnerReference {
	var object metav1.Object
	var err error
	switch of.Kind {
	case "ReplicaSet":
		object, err = r.client.AppsV1().ReplicaSets(namespace).Get(ctx, of.Name, metav1.GetOptions{})
	case "Job":
		object, err = r.client.BatchV1().Jobs(namespace).Get(ctx, of.Name, metav1.GetOptions{})
	default:
		return nil
	}
	if err != nil || object.GetUID() != of.UID {
		return nil
	}
	return metav1.GetControllerOf(object)
}

// forEach visits the objects of a list, page by page. They are not kept.
func forEach[T any](ctx context.Context, list pager.ListPageFunc, options metav1.ListOptions, visit func(*T)) error {
	p := pager.New(list)
	p.PageSize = pageSize
	return p.EachListItem(ctx, options, func(object runtime.Object) error {
		visit(any(object).(*T))
		return nil
	})
}

// trimmedMeta returns what reports need of the metadata.
func trimmedMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:                  meta.Namespace,
		Name:                       meta.Name,
		UID:                        meta.UID,
		CreationTimestamp:          meta.CreationTimestamp,
		DeletionTimestamp:          meta.DeletionTimestamp,
		DeletionGracePeriodSeconds: meta.DeletionGracePeriodSeconds,
		OwnerReferences:            meta.OwnerReferences,
		Finalizers:                 meta.Finalizers,
	}
}
