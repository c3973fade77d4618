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
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

// suite is what the tests share. Nothing changes it after the setup.
var suite struct {
	// dir is for the suite's files.
	dir string
	// monitoring are the ServiceMonitor and the PrometheusRule.
	monitoring harness.Manifests
	groups     []group
	dashboard  dashboard
	// root is the folder of the module.
	root string
}

// live is what the live tests share: an operator that is installed and can be built, and a Prometheus.
type live struct {
	cluster *cluster.Cluster
	admin   client.Client
	// binary is the operator, kubeconfig that of its ServiceAccount.
	binary, kubeconfig string
	manifests          harness.Manifests
	prometheus         *server
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := setUp(ctx)
	code := 1
	if err == nil {
		code = m.Run()
	}
	if suite.dir != "" {
		err = errors.Join(err, os.RemoveAll(suite.dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	return code
}

func setUp(ctx context.Context) (err error) {
	log.SetLogger(logr.Discard()) // controller-runtime's clients ask for one
	// The live tests wait more than they work.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		return err
	}
	if suite.root, err = harness.ModuleDir(ctx); err != nil {
		return err
	}
	if suite.dir, err = os.MkdirTemp("", "prometheus-"); err != nil {
		return err
	}
	if suite.monitoring, err = harness.Render(filepath.Join(suite.root, "config", "prometheus")); err != nil {
		return err
	}
	if suite.groups, err = loadRules(suite.monitoring); err != nil {
		return err
	}
	suite.dashboard, err = loadDashboard(filepath.Join(suite.root, "config", "grafana"))
	return err
}

// built returns the path of a binary that `make prometheus` builds.
func built(name string) (string, error) {
	path := filepath.Join(suite.root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not there, build it with `make prometheus`: %w", name, err)
	}
	return path, nil
}

// startLive starts a cluster, installs the operator in it without running it, and starts a Prometheus that may read its
// metrics.
func startLive(ctx context.Context) (l *live, err error) {
	l = &live{binary: filepath.Join(suite.dir, "manager")}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.stop())
		}
	}()
	prometheus, err := built("prometheus")
	if err != nil {
		return l, err
	}
	if err := harness.Build(ctx, l.binary); err != nil {
		return l, err
	}
	if l.manifests, err = harness.Render(filepath.Join(suite.root, "config", "default")); err != nil {
		return l, err
	}
	if l.cluster, err = cluster.Start(ctx, cluster.Options{Dir: suite.dir, Audit: cluster.AuditNone}); err != nil {
		return l, err
	}
	if l.admin, err = client.New(l.cluster.Config(), client.Options{}); err != nil {
		return l, err
	}
	if _, err := harness.Apply(ctx, l.cluster.Config(), l.manifests); err != nil {
		return l, err
	}
	l.kubeconfig, err = l.cluster.ServiceAccountKubeconfig(ctx, harness.Namespace, harness.ServiceAccount)
	if err != nil {
		return l, err
	}
	token, err := l.readerToken(ctx)
	if err != nil {
		return l, err
	}
	// The cluster's watchdog removes the cluster's folder, whatever becomes of this process.
	l.prometheus, err = startPrometheus(ctx, prometheus, filepath.Join(l.cluster.Dir(), "prometheus"), token)
	return l, err
}

// readerToken returns the token of a ServiceAccount that may do nothing but read metrics.
func (l *live) readerToken(ctx context.Context) (string, error) {
	const namespace, name = "default", "prometheus"
	account := corev1apply.ServiceAccount(name, namespace)
	if err := l.admin.Apply(ctx, account, client.FieldOwner("test")); err != nil {
		return "", err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus-reads-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: harness.MetricsReaderRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	if err := l.admin.Create(ctx, binding); err != nil {
		return "", err
	}
	config, err := l.cluster.ServiceAccountConfig(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	return config.BearerToken, nil
}

func (l *live) stop() error {
	var errs []error
	if l.prometheus != nil {
		errs = append(errs, l.prometheus.stop())
	}
	if l.cluster != nil {
		errs = append(errs, l.cluster.Stop())
	}
	return errors.Join(errs...)
}
