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

package integration_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

func TestInstallHasNoWarnings(t *testing.T) {
	for _, warning := range suite.warnings {
		t.Error(warning)
	}
}

// TestInstallAdmitsPods asks the API server for a pod as the Deployment makes it. The Deployment itself is admitted
// whatever its pods are like.
func TestInstallAdmitsPods(t *testing.T) {
	template := deployment(t).Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = harness.Namespace, "as-the-deployment-makes-it"

	var warnings harness.Warnings
	config := rest.CopyConfig(suite.cluster.Config())
	config.WarningHandlerWithContext = &warnings
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
	for _, warning := range warnings.Take() {
		t.Error(warning)
	}
}

func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	if err := suite.manifests.Decode("Deployment", &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// deploymentArgs returns the arguments that the Deployment gives the operator, except that it listens where the harness
// says, and what a pod has and a process lacks: the namespace it runs in.
func deploymentArgs(t *testing.T) []string {
	t.Helper()
	args := slices.Clone(deployment(t).Spec.Template.Spec.Containers[0].Args)
	args = slices.DeleteFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "--metrics-bind-address=") || strings.HasPrefix(arg, "--health-probe-bind-address=")
	})
	return append(args, "--leader-elect-resource-namespace="+harness.Namespace)
}
