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

package faultproxy_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/faultproxy"
)

const account = "tester"

var configMaps = faultproxy.Match{Resource: "configmaps"}

// TestCluster has one cluster, and an account that may do nothing but read ConfigMaps, for all of its subtests.
func TestCluster(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir(), Log: t.Output()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	admin, err := kubernetes.NewForConfig(c.Config())
	must(t, err)
	kubeconfig := createAccount(t, c, admin)

	for name, contentType := range map[string]string{
		"JSON":     "application/json",
		"protobuf": "application/vnd.kubernetes.protobuf",
	} {
		t.Run(name, func(t *testing.T) {
			newEnv := func(t *testing.T) *env {
				t.Helper()
				return newEnv(t, c, admin, kubeconfig, contentType)
			}
			t.Run("identity", func(t *testing.T) { testIdentity(t, newEnv(t)) })
			t.Run("pages", func(t *testing.T) { testPages(t, newEnv(t)) })
			t.Run("events held back", func(t *testing.T) { testHeldInformer(t, newEnv(t)) })
			t.Run("initial events held back", func(t *testing.T) { testHeldSync(t, newEnv(t)) })
			t.Run("watch expired", func(t *testing.T) { testExpiredInformer(t, newEnv(t)) })
			t.Run("watch ended", func(t *testing.T) { testEndedInformer(t, newEnv(t)) })
		})
	}
}

func createAccount(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) (kubeconfig string) {
	t.Helper()
	ctx := testContext(t)
	object := metav1.ObjectMeta{Name: account}
	_, err := admin.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: object},
		metav1.CreateOptions{})
	must(t, err)
	_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: object, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
	}}, metav1.CreateOptions{})
	must(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: object,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: "default"}},
	}, metav1.CreateOptions{})
	must(t, err)
	kubeconfig, err = c.ServiceAccountKubeconfig(ctx, "default", account)
	must(t, err)
	return kubeconfig
}

// env is a namespace, in which the administrator creates ConfigMaps and a client of a proxy sees them.
type env struct {
	t         *testing.T
	ctx       context.Context
	proxy     *faultproxy.Proxy
	config    *rest.Config
	client    kubernetes.Interface
	admin     kubernetes.Interface
	namespace string
}

func newEnv(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface, kubeconfig, contentType string) *env {
	t.Helper()
	e := &env{t: t, ctx: testContext(t), admin: admin}
	namespace, err := admin.CoreV1().Namespaces().Create(e.ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	must(t, err)
	e.namespace = namespace.Name

	// The proxy gets an administrator's configuration, of which it must make no use.
	e.proxy, err = faultproxy.New(t.Context(), c.Config())
	must(t, err)
	t.Cleanup(func() { must(t, e.proxy.Close()) })
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, e.proxy.WriteKubeconfig(kubeconfig, path))
	e.config, err = clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	e.config.ContentType = contentType
	e.client, err = kubernetes.NewForConfig(e.config)
	must(t, err)
	return e
}

func (e *env) create(names ...string) {
	e.t.Helper()
	for _, name := range names {
		_, err := e.admin.CoreV1().ConfigMaps(e.namespace).Create(e.ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(e.t, err)
	}
}

func (e *env) update(name string) {
	e.t.Helper()
	_, err := e.admin.CoreV1().ConfigMaps(e.namespace).Update(e.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": "value"},
	}, metav1.UpdateOptions{})
	must(e.t, err)
}

func (e *env) delete(name string) {
	e.t.Helper()
	must(e.t, e.admin.CoreV1().ConfigMaps(e.namespace).Delete(e.ctx, name, metav1.DeleteOptions{}))
}

func testIdentity(t *testing.T, e *env) {
	review, err := e.client.AuthenticationV1().SelfSubjectReviews().Create(e.ctx,
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:default:"+account; got != want {
		t.Errorf("the user is %q, want %q", got, want)
	}
	if _, err := e.client.CoreV1().ConfigMaps(e.namespace).List(e.ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("what is allowed: %v", err)
	}
	if _, err := e.client.CoreV1().Secrets(e.namespace).List(e.ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("what is forbidden: %v", err)
	}
}

func testPages(t *testing.T, e *env) {
	e.create("a", "b", "c")
	options := metav1.ListOptions{Limit: 2}
	match := faultproxy.Match{Verb: "list", Resource: "configmaps", Page: faultproxy.LaterPage}
	rule := e.proxy.Add(faultproxy.Rule{Match: match, Times: 1, Fault: faultproxy.Cut(20)})
	page, err := e.client.CoreV1().ConfigMaps(e.namespace).List(e.ctx, options)
	must(t, err)
	options.Continue = page.Continue
	if _, err := e.client.CoreV1().ConfigMaps(e.namespace).List(e.ctx, options); err == nil {
		t.Error("the second page is whole")
	}
	must(t, rule.Wait(e.ctx, 1))
	page, err = e.client.CoreV1().ConfigMaps(e.namespace).List(e.ctx, options)
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].Name != "c" {
		t.Errorf("unexpected second page: %v", page.Items)
	}
}

func testHeldInformer(t *testing.T, e *env) {
	e.create("before")
	held, witness := e.newInformer(e.client), e.newInformer(e.admin)
	held.want("add before")
	witness.want("add before")

	gate := e.proxy.HoldEvents(configMaps)
	e.create("a", "b")
	e.update("a")
	e.delete("b")
	witness.want("add a", "add b", "update a", "delete b")
	must(t, gate.Waiting(e.ctx, 1))
	held.wantNothing()

	gate.Release()
	held.want("add a", "add b", "update a", "delete b")
}

func testHeldSync(t *testing.T, e *env) {
	e.create("a", "b")
	gate := e.proxy.HoldEvents(configMaps)
	held := e.newInformer(e.client)
	must(t, gate.Waiting(e.ctx, 1))
	held.wantNothing()
	if held.synced() {
		t.Error("the informer has synced")
	}
	gate.Release()
	held.wantInitially("add a", "add b")
	held.wantSync()
}

func testExpiredInformer(t *testing.T, e *env) {
	i := e.newInformer(e.client)
	i.watchesFrom("before")
	fresh := faultproxy.Match{
		Resource: "configmaps",
		Where:    func(r faultproxy.Request) bool { return r.Verb == "list" || r.Verb == "watch" && !r.Resumed },
	}
	lists := e.proxy.Count(fresh)

	gate := e.proxy.HoldEvents(configMaps)
	e.create("missed")
	e.delete("missed")
	e.create("after")
	must(t, gate.Waiting(e.ctx, 1))
	expired := e.proxy.Expire(configMaps, 1)
	must(t, expired.Wait(e.ctx, 1))
	must(t, e.proxy.WaitForCount(e.ctx, fresh, lists+1))
	gate.Release()

	// Had the watch gone on from where it was, the informer would know of the object that it has missed.
	events := i.until("add after")
	e.delete("after")
	events = append(events, i.until("delete after")...)
	if slices.Contains(events, "add missed") || slices.Contains(events, "delete missed") {
		t.Errorf("the informer knows what it has missed: %q", events)
	}
}

func testEndedInformer(t *testing.T, e *env) {
	i := e.newInformer(e.client)
	i.watchesFrom("a")
	resumed := e.proxy.Add(faultproxy.Rule{
		Match: faultproxy.Match{Resource: "configmaps", Where: func(r faultproxy.Request) bool { return r.Resumed }},
	})
	gate := e.proxy.HoldEvents(configMaps)
	e.create("b")
	must(t, gate.Waiting(e.ctx, 1))
	if ended := e.proxy.EndWatches(configMaps); ended != 1 {
		t.Errorf("ended %d watches, want 1", ended)
	}
	must(t, resumed.Wait(e.ctx, 1))
	gate.Release()
	// The server repeats on the next watch what has been lost on the one before.
	i.want("add b")
}
