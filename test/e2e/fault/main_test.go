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
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

// installation is a cluster with the operator's objects in it.
type installation struct {
	cluster *cluster.Cluster
	admin   client.Client
	// kubeconfig is that of the operator's ServiceAccount.
	kubeconfig string
}

// suite is what the tests share. Nothing changes it after the setup.
var suite struct {
	installation
	// dir is for the suite's files.
	dir string
	// binary is the operator.
	binary string
	// manifests are what config/default says.
	manifests harness.Manifests
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
	if err := errors.Join(err, tearDown()); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	return code
}

func setUp(ctx context.Context) (err error) {
	log.SetLogger(logr.Discard()) // controller-runtime's clients ask for one
	// The tests wait more than they work: some of them fit on few cores.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		return err
	}
	if suite.dir, err = os.MkdirTemp("", "fault-"); err != nil {
		return err
	}
	root, err := harness.ModuleDir(ctx)
	if err != nil {
		return err
	}
	suite.binary = filepath.Join(suite.dir, "manager")
	if err := harness.Build(ctx, suite.binary); err != nil {
		return err
	}
	if suite.manifests, err = harness.Render(filepath.Join(root, "config", "default")); err != nil {
		return err
	}
	return suite.install(ctx)
}

// install starts a cluster, whose claims get the in-tree finalizer when they are created, as everywhere, and installs
// the operator without running it.
func (i *installation) install(ctx context.Context) (err error) {
	i.cluster, err = cluster.Start(ctx, cluster.Options{Dir: suite.dir, Audit: cluster.AuditNone})
	if err != nil {
		return err
	}
	if i.admin, err = client.New(i.cluster.Config(), client.Options{}); err != nil {
		return err
	}
	if _, err := harness.Apply(ctx, i.cluster.Config(), suite.manifests); err != nil {
		return err
	}
	i.kubeconfig, err = i.cluster.ServiceAccountKubeconfig(ctx, harness.Namespace, harness.ServiceAccount)
	return err
}

func tearDown() error {
	var errs []error
	if suite.cluster != nil {
		errs = append(errs, suite.cluster.Stop())
	}
	if suite.dir != "" {
		errs = append(errs, os.RemoveAll(suite.dir))
	}
	return errors.Join(errs...)
}
