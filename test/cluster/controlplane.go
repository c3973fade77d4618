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
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: [/healthz*, /livez*, /readyz*]
- level: %s
`

// startControlPlane starts etcd and the API server. envtest picks the ports, makes the certificates and knows the
// flags that a server needs to start at all.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	etcdPath, err := c.writeLauncher(Etcd)
	if err != nil {
		return err
	}
	etcdLog, err := c.openLog(Etcd)
	if err != nil {
		return err
	}
	apiServerPath, err := c.writeLauncher(APIServer)
	if err != nil {
		return err
	}
	apiServerLog, err := c.openLog(APIServer)
	if err != nil {
		return err
	}

	c.plane.Etcd = &envtest.Etcd{
		Path:         etcdPath,
		DataDir:      c.path("etcd"),
		StartTimeout: startTimeout,
		StopTimeout:  stopTimeout,
		Out:          etcdLog,
		Err:          etcdLog,
	}
	c.plane.APIServer = &envtest.APIServer{
		Path:         apiServerPath,
		CertDir:      c.certDir(),
		StartTimeout: startTimeout,
		StopTimeout:  stopTimeout,
		Out:          apiServerLog,
		Err:          apiServerLog,
	}
	c.plane.KubectlPath = c.Kubectl()
	if err := c.configureAPIServer(c.plane.APIServer.Configure()); err != nil {
		return err
	}

	return c.untilCanceled(ctx, c.plane.Start)
}

func (c *Cluster) configureAPIServer(args *envtest.Arguments) error {
	// Neither the machine's routes nor its address are of interest, and the loopback address is none that the
	// endpoints of the service "kubernetes" could have.
	args.Set("advertise-address", "127.0.0.1")
	args.Set("endpoint-reconciler-type", "none")

	disabled := c.options.DisableAdmissionPlugins
	if !c.options.ControllerManager {
		// Nobody would create the ServiceAccounts that the one asks for, nor take off the taint of the other.
		disabled = append([]string{"ServiceAccount", "TaintNodesByCondition"}, disabled...)
	}
	// envtest disables the first of these by default.
	args.Disable("disable-admission-plugins")
	if len(disabled) > 0 {
		args.Set("disable-admission-plugins", strings.Join(disabled, ","))
	}

	if c.options.Audit != AuditNone {
		policy := c.path("audit-policy.yaml")
		if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, c.options.Audit), 0o600); err != nil {
			return err
		}
		args.Set("audit-policy-file", policy)
		args.Set("audit-log-path", c.AuditLog())
		args.Set("audit-log-maxsize", "1000000") // in MB, so as not to be rotated: the reader wants one file
	}

	for name, value := range c.options.APIServerFlags {
		args.Set(name, value)
	}
	return nil
}

// StopAPIServer kills the API server, whose clients find nobody at its address until StartAPIServer.
func (c *Cluster) StopAPIServer() error {
	c.planeUp = false
	return c.kill(APIServer, c.plane.APIServer.Stop)
}

// StartAPIServer starts the API server again, at the same address and with the same data, certificates and keys, and
// returns when it is ready. Clients, kubeconfigs and tokens from before are still good.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if err := c.untilCanceled(ctx, c.plane.APIServer.Start); err != nil {
		return err
	}
	return c.waitForAPIServer(ctx)
}

func (c *Cluster) stopControlPlane() error {
	var errs []error
	if c.plane.APIServer != nil {
		errs = append(errs, c.StopAPIServer())
	}
	if c.plane.Etcd != nil {
		errs = append(errs, c.kill(Etcd, c.plane.Etcd.Stop))
	}
	return errors.Join(errs...)
}

// waitForAPIServer waits for what comes after the health that envtest waits for.
func (c *Cluster) waitForAPIServer(ctx context.Context) error {
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s did not become ready: %w%s", APIServer, err, c.logTail(APIServer))
	}
	c.planeUp = true
	return nil
}

// untilCanceled runs a start of envtest, which knows of no context, and kills what it waits for when ours ends.
func (c *Cluster) untilCanceled(ctx context.Context, start func() error) error {
	starting, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	release := context.AfterFunc(ctx, func() {
		// Again and again, as the next process may be about to start.
		wait.UntilWithContext(starting, func(context.Context) {
			for _, component := range []Component{APIServer, Etcd} {
				_ = c.signal(component, syscall.SIGKILL) // if it is there
			}
		}, pollInterval)
	})
	defer release()

	err := start()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w%s%s", err, c.logTail(Etcd), c.logTail(APIServer))
	}
	return nil
}

// kill ends a process of envtest, and has envtest collect it. It is no error when there is none.
func (c *Cluster) kill(component Component, collect func() error) error {
	if _, err := c.PID(component); err == nil {
		if err := c.signal(component, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	delete(c.paused, component)
	// envtest sends a signal of its own, to nobody if the process has gone in the meantime.
	if err := collect(); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stopping %s: %w", component, err)
	}
	if err := os.Remove(c.launcherPath(component) + pidSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (c *Cluster) certDir() string {
	return c.path("certs")
}

func (c *Cluster) cert(name string) string {
	return filepath.Join(c.certDir(), name)
}
