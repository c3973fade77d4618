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
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

// besideFinalizer is the name in config/components/own-finalizer.
const besideFinalizer = "pvc-protection.io/in-use"

// mode is a way to install the operator: an overlay and the components that a user adds to it.
type mode struct {
	overlay    string
	components []string
	// namespace is where claims are protected. Empty means everywhere.
	namespace string
	finalizer string
	// admission says that claims have the finalizer from their first moment.
	admission bool
	// drain takes the finalizer off the claims before the uninstallation.
	drain func(*env, *mode, harness.Manifests, *harness.Operator)
}

func (m *mode) name() string { return strings.Join(append([]string{m.overlay}, m.components...), "+") }

// admits checks what becomes of claims that are created. The operator may have a hand in none of that: a claim in the
// answer of the API server is as it was stored first.
func admits(e *env, finalizer string) {
	e.Helper()
	e.eventually("the admission policy has to work", func(ctx context.Context) error {
		claim := harness.Claim(e.namespace, "dry")
		if err := suite.admin.Create(ctx, claim, client.DryRunAll); err != nil {
			return err
		}
		if !slices.Contains(claim.Finalizers, finalizer) {
			return fmt.Errorf("the finalizers are %q", claim.Finalizers)
		}
		return nil
	})
	for name, finalizers := range map[string][]string{
		"plain": nil, "own": {finalizer}, "foreign": {foreignFinalizer}, "both": {foreignFinalizer, finalizer},
	} {
		claim := harness.Claim(e.namespace, "")
		claim.GenerateName, claim.Finalizers = name+"-", slices.Clone(finalizers)
		e.create(claim)
		want := slices.Sorted(slices.Values(append(finalizers, finalizer, harness.Finalizer)))
		if got := slices.Sorted(slices.Values(claim.Finalizers)); !slices.Equal(got, slices.Compact(want)) {
			e.Errorf("a claim with the finalizers %q was created with %q", finalizers, got)
		}
		if slices.Contains(finalizers, foreignFinalizer) {
			e.removeFinalizer(claim, foreignFinalizer)
		}
	}
}

// installMode installs as a user does, and returns what is there then.
func installMode(e *env, m *mode) harness.Manifests {
	e.Helper()
	dir := writeMode(e, m)
	manifests, err := render(dir)
	e.fatalIf(err)
	serveKinds(e, manifests)
	kubectl(e, "apply", "-k", dir)
	if withoutPermission() {
		_, err := harness.Apply(e.Context(), suite.cluster.Config(), manifests)
		e.fatalIf(err)
	}
	return manifests
}

// renderMode returns what installMode installs.
func renderMode(e *env, m *mode) harness.Manifests {
	e.Helper()
	manifests, err := render(writeMode(e, m))
	e.fatalIf(err)
	return manifests
}

// writeMode writes a kustomization of the user's own that names an overlay and components, and returns its folder.
func writeMode(e *env, m *mode) string {
	e.Helper()
	root, err := harness.ModuleDir(e.Context())
	e.fatalIf(err)
	config := filepath.Join(e.TempDir(), "config")
	e.fatalIf(os.CopyFS(config, os.DirFS(filepath.Join(root, "config"))))
	mine := filepath.Join(config, "overlays", "mine")
	e.fatalIf(os.Mkdir(mine, 0o700))
	kustomization := "resources: [../" + m.overlay + "]\ncomponents:\n"
	for _, component := range m.components {
		kustomization += "- ../../components/" + component + "\n"
	}
	e.fatalIf(os.WriteFile(filepath.Join(mine, "kustomization.yaml"), []byte(kustomization), 0o600))
	return mine
}

// startMode starts the operator as the Deployment does, and as its ServiceAccount.
func startMode(e *env, manifests harness.Manifests) *harness.Operator {
	e.Helper()
	e.eventually("the permissions have to be known", func(context.Context) error { return mayPatch(e, e.namespace, "") })
	kubeconfig, err := suite.cluster.ServiceAccountKubeconfig(e.Context(), harness.Namespace, harness.ServiceAccount)
	e.fatalIf(err)
	var d appsv1.Deployment
	e.fatalIf(manifests.Decode("Deployment", &d))
	args := slices.DeleteFunc(d.Spec.Template.Spec.Containers[0].Args, func(arg string) bool {
		// What a pod has, and a process lacks.
		return strings.HasPrefix(arg, "--metrics-") || strings.HasPrefix(arg, "--health-probe-bind-address=")
	})
	return startOperator(e.T, harness.Options{
		Kubeconfig: kubeconfig,
		Args:       append(args, "--leader-elect-resource-namespace="+harness.Namespace),
	})
}

// mayPatch returns an error if the operator may not patch claims in the namespace, or the subresource of claims.
func mayPatch(e *env, namespace, subresource string) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: harness.Username,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "patch", Resource: "persistentvolumeclaims", Subresource: subresource,
		},
	}}
	if err := suite.admin.Create(e.Context(), review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("the operator may not patch claims in namespace %s: %s", namespace, review.Status.Reason)
	}
	return nil
}

// drainFromHost is what "make undeploy" does.
func drainFromHost(e *env, m *mode, manifests harness.Manifests, o *harness.Operator) {
	e.Helper()
	var d appsv1.Deployment
	e.fatalIf(manifests.Decode("Deployment", &d))
	go stopWithDeployment(e, o, &d)
	ends(e.T, 0, harness.Options{Args: []string{
		"drain-finalizers", "--kubeconfig=" + suite.cluster.Kubeconfig(), "--finalizer=" + m.finalizer, "--stop",
	}})
}

// drainInCluster applies the overlay drain, or adds the component of that name to one of the user's own, and runs the
// Job, as the Job's ServiceAccount.
func drainInCluster(e *env, m *mode, _ harness.Manifests, o *harness.Operator) {
	e.Helper()
	drain := &mode{overlay: "drain"}
	if len(m.components) > 0 {
		drain = &mode{overlay: m.overlay, components: append(slices.Clone(m.components), "drain")}
	}
	manifests := installMode(e, drain)
	var d appsv1.Deployment
	e.fatalIf(manifests.Decode("Deployment", &d))
	stopWithDeployment(e, o, &d)
	var job batchv1.Job
	e.fatalIf(manifests.Decode("Job", &job))
	template := job.Spec.Template.Spec
	if image := d.Spec.Template.Spec.Containers[0].Image; template.Containers[0].Image != image {
		e.Errorf("the Job's image is %s, the Deployment's %s", template.Containers[0].Image, image)
	}
	kubeconfig, err := suite.cluster.ServiceAccountKubeconfig(e.Context(), harness.Namespace, template.ServiceAccountName)
	e.fatalIf(err)
	ends(e.T, 0, harness.Options{Args: append(template.Containers[0].Args, "--kubeconfig="+kubeconfig)})
	uninstall(e, slices.DeleteFunc(manifests, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == "Namespace" // it goes with the rest of the installation
	}))
}

// uninstall does what "kubectl delete --ignore-not-found" does, and waits until nothing is left.
func uninstall(e *env, manifests harness.Manifests) {
	e.Helper()
	for _, object := range slices.Backward(manifests) {
		e.fatalIf(client.IgnoreNotFound(suite.admin.Delete(e.Context(), object.DeepCopy())))
	}
	for _, object := range manifests {
		e.eventually(object.GetKind()+" "+object.GetName()+" has to go", func(ctx context.Context) error {
			err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
			if err == nil {
				return fmt.Errorf("it is still there")
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// onCluster gives the test a cluster with these controllers, in the place of the suite's until the test ends.
func onCluster(t *testing.T, controllers string) {
	t.Helper()
	binaries := filepath.Dir(suite.cluster.Kubectl())
	if _, err := os.Stat(filepath.Join(binaries, string(cluster.ControllerManager))); err != nil {
		t.Skip("there is no kube-controller-manager of this version: ", err)
	}
	c, err := cluster.Start(t.Context(), cluster.Options{
		BinDir:                 binaries,
		ControllerManager:      true,
		ControllerManagerFlags: cluster.Flags{"controllers": controllers},
		Audit:                  cluster.AuditNone,
	})
	if err != nil {
		t.Fatal(err)
	}
	before := suite
	t.Cleanup(func() {
		suite = before
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	suite.cluster = c
	if suite.admin, err = client.New(c.Config(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	// Pods on nodes that do not exist are collected.
	if err := suite.admin.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}); err != nil {
		t.Fatal(err)
	}
}

func servesPolicies(t *testing.T) bool {
	t.Helper()
	_, err := suite.admin.RESTMapper().RESTMapping(
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}, "v1")
	if err != nil && !meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	return err == nil
}
