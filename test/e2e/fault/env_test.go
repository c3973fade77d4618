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

package fault_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

const (
	// patience is how long something that has to happen may take: it is what the operator promises.
	patience = 2 * time.Minute
	// vigilance is how long something that must not happen is watched for.
	vigilance = time.Second

	foreignFinalizer = "example.com/foreign"
	node             = "node-a"

	claims = "persistentvolumeclaims"
	pods   = "pods"
)

// env is a test with namespaces of its own, and a proxy for its operators.
type env struct {
	*testing.T
	installation
	proxy *faultproxy.Proxy
	// namespace is the first of the namespaces.
	namespace  string
	namespaces []string
}

// newEnv makes as many namespaces.
func newEnv(t *testing.T, namespaces int) *env {
	t.Helper()
	return newEnvOn(t, suite.installation, namespaces)
}

// newEnvWithCluster is newEnv on a cluster that is the test's own.
func newEnvWithCluster(t *testing.T, namespaces int) *env {
	t.Helper()
	var own installation
	t.Cleanup(func() {
		if own.cluster == nil {
			return
		}
		if err := own.cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := own.install(t.Context()); err != nil {
		t.Fatal(err)
	}
	return newEnvOn(t, own, namespaces)
}

func newEnvOn(t *testing.T, on installation, namespaces int) *env {
	t.Helper()
	e := &env{T: t, installation: on}
	for range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fault-"}}
		e.create(namespace)
		e.namespaces = append(e.namespaces, namespace.Name)
	}
	e.namespace = e.namespaces[0]

	e.proxy = e.newProxy()
	return e
}

// newProxy starts a proxy.
func (e *env) newProxy() *faultproxy.Proxy {
	e.Helper()
	// Cleanups need it for longer than the test's context lasts.
	proxy, err := faultproxy.New(context.WithoutCancel(e.Context()), e.cluster.Config())
	e.fatalIf(err)
	e.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			e.Error(err)
		}
	})
	return proxy
}

// start starts an operator behind the proxy and waits until it is ready.
func (e *env) start(args ...string) *harness.Operator {
	e.Helper()
	return e.startAs(e.proxy, e.kubeconfig, args...)
}

// startAs is start with another proxy and another kubeconfig.
func (e *env) startAs(proxy *faultproxy.Proxy, kubeconfig string, args ...string) *harness.Operator {
	e.Helper()
	behindProxy := filepath.Join(e.TempDir(), "kubeconfig")
	e.fatalIf(proxy.WriteKubeconfig(kubeconfig, behindProxy))
	o, err := harness.Start(harness.Options{
		Binary:     suite.binary,
		Kubeconfig: behindProxy,
		Args:       append([]string{"--watch-namespaces=" + strings.Join(e.namespaces, ",")}, args...),
	})
	e.fatalIf(err)
	e.Cleanup(func() {
		if e.Failed() {
			e.Logf("the operator's output ends with:\n%s", tail(o.Output()))
		}
		if err := o.Kill(); err != nil {
			e.Error(err)
		}
	})
	e.fatalIf(o.WaitReady(e.Context()))
	return o
}

func tail(text string) string {
	const most = 8 << 10
	return text[max(0, len(text)-most):]
}

// fatalIf ends the test on an error.
func (e *env) fatalIf(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// eventually waits until the condition holds, and ends the test if it takes too long.
func (e *env) eventually(what string, condition harness.Condition) {
	e.Helper()
	if err := harness.Eventually(e.Context(), patience, condition); err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}

// consistently watches for a moment that the condition holds.
func (e *env) consistently(what string, condition harness.Condition) {
	e.Helper()
	if err := harness.Consistently(e.Context(), vigilance, condition); err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}

// within calls a function of the proxy that waits, with a context that ends when patience does.
func (e *env) within(wait func(context.Context) error) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	e.fatalIf(wait(ctx))
}

// waiting waits until so many requests, responses or watches are at the gate.
func (e *env) waiting(gate *faultproxy.Gate, n int) {
	e.Helper()
	e.within(func(ctx context.Context) error { return gate.Waiting(ctx, n) })
}

// hits waits until the rule has been applied to so many requests.
func (e *env) hits(rule *faultproxy.ActiveRule, n int) {
	e.Helper()
	e.within(func(ctx context.Context) error { return rule.Wait(ctx, n) })
}

// liveLists selects the live lists of the namespace, or of all namespaces if it is empty: the caches begin with watches.
func liveLists(namespace string) faultproxy.Match {
	return faultproxy.Match{Verb: "list", Resource: pods, Namespace: namespace}
}

// patches selects the patches of claims of the namespace, or of all namespaces if it is empty.
func patches(namespace string) faultproxy.Match {
	return faultproxy.Match{Verb: "patch", Resource: claims, Namespace: namespace}
}

func (e *env) create(object client.Object) {
	e.Helper()
	e.fatalIf(e.admin.Create(e.Context(), object))
}

// delete asks for the deletion of the objects.
func (e *env) delete(objects ...client.Object) {
	e.Helper()
	for _, object := range objects {
		e.fatalIf(e.admin.Delete(e.Context(), object))
	}
}
