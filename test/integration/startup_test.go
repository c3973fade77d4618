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
	"net"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"pvc-protection-operator/test/harness"
)

// TestBadFlags has values that no cluster is needed to refuse.
func TestBadFlags(t *testing.T) {
	for arg, words := range map[string][]string{
		"--finalizer=protected":              {"protected", "-finalizer", "example.com/"},
		"--finalizer=":                       {"-finalizer", "qualified name"},
		"--watch-namespaces=a,,b":            {"a,,b", "-watch-namespaces", "namespace"},
		"--watch-namespaces=Upper":           {"Upper", "-watch-namespaces", "lower case"},
		"--batch-window=soon":                {"soon", "-batch-window", "1h"},
		"--batch-window=-1s":                 {"-1s", "-batch-window", "from 0s"},
		"--recheck-interval=1ms":             {"1ms", "-recheck-interval", "from 1s"},
		"--max-batch-size=0":                 {`"0"`, "-max-batch-size", "from 1"},
		"--concurrent-namespaces=-3":         {"-3", "-concurrent-namespaces", "from 1"},
		"--concurrent-writes=many":           {"many", "-concurrent-writes", "from 1"},
		"--pprof-bind-address=:6060":         {":6060", "-pprof-bind-address", "loopback"},
		"--leader-elect=perhaps":             {"perhaps", "-leader-elect", "true or false"},
		"--zap-log-level=loud":               {"loud", "-zap-log-level"},
		"--no-such-flag":                     {"-no-such-flag"},
		"stray":                              {"stray"},
		"--kubeconfig=/no/such/file":         {"/no/such/file", "--kubeconfig"},
		"--max-batch-size=99999999999999999": {"99999999999999999", "-max-batch-size", "to 100000"},
	} {
		t.Run(arg, func(t *testing.T) {
			t.Parallel()
			fails(t, harness.Options{Args: []string{arg}}, words...)
		})
	}
	t.Run("a certificate that is not there", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "certs")
		fails(t, harness.Options{Args: []string{"--metrics-bind-address=127.0.0.1:0", "--metrics-cert-path=" + missing}},
			missing, "-metrics-cert-path", "certificate and key")
	})
}

func TestVersion(t *testing.T) {
	o := ends(t, 0, harness.Options{Args: []string{"--version"}})
	for _, word := range []string{
		"pvc-protection-operator", "commit: ", "go: go1.", "k8s.io/client-go: v0.", "sigs.k8s.io/controller-runtime: v0.",
	} {
		if !strings.Contains(o.Output(), word) {
			t.Errorf("there is no %q in %q", word, o.Output())
		}
	}
}

func TestHelp(t *testing.T) {
	o := ends(t, 0, harness.Options{Args: []string{"--help"}})
	for _, flag := range []string{
		"-kubeconfig", "-leader-elect", "-metrics-bind-address", "-metrics-secure", "-metrics-cert-path",
		"-health-probe-bind-address", "-enable-http2", "-zap-log-level", "-version",
		"-finalizer", "-watch-namespaces", "-batch-window", "-max-batch-size", "-concurrent-namespaces",
		"-concurrent-writes", "-recheck-interval", "-unused-condition",
	} {
		if !strings.Contains(o.Output(), "  "+flag) {
			t.Errorf("the help lacks %s", flag)
		}
	}
}

// TestStartupErrors has clusters and machines that do not let the operator do its work.
func TestStartupErrors(t *testing.T) {
	e := newEnv(t)
	stranger, oneNamespace, reader := e.serviceAccount("stranger"), e.serviceAccount("one-namespace"), e.serviceAccount("reader")
	e.bind(oneNamespace, harness.ManagerRole)
	e.bind(oneNamespace, harness.UnusedConditionRole)
	e.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "reader"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims", "pods"},
			Verbs: []string{"get", "list", "watch"},
		}},
	})
	e.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.namespace, Name: reader.Name}},
	})
	here := "--watch-namespaces=" + e.namespace
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	e.fatalIf(err)
	refusing := listener.Addr().String()
	e.fatalIf(listener.Close())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	e.fatalIf(err)
	e.Cleanup(func() { _ = taken.Close() }) // nobody has used it

	for name, tc := range map[string]struct {
		kubeconfig string
		args       []string
		words      []string
		not        string
	}{
		"nobody listens": {
			kubeconfig: e.kubeconfig(func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				cluster.Server = "https://" + refusing
			}),
			words: []string{refusing, "refused"},
		},
		"a bad token": {
			kubeconfig: e.kubeconfig(func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Token = "bad" }),
			words:      []string{"401", "token"},
		},
		"an authority that did not sign the server's certificate": {
			kubeconfig: e.kubeconfig(func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				cluster.CertificateAuthorityData = nil
			}),
			words: []string{"certificate"},
		},
		"no permissions": {
			kubeconfig: e.accountKubeconfig(stranger.Name),
			words: []string{
				"list persistentvolumeclaims in all namespaces", "watch persistentvolumeclaims in all namespaces",
				"patch persistentvolumeclaims in all namespaces",
				"patch persistentvolumeclaims/status in all namespaces",
				"list pods in all namespaces", "watch pods in all namespaces",
			},
		},
		"permissions in one namespace for work in all": {
			kubeconfig: e.accountKubeconfig(oneNamespace.Name),
			words:      []string{"list pods in all namespaces", "--watch-namespaces"},
		},
		"permissions in one namespace for work in two": {
			kubeconfig: e.accountKubeconfig(oneNamespace.Name),
			args:       []string{here + ",default"},
			words:      []string{"list pods in namespace default"},
			not:        e.namespace,
		},
		"permission to read only": {
			kubeconfig: e.accountKubeconfig(reader.Name),
			args:       []string{here},
			words:      []string{"patch persistentvolumeclaims in namespace " + e.namespace},
			not:        "list",
		},
		"leader election outside of a cluster": {
			kubeconfig: suite.kubeconfig,
			args:       []string{"--leader-elect"},
			words:      []string{"--leader-elect-resource-namespace"},
		},
		"a port that is taken": {
			kubeconfig: suite.kubeconfig,
			args:       []string{"--health-probe-bind-address=" + taken.Addr().String()},
			words:      []string{taken.Addr().String(), "in use"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fails(t, harness.Options{Kubeconfig: tc.kubeconfig, Args: tc.args}, tc.words...)
			if tc.not != "" && strings.Contains(o.Output(), tc.not) {
				t.Errorf("it must not say %q: %s", tc.not, o.Output())
			}
		})
	}
}

// TestNoCluster names no cluster at all, or one that a pod cannot reach.
func TestNoCluster(t *testing.T) {
	fails(t, harness.Options{}, "no cluster", "--kubeconfig")
}

// TestAnonymous has a cluster that allows nothing at all, not even to ask what is allowed.
func TestAnonymous(t *testing.T) {
	e := newEnv(t)
	kubeconfig := e.kubeconfig(func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Token = "" })
	fails(t, harness.Options{Kubeconfig: kubeconfig}, "403", "config/rbac")
}

// TestOneNamespace has an operator that works in one namespace, with the permissions for just that.
func TestOneNamespace(t *testing.T) {
	e, elsewhere := newEnv(t), newEnv(t)
	account := e.serviceAccount("one-namespace")
	e.bind(account, harness.ManagerRole)
	e.bind(account, harness.UnusedConditionRole)
	outside := harness.Claim(elsewhere.namespace, "data")
	e.create(outside)
	startOperator(t, harness.Options{
		Kubeconfig: e.accountKubeconfig(account.Name),
		Args:       []string{"--watch-namespaces=" + e.namespace},
	})
	claim, unused := e.claim("data"), e.claim("unused")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim, unused)
	e.gone(unused)
	e.held(claim)
	e.saysBlocked(claim, "web")
	e.kill(pod)
	e.gone(claim)
	e.fatalIf(exists(t.Context(), outside, true))
	if len(outside.Finalizers) > 0 {
		t.Errorf("a claim elsewhere has got the finalizers %q", outside.Finalizers)
	}
}

// fails runs the operator and checks that it ends by itself, with an error of one line that has all the words.
func fails(t *testing.T, options harness.Options, words ...string) *harness.Operator {
	t.Helper()
	o := ends(t, 1, options)
	lines := strings.Split(strings.TrimSuffix(o.Output(), "\n"), "\n")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "pvc-protection-operator: ") {
		t.Errorf("the error is not one line: %s", o.Output())
	}
	for _, word := range words {
		if !strings.Contains(o.Output(), word) {
			t.Errorf("there is no %q in the error: %s", word, o.Output())
		}
	}
	return o
}

// ends runs the operator and checks that it ends by itself with that exit code.
func ends(t *testing.T, want int, options harness.Options) *harness.Operator {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	options.Binary = suite.binary
	o, exitCode, err := harness.Run(ctx, options)
	if o != nil {
		t.Cleanup(func() {
			if err := o.Kill(); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if exitCode != want {
		t.Errorf("the exit code is %d, want %d", exitCode, want)
	}
	return o
}

// kubeconfig writes a kubeconfig that differs from the operator's, and returns its path.
func (e *env) kubeconfig(change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	e.Helper()
	config, err := clientcmd.LoadFromFile(suite.kubeconfig)
	e.fatalIf(err)
	current := config.Contexts[config.CurrentContext]
	change(config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo])
	file := filepath.Join(e.TempDir(), "kubeconfig")
	e.fatalIf(clientcmd.WriteToFile(*config, file))
	return file
}

// accountKubeconfig returns the path of a kubeconfig of a ServiceAccount in the test's namespace.
func (e *env) accountKubeconfig(name string) string {
	e.Helper()
	file, err := suite.cluster.ServiceAccountKubeconfig(e.Context(), e.namespace, name)
	e.fatalIf(err)
	return file
}
