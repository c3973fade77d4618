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

// The demo shows the operator at work on a cluster of its own: a real API server,
// etcd, scheduler and controller manager, and kwok in the part of the nodes. It
// prints the kubectl commands that a user would type with their real output, and
// fails if anything is not as it tells.
//
//	go run ./test/demo
//
// With KEEP=1 in the environment, cluster and operator stay up until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

func main() {
	log.SetLogger(logr.Discard()) // Only controller-runtime's clients would use it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: FAILED: %v\n", err)
		os.Exit(1)
	}
	fmt.Println("\nDone. Cluster and operator are stopped, and nothing is left behind.")
}

// demo is a running cluster with the operator in it.
type demo struct {
	cluster  *cluster.Cluster
	client   client.Client
	operator *harness.Operator
	root     string
	// plugins is the folder of the kubectl plugin.
	plugins string
}

func run(ctx context.Context) (err error) {
	d := &demo{}
	if d.root, err = harness.ModuleDir(ctx); err != nil {
		return err
	}

	if d.plugins, err = os.MkdirTemp("", "demo-plugins-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.plugins)) }()
	if err := os.Symlink(d.manager(), filepath.Join(d.plugins, "kubectl-pvc_protection")); err != nil {
		return err
	}

	heading("A cluster: etcd, kube-apiserver, kube-scheduler, kube-controller-manager and 2 nodes played by kwok.\n" +
		"The in-tree persistentvolumeclaim-protection-controller is switched off.")
	d.cluster, err = cluster.Start(ctx, cluster.Options{
		Scheduler: true, ControllerManager: true, Nodes: 2, Log: os.Stdout,
	})
	if err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, d.cluster.Stop()) }()
	if d.client, err = client.New(d.cluster.Config(), client.Options{}); err != nil {
		return err
	}

	if err := d.install(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.operator.StopIfRunning(context.WithoutCancel(ctx))) }()

	if err := d.claimInUse(ctx); err != nil {
		return err
	}
	if err := d.unusedClaims(ctx); err != nil {
		return err
	}

	if os.Getenv("KEEP") != "" {
		heading("KEEP is set: cluster and operator stay up until Ctrl-C. In another terminal:\n"+
			"export KUBECONFIG=%s\nexport PATH=%s:\"$PATH\"", d.cluster.Kubeconfig(), filepath.Dir(d.cluster.Kubectl()))
		<-ctx.Done()
	}
	return nil
}

// manager returns the operator's binary, which is the kubectl plugin, too.
func (d *demo) manager() string { return filepath.Join(d.root, "bin", "manager") }

// install installs config/default and runs the operator as its Deployment would.
func (d *demo) install(ctx context.Context) error {
	heading("Installing the operator, as on any cluster.")
	if _, err := d.kubectl(ctx, "apply", "-k", "config/default"); err != nil {
		return err
	}

	fmt.Println("\nkwok only plays the nodes, so nothing runs the Deployment's container. The same program runs here as\n" +
		"a process instead, with the Deployment's flags, the identity of its ServiceAccount and the RBAC just installed.")
	manifests, err := harness.Render(filepath.Join(d.root, "config", "default"))
	if err != nil {
		return err
	}
	var deployment appsv1.Deployment
	if err := manifests.Decode("Deployment", &deployment); err != nil {
		return err
	}
	kubeconfig, err := d.cluster.ServiceAccountKubeconfig(ctx, harness.Namespace, harness.ServiceAccount)
	if err != nil {
		return err
	}
	args := portableArgs(deployment.Spec.Template.Spec.Containers[0].Args)
	d.operator, err = harness.Start(harness.Options{
		Binary:     d.manager(),
		Kubeconfig: kubeconfig,
		Args:       append(args, "--leader-elect-resource-namespace="+harness.Namespace),
	})
	if err != nil {
		return err
	}
	started := time.Now()
	if err := d.operator.WaitReady(ctx); err != nil {
		return errors.Join(err, d.operator.StopIfRunning(context.WithoutCancel(ctx)))
	}
	fmt.Printf("The operator is ready after %s.\n", since(started))
	return nil
}
