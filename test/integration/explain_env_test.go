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
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"pvc-protection-operator/internal/cli"
	"pvc-protection-operator/internal/explain"
	"pvc-protection-operator/test/harness"
)

// answer is what the plugin has printed, and its exit code.
type answer struct {
	out, errors string
	code        int
}

// view runs the plugin in the test's namespace, as a user who may view it.
func (e *env) view(command string, args ...string) answer {
	e.Helper()
	const viewer = "viewer"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: viewer}}

	if suite.admin.Get(e.Context(), client.ObjectKeyFromObject(account), account) != nil {
		// The rules of the ClusterRole view, which it has from this one by a controller that does not run here.
		e.bind(e.serviceAccount(viewer), "system:aggregate-to-view")
		e.eventually("the viewer has to be allowed to view", func(context.Context) error {
			if a := plugin(e, e.accountKubeconfig(viewer), "list"); a.code != exitOK {
				return errors.New(a.errors)
			}
			return nil
		})
	}
	return plugin(e, e.accountKubeconfig(viewer), command, args...)
}

// plugin runs the plugin in the test's namespace.
func plugin(e *env, kubeconfig, command string, args ...string) answer {
	e.Helper()
	return execute(e, append([]string{command, "--kubeconfig", kubeconfig, "--namespace", e.namespace}, args...)...)
}

func execute(e *env, args ...string) answer {
	e.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := cli.Execute(e.Context(), append([]string{"kubectl-pvc_protection"}, args...), streams)
	return answer{out.String(), errOut.String(), code}
}

// mustBe checks the exit code, and that the words are printed in this order.
func (a answer) mustBe(e *env, code int, words ...string) {
	e.Helper()
	rest := a.out
	for _, word := range words {
		_, after, found := strings.Cut(rest, word)
		if !found {
			e.Errorf("%q is missing, or not where it should be, in\n%s", word, a.out)
			break
		}
		rest = after
	}
	if a.code != code {
		e.Errorf("the exit code is %d, want %d; errors: %s", a.code, code, a.errors)
	}
}

// report reads what was printed as JSON, or as YAML, which includes that.
func (a answer) report(e *env) *explain.Report {
	e.Helper()
	var report explain.Report
	if err := yaml.UnmarshalStrict([]byte(a.out), &report); err != nil || len(report.Items) == 0 && a.code != exitOK {
		e.Fatalf("exit code %d, error %v in what was printed:\n%s\nerrors: %s", a.code, err, a.out, a.errors)
	}
	return &report
}

// oldClaim creates a claim as it may be from before a test, and takes it away after the test: others count what is
// blocked.
func (e *env) oldClaim(name string, finalizers ...string) {
	e.Helper()
	claim := harness.Claim(e.namespace, name)
	claim.Finalizers = finalizers
	e.create(claim)
	e.Cleanup(func() {
		ctx := context.WithoutCancel(e.Context())
		e.fatalIf(client.IgnoreNotFound(suite.admin.Delete(ctx, claim.DeepCopy())))
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		e.fatalIf(client.IgnoreNotFound(suite.admin.Patch(ctx, claim.DeepCopy(), none)))
	})
}

func (e *env) deleteClaim(names ...string) {
	e.Helper()
	for _, name := range names {
		e.delete(harness.Claim(e.namespace, name))
	}
}

func (e *env) labelClaim(name, key, value string) {
	e.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value))
	e.fatalIf(suite.admin.Patch(e.Context(), harness.Claim(e.namespace, name), patch))
}

// ownedBy makes an object of a kind of apps or batch the controller.
func ownedBy(owner metav1.Object, kind string) func(*metav1.ObjectMeta) {
	return func(meta *metav1.ObjectMeta) {
		group := appsv1.SchemeGroupVersion
		if kind == "Job" {
			group = batchv1.SchemeGroupVersion
		}
		meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, group.WithKind(kind))}
	}
}

func podOwnedBy(owner metav1.Object, kind string) harness.PodOption {
	return func(pod *corev1.Pod) { ownedBy(owner, kind)(&pod.ObjectMeta) }
}
