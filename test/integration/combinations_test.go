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
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// TestCombinationsAreTested makes sure that TestReplace and TestBeside install every pair of choices at least once:
// an overlay with and without each component, and of each two components both, either and none.
func TestCombinationsAreTested(t *testing.T) {
	type choice struct {
		name  string
		taken bool
	}
	choices := func(m *mode, components []string) []choice {
		made := []choice{{m.overlay, true}}
		for _, component := range components {
			made = append(made, choice{component, slices.Contains(m.components, component)})
		}
		return made
	}
	components := components(t)
	tested := map[[2]choice]bool{}
	for _, m := range slices.Concat(replaceModes, besideModes) {
		made := choices(&m, components)
		for i, one := range made {
			for _, other := range made[i+1:] {
				tested[[2]choice{one, other}] = true
			}
		}
	}
	check := func(one, other choice) {
		t.Helper()
		if !tested[[2]choice{one, other}] {
			t.Errorf("no test installs %s: %t together with %s: %t", one.name, one.taken, other.name, other.taken)
		}
	}
	for i, component := range components {
		for _, taken := range []bool{false, true} {
			for _, overlay := range []string{"replace", "beside", "beside-without-admission"} {
				check(choice{overlay, true}, choice{component, taken})
			}
			for _, other := range components[i+1:] {
				check(choice{component, taken}, choice{other, false})
				check(choice{component, taken}, choice{other, true})
			}
		}
	}
}

// components returns the options: what is in config/components, less what overlays are made of.
func components(t *testing.T) []string {
	t.Helper()
	root, err := harness.ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(root, "config", "components"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if !slices.Contains([]string{"own-finalizer", "drain"}, entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// kubectl runs kubectl as an administrator. It has to succeed, and may not complain: the API server's warnings are on its
// standard error.
func kubectl(e *env, args ...string) {
	e.Helper()
	cmd := exec.CommandContext(e.Context(), suite.cluster.Kubectl(), append(args, "--kubeconfig="+suite.cluster.Kubeconfig())...)
	cmd.Env = append(os.Environ(), "HOME="+e.TempDir()) // where it keeps what it knows about the API server
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		e.Fatalf("kubectl %q: %v\n%s", args, err, stderr.String())
	}
}

// serveKinds makes the API server know those kinds of the manifests that come with other software.
func serveKinds(e *env, manifests harness.Manifests) {
	e.Helper()
	for _, object := range manifests {
		kind := object.GroupVersionKind()
		if !slices.Contains([]string{"cert-manager.io", "monitoring.coreos.com"}, kind.Group) {
			continue
		}
		plural := strings.ToLower(kind.Kind) + "s"
		err := suite.admin.Create(e.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1",
			"kind":       "CustomResourceDefinition",
			"metadata":   map[string]any{"name": plural + "." + kind.Group},
			"spec": map[string]any{
				"group": kind.Group,
				"scope": "Namespaced",
				"names": map[string]any{"kind": kind.Kind, "plural": plural},
				"versions": []any{map[string]any{
					"name": kind.Version, "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{
						"type": "object", "x-kubernetes-preserve-unknown-fields": true,
					}},
				}},
			},
		}})
		if !apierrors.IsAlreadyExists(err) {
			e.fatalIf(err)
		}
		e.eventually("the API server has to serve "+kind.Kind, func(ctx context.Context) error {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			return suite.admin.List(ctx, list)
		})
	}
}

// nothingLeft checks that the cluster has nothing of the operator's any more, of whatever kind.
func nothingLeft(e *env) {
	e.Helper()
	const ours = "pvc-protection-operator"
	known, err := discovery.NewDiscoveryClientForConfig(suite.cluster.Config())
	e.fatalIf(err)
	lists, err := known.ServerPreferredResources()
	e.fatalIf(err)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		e.fatalIf(err)
		for _, resource := range list.APIResources {
			objects := &metav1.PartialObjectMetadataList{}
			objects.SetGroupVersionKind(version.WithKind(resource.Kind))
			e.fatalIf(suite.admin.List(e.Context(), objects))
			for _, object := range objects.Items {
				if strings.Contains(object.Name, ours) || object.Labels["app.kubernetes.io/name"] == ours {
					e.Errorf("%s %s is left", resource.Kind, client.ObjectKeyFromObject(&object))
				}
			}
		}
	}
}
