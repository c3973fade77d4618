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

// Command up runs a test cluster until it is interrupted.
//
//	go run ./test/cluster/up --nodes 3
//
// It prints what a shell needs to work with the cluster. A script waits for the file of --kubeconfig-out, which
// appears when the cluster is ready and goes when it stops. To stop it from a script, build the program first: go run
// does not pass signals on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"pvc-protection-operator/test/cluster"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	options := cluster.Options{Log: os.Stderr}
	var kubeconfigOut, audit, disabledPlugins string
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.BoolVar(&options.ControllerManager, "controller-manager", true, "run kube-controller-manager")
	flags.BoolVar(&options.Scheduler, "scheduler", true, "run kube-scheduler")
	flags.IntVar(&options.Nodes, "nodes", 1, "how many `nodes` kwok plays")
	flags.StringVar(&audit, "audit", string(cluster.AuditMetadata), "audit `level`: None, Metadata or RequestResponse")
	flags.StringVar(&disabledPlugins, "disable-admission-plugins", "", "admission `plugins` to switch off")
	flags.StringVar(&options.LogDir, "log-dir", "", "`folder` for the components' logs, kept (default: removed)")
	flags.StringVar(&kubeconfigOut, "kubeconfig-out", "", "`file` for the administrator's kubeconfig, must not exist")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	options.Audit = cluster.AuditLevel(audit)
	if disabledPlugins != "" {
		options.DisableAdmissionPlugins = strings.Split(disabledPlugins, ",")
	}
	if err := mustNotExist(kubeconfigOut); err != nil {
		return err
	}

	c, err := cluster.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()

	kubeconfig := c.Kubeconfig()
	if kubeconfigOut != "" {
		if err := copyWhole(kubeconfig, kubeconfigOut); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(kubeconfigOut)) }()
		kubeconfig = kubeconfigOut
	}
	fmt.Printf("export KUBECONFIG=%s\nexport PATH=%s:\"$PATH\"\n", kubeconfig, filepath.Dir(c.Kubectl()))
	fmt.Fprintf(os.Stderr, "logs:  %s\naudit: %s\nCtrl-C stops the cluster\n", c.LogDir(), c.AuditLog())
	<-ctx.Done()
	return nil
}

// mustNotExist protects a kubeconfig that is somebody's own: ours is removed in the end.
func mustNotExist(path string) error {
	if path == "" {
		return nil
	}
	_, err := os.Stat(path)
	if err == nil {
		return fmt.Errorf("%s exists already", path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyWhole copies a file such that whoever sees the copy sees all of it.
func copyWhole(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	temp := to + ".tmp"
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, to)
}
