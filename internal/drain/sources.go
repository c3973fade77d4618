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

package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	managerflags "pvc-protection-operator/internal/options"
)

// stopTimeout is longer than a pod may take to end, and a lease to expire after that.
const stopTimeout = 2 * time.Minute

// nameLabel is on everything that config installs.
const nameLabel = "app.kubernetes.io/name"

// source is something that puts the finalizer on claims.
type source struct {
	// name says what it is, and remedy how it is stopped by hand.
	name, remedy string
	// stop stops it. Nil means that it is not ours to stop.
	stop func(context.Context) error
	// ends says that it ends by itself once others are stopped.
	ends bool
}

// stopSources returns nil once nothing that can be seen puts the finalizer on claims.
// It stops what does if the flag says so.
func (d *drainer) stopSources(ctx context.Context) error {
	sources, err := d.sources(ctx)
	if err != nil {
		return err
	}
	for _, s := range sources {
		if d.stop && !d.dryRun {
			d.progress.printf("%s", s.name)
		} else {
			d.progress.printf("%s: %s", s.name, s.remedy)
		}
	}
	switch {
	case len(sources) == 0:
		return nil
	case !d.stop:
		return fmt.Errorf("the finalizer %s is still being put on claims: "+
			"run the commands above first, or set --stop", d.finalizer)
	case d.dryRun:
		return nil
	}
	for _, s := range sources {
		switch {
		case s.ends:
		case s.stop == nil:
			return fmt.Errorf("%s puts the finalizer %s on claims and was not installed with the operator: stop it yourself",
				s.name, d.finalizer)
		default:
			if err := s.stop(ctx); err != nil {
				return fmt.Errorf("stopping %s: %w", s.name, err)
			}
		}
	}
	d.progress.printf("stopped, waiting until it has ended")
	err = wait.PollUntilContextTimeout(ctx, time.Second, stopTimeout, true, func(ctx context.Context) (bool, error) {
		sources, err = d.sources(ctx)
		return len(sources) == 0, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil && len(sources) > 0 {
		return fmt.Errorf("%s does not end: %s", sources[0].name, sources[0].remedy)
	}
	return err
}

// sources returns what puts the finalizer on claims, as far as it is in the operator's
// namespace or an admission policy.
func (d *drainer) sources(ctx context.Context) ([]source, error) {
	policies, err := d.policies(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for admission policies: %w", err)
	}
	operators, err := d.operators(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for the operator in namespace %s: %w", d.namespace, err)
	}
	return append(policies, operators...), nil
}

// policies returns the MutatingAdmissionPolicies that name the finalizer in a
// mutation.
func (d *drainer) policies(ctx context.Context) ([]source, error) {
	list := &unstructured.UnstructuredList{}
	resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		resource.Version = version
		served, err := d.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
		if err == nil {
			list = served
			break
		}
		if !apierrors.IsNotFound(err) { // An older server does not serve it.
			return nil, err
		}
	}
	var sources []source
	for i := range list.Items {
		policy := &list.Items[i]
		if !mutates(policy, d.finalizer) {
			continue
		}
		s := source{
			name:   "MutatingAdmissionPolicy " + policy.GetName() + " puts the finalizer on new claims",
			remedy: "kubectl delete mutatingadmissionpolicy " + policy.GetName(),
		}
		if policy.GetLabels()[nameLabel] == operatorName {
			s.stop = func(ctx context.Context) error {
				// Its binding has the same name.
				bindings := resource.GroupVersion().WithResource("mutatingadmissionpolicybindings")
				return errors.Join(
					client.IgnoreNotFound(d.dynamic.Resource(bindings).Delete(ctx, policy.GetName(), metav1.DeleteOptions{})),
					client.IgnoreNotFound(d.dynamic.Resource(resource).Delete(ctx, policy.GetName(), metav1.DeleteOptions{})))
			}
		}
		sources = append(sources, s)
	}
	return sources, nil
}

func mutates(policy *unstructured.Unstructured, finalizer string) bool {
	mutations, _, _ := unstructured.NestedFieldNoCopy(policy.Object, "spec", "mutations")
	text, err := json.Marshal(mutations)
	return err == nil && strings.Contains(string(text), finalizer)
}

// operators returns the operator's Deployments that serve the finalizer, their pods,
// and the lease if one of them, or an operator without a Deployment, holds it.
func (d *drainer) operators(ctx context.Context) ([]source, error) {
	deployments, err := d.client.AppsV1().Deployments(d.namespace).List(ctx, metav1.ListOptions{
		LabelSelector: nameLabel + "=" + operatorName,
	})
	if err != nil {
		return nil, err
	}
	var sources []source
	leaseIsOthers := false
	for i := range deployments.Items {
		deployment := &deployments.Items[i]
		scaledUp := ptr.Deref(deployment.Spec.Replicas, 1) > 0
		if !serves(deployment, d.finalizer) {
			leaseIsOthers = leaseIsOthers || scaledUp
			continue
		}
		if scaledUp {
			sources = append(sources, d.deployment(deployment))
		}
		pods, err := d.pods(ctx, deployment)
		if err != nil {
			return nil, err
		}
		sources = append(sources, pods...)
	}
	lease, err := d.client.CoordinationV1().Leases(d.namespace).Get(ctx, operatorName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return sources, nil
	case err != nil:
		return nil, err
	case !leaseIsOthers && held(lease, time.Now()):
		sources = append(sources, source{
			name:   fmt.Sprintf("an operator, %s, holds the Lease %s/%s", *lease.Spec.HolderIdentity, d.namespace, operatorName),
			remedy: "stop it, and wait until the lease has expired",
			ends:   true,
		})
	}
	return sources, nil
}

func (d *drainer) deployment(deployment *appsv1.Deployment) source {
	return source{
		name:   fmt.Sprintf("Deployment %s/%s serves the finalizer", deployment.Namespace, deployment.Name),
		remedy: fmt.Sprintf("kubectl -n %s scale deployment/%s --replicas=0", deployment.Namespace, deployment.Name),
		stop: func(ctx context.Context) error {
			_, err := d.client.AppsV1().Deployments(deployment.Namespace).Patch(ctx, deployment.Name,
				types.StrategicMergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
			return client.IgnoreNotFound(err)
		},
	}
}

// pods returns the Deployment's pods that have not ended.
func (d *drainer) pods(ctx context.Context, deployment *appsv1.Deployment) ([]source, error) {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, err
	}
	list, err := d.client.CoreV1().Pods(deployment.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	var sources []source
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			sources = append(sources, source{
				name:   fmt.Sprintf("Pod %s/%s has not ended", pod.Namespace, pod.Name),
				remedy: "wait until it has",
				ends:   true,
			})
		}
	}
	return sources, nil
}

// serves reads the Deployment's flags as the operator does. One whose flags are not
// understood might serve any finalizer.
func serves(deployment *appsv1.Deployment, finalizer string) bool {
	containers := deployment.Spec.Template.Spec.Containers
	manager := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "manager" })
	if manager < 0 {
		return true
	}
	parsed, err := managerflags.Parse(operatorName, containers[manager].Args)
	return err != nil || parsed.Controller.Finalizer == finalizer
}

// held reports whether somebody holds the lease. An operator that stops gives it up.
func held(lease *coordinationv1.Lease, now time.Time) bool {
	spec := &lease.Spec
	return ptr.Deref(spec.HolderIdentity, "") != "" && spec.RenewTime != nil &&
		now.Sub(spec.RenewTime.Time) <= time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0))*time.Second
}
