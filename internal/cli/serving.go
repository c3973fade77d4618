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
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"pvc-protection-operator/internal/explain"
	"pvc-protection-operator/internal/options"
)

const (
	// operatorName is the name of the operator's lease, and in the labels of its
	// Deployment.
	operatorName = "pvc-protection-operator"
	// operatorNamespace is where config/default installs it.
	operatorNamespace = operatorName + "-system"
)

// serving reads who serves finalizers, as far as the user may.
func (r *reader) serving(ctx context.Context) *explain.Serving {
	s := &explain.Serving{}
	deployments, err := whereAllowed(func(namespace string) ([]appsv1.Deployment, error) {
		list, err := r.client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: "app.kubernetes.io/name=" + operatorName,
		})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	})
	if err != nil {
		s.Incomplete = "the operator cannot be looked for: " + err.Error()
	}
	for i := range deployments {
		s.Operators = append(s.Operators, operatorOf(&deployments[i]))
	}
	// The Deployments say enough if these cannot be read, which the ClusterRole
	// view does not include.
	s.Leases, _ = whereAllowed(func(namespace string) ([]coordinationv1.Lease, error) {
		list, err := r.client.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "metadata.name=" + operatorName,
		})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	})
	s.InTreeOff = r.inTreeOff(ctx)
	return s
}

// whereAllowed lists in all namespaces, or else in the one where the operator
// usually is. An error says why that may not be everything.
func whereAllowed[T any](list func(namespace string) ([]T, error)) ([]T, error) {
	all, err := list(metav1.NamespaceAll)
	if err == nil {
		return all, nil
	}
	some, _ := list(operatorNamespace)
	return some, err
}

// operatorOf reads the flags as the operator does.
func operatorOf(deployment *appsv1.Deployment) explain.Operator {
	o := explain.Operator{
		Namespace: deployment.Namespace,
		Name:      deployment.Name,
		Replicas:  ptr.Deref(deployment.Spec.Replicas, 1),
		Available: deployment.Status.AvailableReplicas,
	}
	containers := deployment.Spec.Template.Spec.Containers
	manager := max(0, slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "manager" }))
	if parsed, err := options.Parse(operatorName, containers[manager].Args); err == nil {
		o.Finalizer, o.WatchNamespaces = parsed.Controller.Finalizer, parsed.WatchNamespaces
	}
	return o
}

// inTreeOff says how it is known that the in-tree controller is switched off: the
// flags of kube-controller-manager do, where it is a pod.
func (r *reader) inTreeOff(ctx context.Context) string {
	pods, err := r.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: "component=kube-controller-manager",
	})
	if err != nil {
		return ""
	}
	for i := range pods.Items {
		for _, container := range pods.Items[i].Spec.Containers {
			for _, arg := range slices.Concat(container.Command, container.Args) {
				if names, ok := strings.CutPrefix(arg, "--controllers="); ok && !runsInTree(strings.Split(names, ",")) {
					return fmt.Sprintf("pod %s/%s runs with %s", pods.Items[i].Namespace, pods.Items[i].Name, arg)
				}
			}
		}
	}
	return ""
}

// runsInTree reports whether the in-tree controller is among the controllers: "*"
// stands for all but those with a "-".
func runsInTree(controllers []string) bool {
	for _, name := range []string{"persistentvolumeclaim-protection-controller", "pvc-protection"} {
		if slices.Contains(controllers, "-"+name) {
			return false
		}
		if slices.Contains(controllers, name) {
			return true
		}
	}
	return slices.Contains(controllers, "*")
}
