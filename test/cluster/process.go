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
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
	pollInterval = 100 * time.Millisecond

	pidSuffix = ".pid"
)

// launcher is what the processes are started through. envtest keeps the processes it starts to itself, and this file
// is how to signal them: it leaves the process id behind and becomes the component. Not for --help, by which envtest
// asks a binary for its flags.
const launcher = `#!/bin/sh
[ "$1" = --help ] || echo $$ >"$0` + pidSuffix + `"
exec %s "$@"
`

// watchdog waits for the end of its standard input, which only the process that started the cluster holds open, and
// therefore for the end of that process, however it ends. Then it ends what is left of the cluster. The folder may
// still get a last file from a dying process, hence the second try.
const watchdog = `
trap '' HUP INT TERM
while read -r _; do :; done
for file in "$1"/run/*` + pidSuffix + `; do
	[ -s "$file" ] && kill -s KILL -- "-$(cat "$file")"
done
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
`

// writeLauncher returns the path to start the component by.
func (c *Cluster) writeLauncher(component Component) (string, error) {
	binary := filepath.Join(c.options.BinDir, string(component))
	quoted := "'" + strings.ReplaceAll(binary, "'", `'\''`) + "'"

	// A process forked while the file is open for writing holds it open too, until it executes its own program, and
	// so long nobody can execute the file.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return c.launcherPath(component), os.WriteFile(c.launcherPath(component), fmt.Appendf(nil, launcher, quoted), 0o700)
}

func (c *Cluster) launcherPath(component Component) string {
	return filepath.Join(c.dir, "run", string(component))
}

// PID returns the process id of a running component. It changes when the component is started again.
func (c *Cluster) PID(component Component) (int, error) {
	content, err := os.ReadFile(c.launcherPath(component) + pidSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s is not running", component)
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(content)))
}

// Pause makes a component stand still, its connections open and nobody answering, until Resume or Stop. When it
// returns, the last thread of the component has stopped.
func (c *Cluster) Pause(component Component) error {
	if c.paused[component] {
		return nil // there would be no second stop to wait for
	}
	if err := c.signal(component, syscall.SIGSTOP); err != nil {
		return err
	}
	if err := c.waitForStop(component); err != nil {
		return fmt.Errorf("pausing %s: %w", component, err)
	}
	c.paused[component] = true
	return nil
}

// Resume ends a Pause. It does nothing to a component that is not paused.
func (c *Cluster) Resume(component Component) error {
	if !c.paused[component] {
		return nil
	}
	delete(c.paused, component)
	return c.signal(component, syscall.SIGCONT)
}

// waitForStop waits for the system to report to us, the parent, that the whole process has stopped. Until then, its
// threads on other processors go on.
func (c *Cluster) waitForStop(component Component) error {
	pid, err := c.PID(component)
	if err != nil {
		return err
	}
	var status syscall.WaitStatus
	for {
		_, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return err
	}
	if !status.Stopped() {
		return errors.New("it ended")
	}
	return nil
}

func (c *Cluster) signal(component Component, signal syscall.Signal) error {
	pid, err := c.PID(component)
	if err != nil {
		return err
	}
	// Each component leads a process group of its own.
	if err := syscall.Kill(-pid, signal); err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, component, err)
	}
	return nil
}

// process is a component that is started by this package and not by envtest.
type process struct {
	component Component
	healthy   func(context.Context) bool
	pid       int
	done      chan struct{}
	err       error // how it ended, to be read once done is closed
}

// start starts a component and does not wait for it to become healthy.
func (c *Cluster) start(component Component, flags Flags, healthy func(context.Context) bool, env ...string) error {
	path, err := c.writeLauncher(component)
	if err != nil {
		return err
	}
	log, err := c.openLog(component)
	if err != nil {
		return err
	}
	cmd := exec.Command(path, flags.args()...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	// A Ctrl-C in the terminal is for us alone, Stop ends the components in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", component, err)
	}

	p := &process{component: component, healthy: healthy, pid: cmd.Process.Pid, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	c.processes = append(c.processes, p)
	return nil
}

// stop ends the process without a chance to say goodbye, as there is nothing that it could still do for anybody.
func (p *process) stop() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := syscall.Kill(-p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("killing %s: %w", p.component, err)
	}
	select {
	case <-p.done:
		return nil // its error tells of our own signal
	case <-time.After(stopTimeout):
		return fmt.Errorf("%s did not end", p.component)
	}
}

// waitUntilHealthy fails early when the process ends.
func (c *Cluster) waitUntilHealthy(ctx context.Context, p *process) error {
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("it ended: %w", p.err)
		default:
			return p.healthy(ctx), nil
		}
	})
	if err != nil {
		return fmt.Errorf("%s did not become healthy: %w%s", p.component, err, c.logTail(p.component))
	}
	return nil
}

// startWatchdog returns a function that ends the watchdog, to be called when nothing is left for it to do.
func startWatchdog(dir string) (func() error, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdog, "watchdog", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return func() error {
		return errors.Join(stdin.Close(), cmd.Wait())
	}, nil
}

func poll(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, condition)
}

func (c *Cluster) openLog(component Component) (*os.File, error) {
	file, err := os.OpenFile(c.logPath(component), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	c.logs = append(c.logs, file)
	return file, nil
}

func (c *Cluster) logPath(component Component) string {
	return filepath.Join(c.logDir, string(component)+".log")
}

// logTail returns the end of a component's log as part of an error message: the log itself may be about to go.
func (c *Cluster) logTail(component Component) string {
	const length = 4096
	file, err := os.Open(c.logPath(component))
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // only read from
	if info, err := file.Stat(); err == nil && info.Size() > length {
		_, _ = file.Seek(-length, io.SeekEnd) // at worst the message gets long
	}
	content, err := io.ReadAll(file)
	if err != nil || len(content) == 0 {
		return ""
	}
	return fmt.Sprintf("\nend of the log of %s:\n%s", component, content)
}
