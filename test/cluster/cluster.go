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

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Cluster is a running control plane. Its methods may be called concurrently, except for those that stop, start,
// pause or resume something.
type Cluster struct {
	options Options
	dir     string
	logDir  string

	plane     envtest.ControlPlane
	planeUp   bool
	paused    map[Component]bool
	processes []*process
	logs      []*os.File
	config    *rest.Config
	client    kubernetes.Interface

	stopWatchdog func() error
	stopped      bool
}

// Start starts a cluster and returns when everything in it is ready: every component, every node, and the default
// ServiceAccount. The cluster runs until Stop is called; the context is for the start only. When Start fails, or the
// context ends before it is through, nothing of the cluster is left.
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	if err := options.setDefaults(); err != nil {
		return nil, err
	}
	c := &Cluster{options: options, paused: map[Component]bool{}}
	defer func() {
		if err != nil {
			// Whatever has become of the context, what was started has to go.
			err = errors.Join(err, c.stop(context.WithoutCancel(ctx)))
		}
	}()

	began := time.Now()
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"folders", c.makeDirs},
		{"etcd and kube-apiserver", c.startControlPlane},
		{"access for the administrator", c.connect},
		{"the other components", c.startComponents},
		{"nodes and storage class", c.createObjects},
		{"readiness", c.waitUntilReady},
	} {
		if err := step.run(ctx); err != nil {
			return nil, fmt.Errorf("starting the test cluster: %s: %w", step.name, err)
		}
		c.logf("%5.1fs  %s", time.Since(began).Seconds(), step.name)
	}
	return c, nil
}

// Stop ends every component and removes the cluster's folder. The components are killed, so that clients that still
// hold connections do not hold it up. A second call does nothing.
func (c *Cluster) Stop() error {
	return c.stop(context.Background())
}

func (c *Cluster) stop(ctx context.Context) error {
	if c.stopped {
		return nil
	}
	c.stopped = true

	var errs []error
	for _, p := range slices.Backward(c.processes) {
		errs = append(errs, p.stop())
	}
	errs = append(errs, c.removeHostPathVolumes(ctx), c.stopControlPlane())
	for _, log := range c.logs {
		errs = append(errs, log.Close())
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	// The last one, as it stands in for all of the above.
	if c.stopWatchdog != nil {
		errs = append(errs, c.stopWatchdog())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping the test cluster: %w", err)
	}
	return nil
}

// Config returns a client configuration of the cluster's administrator, without a limit on requests.
func (c *Cluster) Config() *rest.Config {
	return rest.CopyConfig(c.config)
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string {
	return c.kubeconfigPath("admin")
}

// Kubectl returns the path of a kubectl of the cluster's version.
func (c *Cluster) Kubectl() string {
	return filepath.Join(c.options.BinDir, kubectlBinary)
}

// Dir returns the cluster's folder, which goes when the cluster does.
func (c *Cluster) Dir() string {
	return c.dir
}

// LogDir returns the folder of the components' logs.
func (c *Cluster) LogDir() string {
	return c.logDir
}

func (c *Cluster) makeDirs(context.Context) error {
	dir, err := os.MkdirTemp(c.options.Dir, "test-cluster-")
	if err != nil {
		return err
	}
	c.dir = dir
	if c.stopWatchdog, err = startWatchdog(dir); err != nil {
		return err
	}
	c.logDir = c.options.LogDir
	if c.logDir == "" {
		c.logDir = c.path("logs")
	}
	var errs []error
	for _, dir := range []string{c.logDir, c.path("run"), c.path("etcd"), c.certDir()} {
		errs = append(errs, os.MkdirAll(dir, 0o700))
	}
	return errors.Join(errs...)
}

// connect provisions the administrator.
func (c *Cluster) connect(context.Context) error {
	config, err := c.addUser("admin", "system:masters")
	if err != nil {
		return err
	}
	c.config = config
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

// addUser provisions a user that is known by a client certificate, and writes its kubeconfig.
func (c *Cluster) addUser(name string, groups ...string) (*rest.Config, error) {
	user, err := c.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, err
	}
	return user.Config(), c.writeKubeconfig(name, user.Config())
}

// kubeconfigPath returns the path of a user's kubeconfig, without colons: the environment's KUBECONFIG is a list.
func (c *Cluster) kubeconfigPath(user string) string {
	return c.path(strings.ReplaceAll(user, ":", "_") + ".kubeconfig")
}

func (c *Cluster) writeKubeconfig(user string, config *rest.Config) error {
	const entry = "test-cluster"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[entry] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[entry] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
	}
	kubeconfig.Contexts[entry] = &clientcmdapi.Context{Cluster: entry, AuthInfo: entry}
	kubeconfig.CurrentContext = entry
	return clientcmd.WriteToFile(*kubeconfig, c.kubeconfigPath(user))
}

func (c *Cluster) path(name string) string {
	return filepath.Join(c.dir, name)
}

func (c *Cluster) logf(format string, args ...any) {
	// Progress is for people, and no reason to fail.
	_, _ = fmt.Fprintf(c.options.Log, format+"\n", args...)
}
