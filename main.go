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

// The manager of pvc-protection-operator: it keeps PersistentVolumeClaims that
// are deleted while pods use them until no pod does.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	// All client auth plugins (Azure, GCP, OIDC, …), for kubeconfigs that use them.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"pvc-protection-operator/internal/cli"
	"pvc-protection-operator/internal/controller"
	"pvc-protection-operator/internal/drain"
	"pvc-protection-operator/internal/options"
	"pvc-protection-operator/internal/version"
	// +kubebuilder:scaffold:imports
)

// operatorName names the leader election lease, the source of events and the user
// agent.
const operatorName = "pvc-protection-operator"

// accessTimeout bounds the first contact with the API server.
const accessTimeout = 30 * time.Second

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))

	// +kubebuilder:scaffold:scheme
}

func main() {
	ctx := ctrl.SetupSignalHandler()
	if cli.Invoked(os.Args) { // as the kubectl plugin
		os.Exit(cli.Execute(ctx, os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", operatorName, err)
		os.Exit(1)
	}
}

// run does what the arguments say: by default, it runs the manager until the context
// is done.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == drain.Command {
		return drain.Run(ctx, args[1:], restConfig, os.Stdout)
	}
	o, err := options.Parse(operatorName, args)
	if err != nil {
		return err
	}
	if o.Version {
		return version.Print(os.Stdout, operatorName)
	}
	metricsServer, err := metricsOptions(o)
	if err != nil {
		return err
	}
	// Before there is a logger: what controller-runtime would log, the error says.
	config, err := restConfig()
	if err != nil {
		return err
	}
	logger := zap.New(zap.UseFlagOptions(&o.Zap))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // client-go's messages
	// The garbage collector works harder before the container's limit is reached.
	// Outside of a container, or with GOMEMLIMIT set, this changes nothing.
	if limit, err := memlimit.Set(memlimit.WithProvider(memlimit.FromCgroup)); err == nil && limit > 0 {
		setupLog.V(1).Info("Set the memory limit of the Go runtime", "bytes", limit)
	}
	if o.LeaderElect && o.LeaderElectNamespace == "" {
		if o.LeaderElectNamespace, err = podNamespace(); err != nil {
			return fmt.Errorf("not in a pod, so --leader-elect needs --leader-elect-resource-namespace: %w", err)
		}
	}
	if err := checkAccess(ctx, config, o); err != nil {
		return err
	}

	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   controller.CacheOptions(o.WatchNamespaces...),
		Metrics:                 metricsServer,
		HealthProbeBindAddress:  o.ProbeAddress,
		PprofBindAddress:        o.PprofAddress,
		LeaderElection:          o.LeaderElect,
		LeaderElectionID:        operatorName,
		LeaderElectionNamespace: o.LeaderElectNamespace,
		// The process ends as soon as the manager has stopped, so the lease may
		// be given up then: the standby need not wait for it to expire.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(controller.GracefulShutdownTimeout),
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}

	if err := (&controller.PersistentVolumeClaimReconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Options:   o.Controller,
	}).SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("setting up the controller of claims: %w", err)
	}
	if o.Controller.UnusedCondition {
		if err := (&controller.UnusedReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up the controller of the Unused condition: %w", err)
		}
	}
	// +kubebuilder:scaffold:builder

	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}

	setupLog.Info("Starting manager", "version", version.String(), "finalizer", o.Controller.Finalizer)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// restConfig returns the client configuration of --kubeconfig, the environment or
// the pod, in this order.
func restConfig() (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		if _, inPod := rest.InClusterConfig(); inPod != nil && !errors.Is(inPod, rest.ErrNotInCluster) {
			err = inPod // such as a token that is not mounted
		}
		return nil, fmt.Errorf("no cluster to work on, set --kubeconfig or run in a pod: %w", err)
	}
	config.UserAgent = operatorName + "/" + version.String()
	// What is in flight is bounded by --concurrent-namespaces and
	// --concurrent-writes, and the API server has its own priority and fairness.
	// A client-side limit would only slow down the release of many claims.
	config.QPS = -1
	// Watches would be compressed event by event: a fifth of what an event costs
	// here, and more in the API server. The network between the two is a fast one.
	config.DisableCompression = true
	config.Wrap(controller.CountLiveListBytes)
	return config, nil
}

// checkAccess returns an error that says what is missing unless the process may do
// its work.
func checkAccess(ctx context.Context, config *rest.Config, o *options.Options) error {
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	permissions := controller.Permissions(o.WatchNamespaces...)
	if o.Controller.UnusedCondition {
		permissions = append(permissions, controller.UnusedPermissions(o.WatchNamespaces...)...)
	}
	if o.LeaderElect {
		permissions = append(permissions, controller.LeasePermissions(o.LeaderElectNamespace, operatorName)...)
	}
	if err := controller.CheckAccess(ctx, c, permissions); err != nil {
		return fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return nil
}

// podNamespace returns the namespace of the pod that this process runs in.
func podNamespace() (string, error) {
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	return strings.TrimSpace(string(namespace)), err
}

// metricsOptions returns the options of the metrics server. It fails if the
// certificate it is to serve cannot be read.
func metricsOptions(o *options.Options) (metricsserver.Options, error) {
	m := metricsserver.Options{
		BindAddress:   o.MetricsAddress,
		SecureServing: o.MetricsSecure,
		// Without a directory, the server makes a self-signed certificate.
		CertDir:  o.MetricsCertPath,
		CertName: o.MetricsCertName,
		KeyName:  o.MetricsCertKey,
	}
	if !o.MetricsSecure || o.MetricsAddress == "0" {
		return m, nil
	}
	if o.MetricsCertPath != "" {
		_, err := tls.LoadX509KeyPair(filepath.Join(m.CertDir, m.CertName), filepath.Join(m.CertDir, m.KeyName))
		if err != nil {
			return m, fmt.Errorf("invalid value %q for flag -metrics-cert-path: no certificate and key to serve: %w", m.CertDir, err)
		}
	}
	if !o.EnableHTTP2 {
		// HTTP/2 is off because of the stream cancellation and rapid reset CVEs:
		// GHSA-qppj-fm5r-hxr3 and GHSA-4374-p667-p6c8.
		m.TLSOpts = append(m.TLSOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	// Only callers that may get /metrics are answered. The RBAC for that is in
	// config/rbac.
	m.FilterProvider = filters.WithAuthenticationAndAuthorization
	return m, nil
}
