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

package prometheus_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

const (
	// patience is how long something that has to happen may take. What takes longest is that the range of a rule passes.
	patience = 30*time.Minute/haste + 2*time.Minute

	node = "node-a"

	claims = "persistentvolumeclaims"
	pods   = "pods"
)

// env is a test with namespaces of its own, and two replicas of the operator that work there, behind one proxy.
type env struct {
	*testing.T
	*live
	proxy *faultproxy.Proxy
	// job is the label of what the replicas report.
	job        string
	namespaces []string
}

// newEnv makes as many namespaces, and starts the replicas with the arguments. It returns when one of them leads and
// both are scraped.
func newEnv(t *testing.T, l *live, namespaces int, args ...string) *env {
	t.Helper()
	e := &env{T: t, live: l}
	for range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "prometheus-"}}
		e.create(namespace)
		e.namespaces = append(e.namespaces, namespace.Name)
	}
	e.job = e.namespaces[0]
	e.allowElection()

	// Cleanups need it for longer than the test's context lasts.
	proxy, err := faultproxy.New(context.WithoutCancel(t.Context()), l.cluster.Config())
	e.fatalIf(err)
	e.proxy = proxy
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	replicas := []*harness.Operator{e.start(args...), e.start(args...)}
	e.fatalIf(l.prometheus.scrape(e.job, replicas...))
	e.eventually(`count(up{job=%q} == 1) == 2`)
	e.eventually(`sum(leader_election_master_status{job=%q}) == 1`)
	return e
}

// allowElection gives the operator the role for its election in the test's first namespace.
func (e *env) allowElection() {
	e.Helper()
	var shipped rbacv1.Role
	e.fatalIf(e.manifests.Decode("Role", &shipped))
	meta := metav1.ObjectMeta{Namespace: e.namespaces[0], Name: shipped.Name}
	e.create(&rbacv1.Role{ObjectMeta: meta, Rules: shipped.Rules})
	e.create(&rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: shipped.Name},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: harness.Namespace, Name: harness.ServiceAccount,
		}},
	})
}

// start starts a replica, which serves its metrics as the Deployment has it, and waits until it is ready.
func (e *env) start(args ...string) *harness.Operator {
	e.Helper()
	behindProxy := filepath.Join(e.TempDir(), "kubeconfig")
	e.fatalIf(e.proxy.WriteKubeconfig(e.kubeconfig, behindProxy))
	o, err := harness.Start(harness.Options{
		Binary:     e.binary,
		Kubeconfig: behindProxy,
		Args: append([]string{
			"--metrics-secure=true",
			"--watch-namespaces=" + strings.Join(e.namespaces, ","),
			"--leader-elect", "--leader-elect-resource-namespace=" + e.namespaces[0],
		}, args...),
	})
	e.fatalIf(err)
	e.Cleanup(func() {
		if e.Failed() {
			const most = 8 << 10
			output := o.Output()
			e.Logf("the operator's output ends with:\n%s", output[max(0, len(output)-most):])
		}
		if err := o.Kill(); err != nil {
			e.Error(err)
		}
	})
	e.fatalIf(o.WaitReady(e.Context()))
	return o
}

func (e *env) fatalIf(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// eventually waits until the expression, in which %q stands for the job, has a value.
func (e *env) eventually(expr string) {
	e.Helper()
	e.wait(fmt.Sprintf(expr, e.job), true)
}

// fires waits until the alert fires for the job, resolves until it does not any more. Other labels may be given.
func (e *env) fires(alert string, labels ...string) {
	e.Helper()
	e.wait(e.firing(alert, labels), true)
}

func (e *env) resolves(alert string, labels ...string) {
	e.Helper()
	e.wait(e.firing(alert, labels), false)
}

func (e *env) firing(alert string, labels []string) string {
	labels = append([]string{fmt.Sprintf("alertname=%q, alertstate=\"firing\", job=%q", alert, e.job)}, labels...)
	return "ALERTS{" + strings.Join(labels, ", ") + "}"
}

func (e *env) wait(expr string, want bool) {
	e.Helper()
	err := harness.Eventually(e.Context(), patience, func(ctx context.Context) error {
		samples, err := e.prometheus.query(ctx, expr)
		if err == nil && len(samples) > 0 != want {
			err = fmt.Errorf("%s has the value %v", expr, samples)
		}
		return err
	})
	e.fatalIf(err)
}

// patches selects the patches of claims, liveLists the live lists: the caches begin with watches.
var (
	patches   = faultproxy.Match{Verb: "patch", Resource: claims}
	liveLists = faultproxy.Match{Verb: "list", Resource: pods}
)

func (e *env) create(object client.Object) {
	e.Helper()
	e.fatalIf(e.admin.Create(e.Context(), object))
}

// claim creates a claim in the namespace. It is protected from the beginning.
func (e *env) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	e.Helper()
	claim := harness.Claim(namespace, name)
	e.create(claim)
	return claim
}

// usedClaim creates a claim in the namespace and a scheduled pod that uses it.
func (e *env) usedClaim(namespace, name string) (*corev1.PersistentVolumeClaim, *corev1.Pod) {
	e.Helper()
	claim := e.claim(namespace, name)
	pod := harness.Pod(namespace, "user-of-"+name, harness.OnNode(node), harness.WithClaim(name))
	e.create(pod)
	return claim, pod
}

// delete asks for the deletion of the object.
func (e *env) delete(object client.Object) {
	e.Helper()
	e.fatalIf(e.admin.Delete(e.Context(), object))
}

// kill deletes the pod at once, as a kubelet does when it has ended.
func (e *env) kill(pod *corev1.Pod) {
	e.Helper()
	e.fatalIf(e.admin.Delete(e.Context(), pod, client.GracePeriodSeconds(0)))
}

// unprotect takes the finalizer off the claim.
func (e *env) unprotect(claim *corev1.PersistentVolumeClaim) {
	e.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"$deleteFromPrimitiveList/finalizers":[%q]}}`, harness.Finalizer)
	e.fatalIf(e.admin.Patch(e.Context(), claim, client.RawPatch(types.StrategicMergePatchType, patch)))
}
