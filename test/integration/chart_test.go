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
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// release is the name under which the chart's objects are called as those of config/default.
const release = "pvc-protection-operator"

// TestChartRenders compares the chart with the overlay and the components that its values stand for.
func TestChartRenders(t *testing.T) {
	needsHelm(t)
	for name, test := range map[string]struct {
		set  []string
		mode mode
	}{
		"default": {mode: mode{overlay: "replace"}},
		"beside":  {set: []string{"finalizer=" + besideFinalizer}, mode: mode{overlay: "beside"}},
		"without admission": {
			set:  []string{"finalizer=" + besideFinalizer, "admissionPolicy.enabled=false"},
			mode: mode{overlay: "beside-without-admission"},
		},
		"single replica": {
			set:  []string{"manager.replicas=1"},
			mode: mode{overlay: "replace", components: []string{"single-replica"}},
		},
		"monitored": {
			set:  []string{"prometheus.enabled=true", "networkPolicy.enabled=true"},
			mode: mode{overlay: "replace", components: []string{"network-policy", "prometheus"}},
		},
		"certificate": {
			set:  []string{"prometheus.enabled=true", "certManager.enabled=true"},
			mode: mode{overlay: "replace", components: []string{"prometheus", "metrics-certificate"}},
		},
		"namespaced": {
			// But for the permissions: the chart grants them everywhere.
			set:  []string{"finalizer=" + besideFinalizer, "watchNamespaces={team-a,team-b}"},
			mode: mode{overlay: "beside", components: []string{"namespaced"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &env{T: t}
			got := essentials(template(e, test.set...))
			want := essentials(renderMode(e, &test.mode))
			if name == "namespaced" {
				for _, objects := range []map[string]any{got, want} {
					for key := range objects {
						if strings.Contains(key, "RoleBinding") {
							delete(objects, key)
						}
					}
				}
			}
			if diff := diff.Diff(want, got); diff != "" {
				t.Errorf("kustomize -, the chart +:\n%s", diff)
			}
		})
	}
}

// TestChartKeepsFinalizer has a user with arguments of the manager's own.
func TestChartKeepsFinalizer(t *testing.T) {
	needsHelm(t)
	manifests := template(&env{T: t}, "finalizer="+besideFinalizer, "manager.args={--batch-window=1s}")
	var d appsv1.Deployment
	if err := manifests.Decode("Deployment", &d); err != nil {
		t.Fatal(err)
	}
	args := d.Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--finalizer=" + besideFinalizer, "--batch-window=1s"} {
		if !slices.Contains(args, want) {
			t.Errorf("the arguments are %q, without %s", args, want)
		}
	}
}

// TestChart installs the operator with helm, works with it, and uninstalls it.
func TestChart(t *testing.T) {
	needsHelm(t)
	for name, test := range map[string]struct {
		controllers string
		set         []string
		mode        mode
	}{
		"replace": {
			controllers: "*,-persistentvolumeclaim-protection-controller",
			mode:        mode{finalizer: harness.Finalizer},
		},
		"beside": {
			controllers: "*",
			set:         []string{"finalizer=" + besideFinalizer},
			mode:        mode{finalizer: besideFinalizer, drain: drainFromHost},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onCluster(t, test.controllers)
			if test.mode.finalizer == besideFinalizer && !servesPolicies(t) {
				t.Skip("the API server has no MutatingAdmissionPolicies v1")
			}
			e := newEnv(t)
			helm(e, append([]string{"install", "--create-namespace"}, chartArgs(e, test.set)...)...)
			manifests := template(e, test.set...)
			o := startMode(e, manifests)

			admits(e, test.mode.finalizer)
			claim := harness.Claim(e.namespace, "data")
			e.create(claim)
			e.eventually("the default ServiceAccount has to be there", func(ctx context.Context) error {
				return suite.admin.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "default"}, &corev1.ServiceAccount{})
			})
			pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
			e.delete(claim)
			e.saysBlocked(claim, "web")
			e.fatalIf(e.hasFinalizer(t.Context(), claim, test.mode.finalizer))
			e.kill(pod)
			e.gone(claim)

			if test.mode.drain != nil {
				test.mode.drain(e, &test.mode, manifests, o)
				noneHas(e, test.mode.finalizer)
			}
			helm(e, "uninstall", release, "--namespace="+harness.Namespace)
			uninstall(e, manifests) // finds nothing, and waits until it is so
			e.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.Namespace}})
		})
	}
}

// needsHelm skips the test unless "make test-chart" runs it: helm is large, and "make test" does without.
func needsHelm(t *testing.T) {
	t.Helper()
	if os.Getenv("HELM") == "" {
		t.Skip(`HELM does not say where helm is: "make test-chart" does`)
	}
}

// chartArgs are a release's name, the chart, its namespace and its values.
func chartArgs(e *env, set []string) []string {
	e.Helper()
	root, err := harness.ModuleDir(e.Context())
	e.fatalIf(err)
	args := []string{release, filepath.Join(root, "config", "helm", "chart"), "--namespace=" + harness.Namespace}
	for _, value := range append(set, "manager.image.tag=latest") {
		args = append(args, "--set", value)
	}
	return args
}

// template returns what helm makes of the chart.
func template(e *env, set ...string) harness.Manifests {
	e.Helper()
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(helm(e, append([]string{"template"}, chartArgs(e, set)...)...)))
	var manifests harness.Manifests
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return manifests
		}
		e.fatalIf(err)
		manifests = append(manifests, object)
	}
}

// helm runs helm, which has to succeed and may not complain: the API server's warnings are on its standard error.
func helm(e *env, args ...string) []byte {
	e.Helper()
	home := e.TempDir()
	cmd := exec.CommandContext(e.Context(), os.Getenv("HELM"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.cluster.Kubeconfig(),
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		e.Fatalf("helm %s: %v\n%s", args[0], err, stderr.String())
	}
	return stdout.Bytes()
}

// essentials returns the objects by kind and name, without what helm and kustomize mean to differ in.
func essentials(manifests harness.Manifests) map[string]any {
	objects := map[string]any{}
	for _, object := range manifests {
		if object.GetKind() == "Namespace" {
			continue // helm does not install the one that it installs into
		}
		content := object.DeepCopy().Object
		for _, path := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
			for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"} {
				unstructured.RemoveNestedField(content, append(path, label)...)
			}
		}
		withoutEmpty(content)
		switch object.GetKind() {
		case "Deployment":
			spec, _, _ := unstructured.NestedMap(content, "spec", "template", "spec")
			container := spec["containers"].([]any)[0].(map[string]any)
			args, _, _ := unstructured.NestedStringSlice(container, "args")
			slices.Sort(args)
			args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--finalizer="+harness.Finalizer })
			container["args"] = args
			content["spec"].(map[string]any)["template"].(map[string]any)["spec"] = spec
		case "ServiceMonitor":
			// Who is not verified needs no name.
			tls := content["spec"].(map[string]any)["endpoints"].([]any)[0].(map[string]any)["tlsConfig"].(map[string]any)
			if tls["insecureSkipVerify"] == true {
				delete(tls, "serverName")
			} else {
				delete(tls, "insecureSkipVerify")
			}
		}
		objects[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = content
	}
	return objects
}

// withoutEmpty takes out nulls and empty lists.
func withoutEmpty(content map[string]any) {
	for key, value := range content {
		switch value := value.(type) {
		case nil:
			delete(content, key)
		case map[string]any:
			withoutEmpty(value)
		case []any:
			if len(value) == 0 {
				delete(content, key)
			}
			for _, item := range value {
				if item, ok := item.(map[string]any); ok {
					withoutEmpty(item)
				}
			}
		}
	}
}
