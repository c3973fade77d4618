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

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/internal/controller"
	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

const (
	upstream = "upstream"
	operator = "operator"
	floor    = "floor"
)

// contender does the work of a scenario: with a process of its own or, if it has
// no command, in this one.
type contender struct {
	name string
	// agent is how its requests' user agent starts.
	agent   string
	command func(c *cluster.Cluster, binary string) *exec.Cmd
}

var contenders = []contender{
	{upstream, "kube-controller-manager", func(c *cluster.Cluster, _ string) *exec.Cmd {
		return exec.Command(filepath.Join(filepath.Dir(c.Kubectl()), "kube-controller-manager"),
			"--kubeconfig="+c.Kubeconfig(), "--leader-elect=false", "--secure-port=0",
			"--controllers=persistentvolumeclaim-protection-controller",
			// No limits in the client, and no Unused condition: the operator writes none either.
			"--kube-api-qps=100000", "--kube-api-burst=100000",
			"--feature-gates=PersistentVolumeClaimUnusedSinceTime=false")
	}},
	{operator, "pvc-protection-operator", func(c *cluster.Cluster, binary string) *exec.Cmd {
		return exec.Command(binary, "--kubeconfig="+c.Kubeconfig(),
			"--health-probe-bind-address=0", "--metrics-bind-address=0")
	}},
	{name: floor, agent: "floor"},
}

// measure lets the contender work, and returns what it took.
func (ct contender) measure(
	ctx context.Context, c *cluster.Cluster, binary string, s scenario, cl client.Client,
) (r result, err error) {
	started := time.Now()
	r = result{Scenario: s.Name, Contender: ct.name}
	if ct.command == nil {
		err = ct.patchAll(ctx, c, s, cl)
	} else {
		err = ct.runProcess(ctx, ct.command(c, binary), s, cl, &r)
	}
	if err == nil {
		err = s.done(ctx, cl)
	}
	if err == nil && !s.idle() {
		err = r.readAudit(ctx, c, ct.agent, started, s.total())
	}
	return r, err
}

func (ct contender) runProcess(ctx context.Context, cmd *exec.Cmd, s scenario, cl client.Client, r *result) error {
	var output strings.Builder
	cmd.Stderr = &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	var waited error
	if s.idle() {
		waited = pause(ctx, settle)
	} else {
		// The times are the audit log's. Looking often would only slow the API server down.
		waited = wait.PollUntilContextTimeout(ctx, time.Second, patience, false, func(ctx context.Context) (bool, error) {
			return s.seemsDone(ctx, cl)
		})
	}
	killed := cmd.Process.Kill()
	_ = cmd.Wait() // The error is that it was killed.
	if err := errors.Join(waited, killed); err != nil {
		return fmt.Errorf("%w\n%s", err, output.String())
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	r.CPUSeconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	r.PeakRSSMiB = float64(usage.Maxrss) / 1024
	return nil
}

// settle is how long a contender that has nothing to do is watched.
const settle = 30 * time.Second

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// patchAll is the floor.
func (ct contender) patchAll(ctx context.Context, c *cluster.Cluster, s scenario, cl client.Client) error {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := cl.List(ctx, claims); err != nil {
		return err
	}
	config := c.Config()
	config.UserAgent = ct.agent
	patcher, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	key := "$deleteFromPrimitiveList/finalizers"
	if s.adopt {
		key = "finalizers"
	}
	inFlight := controller.DefaultOptions().ConcurrentWrites * min(s.namespaces, controller.DefaultOptions().ConcurrentNamespaces)
	return eachOf(inFlight, len(claims.Items), func(i int) error {
		claim := &claims.Items[i]
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,%q:[%q]}}`, claim.UID, key, harness.Finalizer)
		return patcher.Patch(ctx, claim, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	})
}
