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
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// TestDrain has a finalizer that nobody serves any more on claims of every kind, and more of them than a page of a list.
func TestDrain(t *testing.T) {
	e := newEnv(t)
	own := ownFinalizer(e)
	with := func(name string, finalizers ...string) *corev1.PersistentVolumeClaim {
		claim := harness.Claim(e.namespace, name)
		claim.Finalizers = finalizers
		e.create(claim)
		return claim
	}
	used, foreign := with("used", own), with("foreign", foreignFinalizer, own)
	guarded, held := with("guarded", own, harness.Finalizer), with("held", own)
	free, other := with("free", own), with("other", harness.Finalizer)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range 501 {
		group.Go(func() error {
			claim := harness.Claim(e.namespace, fmt.Sprintf("many-%d", i))
			claim.Finalizers = []string{own}
			return suite.admin.Create(t.Context(), claim)
		})
	}
	e.fatalIf(group.Wait())
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("used"), harness.WithClaim("guarded"), harness.WithClaim("held"))
	e.delete(guarded, held, free)

	before := versions(e)
	says(t, drain(e, 1, "--dry-run"), "would take the finalizer "+own+" off 505 claims", e.namespace+"/held", "pod web")
	if after := versions(e); !maps.Equal(before, after) {
		t.Error("a dry run has changed claims")
	}

	output := drain(e, 1)
	says(t, output, "took the finalizer "+own+" off 505 claims", "claim "+e.namespace+"/held keeps the finalizer", "pod web",
		"is still on 1 claim in deletion")
	e.fatalIf(e.hasFinalizer(t.Context(), held, own))
	e.gone(free)
	for claim, want := range map[*corev1.PersistentVolumeClaim][]string{
		used: nil, foreign: {foreignFinalizer}, guarded: {harness.Finalizer}, other: {harness.Finalizer},
	} {
		e.fatalIf(exists(t.Context(), claim, true))
		if !slices.Equal(claim.Finalizers, want) {
			t.Errorf("claim %s has the finalizers %q, want %q", claim.Name, claim.Finalizers, want)
		}
	}
	if after := versions(e); after["other"] != before["other"] {
		t.Error("a claim without the finalizer was written")
	}
	noneHas(e, own, "held")

	e.kill(pod)
	says(t, drain(e, 0), "off 1 claim\n")
	e.gone(held)
	noneHas(e, own)
	says(t, drain(e, 0), "off 0 claims\n")
	e.removeFinalizer(guarded, harness.Finalizer)
	e.removeFinalizer(foreign, foreignFinalizer)
}

// TestDrainRefuses has an operator that still serves the finalizer.
func TestDrainRefuses(t *testing.T) {
	e := newEnv(t)
	own := ownFinalizer(e)
	o := startOperator(t, harness.Options{Kubeconfig: suite.cluster.Kubeconfig(), Args: []string{
		"--finalizer=" + own, "--watch-namespaces=" + e.namespace,
		"--leader-elect", "--leader-elect-resource-namespace=" + e.namespace,
	}})
	claim := harness.Claim(e.namespace, "data")
	e.create(claim)
	e.eventually("the claim has to be protected", func(ctx context.Context) error { return e.hasFinalizer(ctx, claim, own) })

	says(t, drain(e, 1), "holds the Lease "+e.namespace+"/"+harness.Lease, "set --stop")
	deployment := deploymentOf(e, "--finalizer="+own)
	command := fmt.Sprintf("kubectl -n %s scale deployment/%s --replicas=0", e.namespace, deployment.Name)
	says(t, drain(e, 1), command)
	says(t, drain(e, 0, "--stop", "--dry-run"), command)
	if replicas := replicasOf(e, deployment); replicas != 1 {
		t.Errorf("the Deployment was scaled to %d", replicas)
	}
	e.fatalIf(e.hasFinalizer(t.Context(), claim, own))

	go stopWithDeployment(e, o, deployment)
	says(t, drain(e, 0, "--stop"), "off 1 claim\n")
	noneHas(e, own)
}

// TestDrainNoticesOthers has an operator where the drain does not look for it.
func TestDrainNoticesOthers(t *testing.T) {
	e := newEnv(t)
	own := ownFinalizer(e)
	startOperator(t, harness.Options{Args: []string{"--finalizer=" + own, "--watch-namespaces=" + e.namespace}})
	claim := harness.Claim(e.namespace, "data")
	e.create(claim)
	e.eventually("the claim has to be protected", func(ctx context.Context) error { return e.hasFinalizer(ctx, claim, own) })
	says(t, drain(e, 1), "somebody keeps putting the finalizer "+own+" on claims")
}

// TestDrainBesideOtherFinalizer has an operator that has moved on to another finalizer: its lease is no reason to wait.
func TestDrainBesideOtherFinalizer(t *testing.T) {
	e := newEnv(t)
	startOperator(t, harness.Options{Kubeconfig: suite.cluster.Kubeconfig(), Args: []string{
		"--finalizer=example.com/new", "--watch-namespaces=" + e.namespace,
		"--leader-elect", "--leader-elect-resource-namespace=" + e.namespace,
	}})
	deploymentOf(e, "--finalizer=example.com/new")
	claim := harness.Claim(e.namespace, "data")
	claim.Finalizers = []string{ownFinalizer(e)}
	e.create(claim)
	says(t, drain(e, 0), "off 1 claim\n")
	e.eventually("only the new finalizer has to be there", func(ctx context.Context) error {
		return e.hasFinalizer(ctx, claim, "example.com/new")
	})
	noneHas(e, ownFinalizer(e))
}

// TestDrainLosesRace has a claim that is deleted, and in use, after the drain has read it and before it writes.
func TestDrainLosesRace(t *testing.T) {
	e := newEnv(t)
	own := ownFinalizer(e)
	claim := harness.Claim(e.namespace, "data")
	claim.Finalizers = []string{own}
	e.create(claim)
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))

	h := newHold(func(r *http.Request) bool { return isPatchOf(r, "data") })
	proxy, err := harness.StartProxy(suite.cluster.Config(), h.before)
	e.fatalIf(err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	e.fatalIf(proxy.Kubeconfig(administrator(e), kubeconfig))
	t.Cleanup(func() {
		if err := proxy.Stop(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		<-h.arrived
		if err := suite.admin.Delete(e.Context(), claim.DeepCopy()); err != nil {
			t.Error(err)
		}
		close(h.letGo)
	}()
	says(t, drainAs(e, kubeconfig, 1), "claim "+e.namespace+"/data keeps the finalizer", "pod web")
	e.fatalIf(e.hasFinalizer(t.Context(), claim, own))
	e.kill(pod)
	drain(e, 0)
	e.gone(claim)
}

// ownFinalizer returns a finalizer that no other test has.
func ownFinalizer(e *env) string { return "example.com/" + e.namespace }

// drain runs the command as the administrator, checks its exit code and returns what it prints.
func drain(e *env, exitCode int, args ...string) string {
	e.Helper()
	return drainAs(e, suite.cluster.Kubeconfig(), exitCode, args...)
}

func drainAs(e *env, kubeconfig string, exitCode int, args ...string) string {
	e.Helper()
	return ends(e.T, exitCode, harness.Options{Args: append([]string{
		"drain-finalizers", "--kubeconfig=" + kubeconfig, "--finalizer=" + ownFinalizer(e), "--operator-namespace=" + e.namespace,
	}, args...)}).Output()
}

func says(t *testing.T, output string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(output, word) {
			t.Errorf("there is no %q in the output:\n%s", word, output)
		}
	}
}

// versions returns the resourceVersions of the test's claims.
func versions(e *env) map[string]string {
	e.Helper()
	var claims corev1.PersistentVolumeClaimList
	e.fatalIf(suite.admin.List(e.Context(), &claims, client.InNamespace(e.namespace)))
	versions := map[string]string{}
	for i := range claims.Items {
		versions[claims.Items[i].Name] = claims.Items[i].ResourceVersion
	}
	return versions
}

// noneHas checks that no claim of the cluster has the finalizer but those of these names.
func noneHas(e *env, finalizer string, but ...string) {
	e.Helper()
	var claims corev1.PersistentVolumeClaimList
	e.fatalIf(suite.admin.List(e.Context(), &claims))
	for i := range claims.Items {
		if claim := &claims.Items[i]; slices.Contains(claim.Finalizers, finalizer) && !slices.Contains(but, claim.Name) {
			e.Errorf("claim %s/%s still has the finalizer %s", claim.Namespace, claim.Name, finalizer)
		}
	}
}

// deploymentOf creates what config makes of the operator, in the test's namespace and with these arguments.
func deploymentOf(e *env, args ...string) *appsv1.Deployment {
	e.Helper()
	d := deployment(e.T)
	d.Namespace, d.Spec.Replicas = e.namespace, new(int32(1))
	d.Spec.Template.Spec.Containers[0].Args = args
	e.create(d)
	return d
}

func replicasOf(e *env, deployment *appsv1.Deployment) int32 {
	e.Helper()
	var current appsv1.Deployment
	e.fatalIf(suite.admin.Get(e.Context(), client.ObjectKeyFromObject(deployment), &current))
	return *current.Spec.Replicas
}

// stopWithDeployment is the operator's kubelet: it stops the process once the Deployment wants no pod.
func stopWithDeployment(e *env, o *harness.Operator, deployment *appsv1.Deployment) {
	err := harness.Eventually(e.Context(), patience, func(ctx context.Context) error {
		var current appsv1.Deployment
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(deployment), &current); err != nil {
			return err
		}
		if *current.Spec.Replicas > 0 {
			return fmt.Errorf("the Deployment wants %d pods", *current.Spec.Replicas)
		}
		return nil
	})
	if err == nil {
		err = o.Stop(e.Context())
	}
	if err != nil {
		e.Error(err)
	}
}

// administrator returns the path of a kubeconfig of somebody who may do everything, and has a token.
func administrator(e *env) string {
	e.Helper()
	account := e.serviceAccount("administrator")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "administrator-of-" + e.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	e.create(binding)
	e.Cleanup(func() {
		if err := suite.admin.Delete(context.WithoutCancel(e.Context()), binding); err != nil {
			e.Error(err)
		}
	})
	return e.accountKubeconfig(account.Name)
}
