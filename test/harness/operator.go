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

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	readyTimeout = time.Minute
	stopTimeout  = time.Minute
)

// ModuleDir returns the folder of the module that the working directory lies in.
func ModuleDir(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module: %w", err)
	}
	return strings.TrimSpace(string(output)), nil
}

// Build builds the manager, as it is in the working tree, into the given file.
func Build(ctx context.Context, file string) error {
	dir, err := ModuleDir(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, ".")
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the manager: %w\n%s", err, output)
	}
	return nil
}

// Options say how to run the operator.
type Options struct {
	// Binary is the file that Build wrote.
	Binary string

	// Kubeconfig is the file with the operator's identity. Empty means that it gets none.
	Kubeconfig string

	// Args are added to those that Start sets, and win over them.
	Args []string

	// Output receives what the operator prints, in addition to Operator.Output. Defaults to nowhere.
	Output io.Writer
}

// Operator is a process of the manager. Its methods may be called concurrently.
type Operator struct {
	cmd    *exec.Cmd
	output buffer
	done   chan struct{}
	// probes and metrics are the addresses of its endpoints.
	probes, metrics string
}

// Start starts the operator, without leader election and with its endpoints on free ports of the loopback interface,
// the metrics without authentication.
//
// What it prints goes through a pipe, so that it does not outlive this process for long if this process is killed:
// the next line it writes ends it.
func Start(options Options) (*Operator, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	o := &Operator{probes: ports[0], metrics: ports[1], done: make(chan struct{})}
	args := []string{
		"--leader-elect=false",
		"--metrics-bind-address=" + o.metrics,
		"--metrics-secure=false",
		"--health-probe-bind-address=" + o.probes,
	}
	if options.Kubeconfig != "" {
		args = append(args, "--kubeconfig="+options.Kubeconfig)
	}
	o.start(options, append(args, options.Args...))
	if err := o.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	go o.collect()
	return o, nil
}

// Run runs the operator with just the arguments of the options until it ends by itself, and returns its exit code.
func Run(ctx context.Context, options Options) (o *Operator, exitCode int, err error) {
	o = &Operator{done: make(chan struct{})}
	if options.Kubeconfig != "" {
		options.Args = append([]string{"--kubeconfig=" + options.Kubeconfig}, options.Args...)
	}
	o.start(options, options.Args)
	if err := o.cmd.Start(); err != nil {
		return nil, 0, fmt.Errorf("starting the operator: %w", err)
	}
	go o.collect()
	exitCode, err = o.Wait(ctx)
	return o, exitCode, err
}

func (o *Operator) start(options Options, args []string) {
	o.cmd = exec.Command(options.Binary, args...)
	o.cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		// It works on the cluster that the arguments name, or on none.
		return slices.Contains([]string{"KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST"}, strings.Split(variable, "=")[0])
	})
	output := io.Writer(&o.output)
	if options.Output != nil {
		output = io.MultiWriter(output, options.Output)
	}
	o.cmd.Stdout, o.cmd.Stderr = output, output
	// A Ctrl-C in the terminal is for us alone.
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func (o *Operator) collect() {
	_ = o.cmd.Wait() // its error is the exit code, which the process' state has
	close(o.done)
}

// WaitReady waits until the operator says that it is ready, and fails early if it ends instead.
func (o *Operator) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-o.done:
			cancel(fmt.Errorf("the operator has ended with exit code %d", o.cmd.ProcessState.ExitCode()))
		case <-ctx.Done():
		}
	}()
	if err := Eventually(ctx, readyTimeout, o.Ready); err != nil {
		return fmt.Errorf("the operator is not ready: %w\n%s", err, o.Output())
	}
	return nil
}

// Ready asks the ready probe once.
func (o *Operator) Ready(ctx context.Context) error {
	_, err := Get(ctx, http.DefaultClient, "http://"+o.probes+"/readyz")
	return err
}

// Signal sends a signal to the process.
func (o *Operator) Signal(signal syscall.Signal) error {
	return o.cmd.Process.Signal(signal)
}

// Wait waits until the process has ended, and returns its exit code. A process that was killed has -1.
func (o *Operator) Wait(ctx context.Context) (exitCode int, err error) {
	select {
	case <-o.done:
		return o.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("the operator has not ended: %w\n%s", context.Cause(ctx), o.Output())
	}
}

// Stop ends the operator as the kubelet does, and returns an error unless it goes along with that.
func (o *Operator) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := o.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the operator: %w\n%s", err, o.Output())
	}
	exitCode, err := o.Wait(ctx)
	if err != nil {
		return err
	}
	if exitCode != 0 {
		return fmt.Errorf("the operator has ended with exit code %d:\n%s", exitCode, o.Output())
	}
	return nil
}

// StopIfRunning is Stop if the operator runs. If it has ended, it returns an error unless that was by a signal or with
// exit code 0.
func (o *Operator) StopIfRunning(ctx context.Context) error {
	select {
	case <-o.done:
		if exitCode := o.cmd.ProcessState.ExitCode(); exitCode > 0 {
			return fmt.Errorf("the operator has ended by itself with exit code %d:\n%s", exitCode, o.Output())
		}
		return nil
	default:
		return o.Stop(ctx)
	}
}

// Kill ends the process at once and waits until it is gone. It is no error if it has ended before.
func (o *Operator) Kill() error {
	if err := o.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing the operator: %w", err)
	}
	<-o.done
	return nil
}

// Output returns what the process has printed so far.
func (o *Operator) Output() string {
	return o.output.String()
}

// buffer is a buffer for one process to write to while others read. The zero value is ready to use.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Get returns what the client gets from the URL. Any answer but 200 is an error.
func Get(ctx context.Context, web *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := web.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return string(body), nil
}

// freePorts returns different addresses of the loopback interface that nobody listens on.
func freePorts(count int) ([]string, error) {
	var addresses []string
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }() // nobody has used it
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
