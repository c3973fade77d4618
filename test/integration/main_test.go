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

// Package integration_test runs the operator, built and started as a user would, as its own ServiceAccount with the
// RBAC of config/default, on a real API server. Claims and pods go in; finalizers, and what exists, come out.
//
// Tests of this package run one after the other, so that each has the only operators on the cluster; their subtests,
// which share an operator, run in parallel.
package integration_test

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

// suite is what the tests share. Nothing changes it after the setup.
var suite struct {
	cluster   *cluster.Cluster
	admin     client.Client
	manifests harness.Manifests
	// warnings are those of the API server about the manifests.
	warnings []string
	// binary is the operator.
	binary string
	// kubeconfig is that of the operator's ServiceAccount.
	kubeconfig string
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := setUp(ctx)
	release() // from here on, a signal ends the tests at once, and the cluster's watchdog cleans up

	code := 1
	if err == nil {
		code = m.Run()
		err = checkAuditLog(os.Stderr, code == 0)
	}
	if err := errors.Join(err, tearDown()); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	return code
}

func setUp(ctx context.Context) (err error) {
	log.SetLogger(logr.Discard()) // controller-runtime's clients ask for one
	// The subtests wait more than they work: many of them fit on few cores.
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		return err
	}
	suite.cluster, err = cluster.Start(ctx, cluster.Options{
		// Claims without a finalizer, as from before the operator came.
		DisableAdmissionPlugins: []string{"StorageObjectInUseProtection"},
	})
	if err != nil {
		return err
	}
	if suite.admin, err = client.New(suite.cluster.Config(), client.Options{}); err != nil {
		return err
	}

	root, err := harness.ModuleDir(ctx)
	if err != nil {
		return err
	}
	if suite.manifests, err = render(filepath.Join(root, "config", "default")); err != nil {
		return err
	}
	if err := dontTell(ctx); err != nil {
		return err
	}
	if suite.warnings, err = harness.Apply(ctx, suite.cluster.Config(), suite.manifests); err != nil {
		return err
	}
	suite.binary = filepath.Join(suite.cluster.Dir(), "manager") // which goes with the cluster
	if err := harness.Build(ctx, suite.binary); err != nil {
		return err
	}
	suite.kubeconfig, err = suite.cluster.ServiceAccountKubeconfig(ctx, harness.Namespace, harness.ServiceAccount)
	return err
}

func tearDown() error {
	if suite.cluster == nil {
		return nil
	}
	return suite.cluster.Stop()
}
