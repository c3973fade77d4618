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
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"

	"pvc-protection-operator/test/cluster"
)

const (
	// A process is quiet once it has used no more than quietCPU within quietFor,
	// which is looked at every quietStep. Its housekeeping takes less.
	quietFor  = 5 * time.Second
	quietCPU  = 30 * time.Millisecond
	quietStep = 250 * time.Millisecond
)

// process is a contender at work.
type process struct {
	cmd     *exec.Cmd
	output  strings.Builder
	started time.Time
}

func startProcess(ct contender, c *cluster.Cluster) (*process, error) {
	p := &process{cmd: ct.command(c), started: time.Now()}
	p.cmd.Stderr = &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return p, p.cmd.Start()
}

// cpu returns the CPU time that the process has used.
func (p *process) cpu() (time.Duration, error) { return cpuOf(p.cmd.Process.Pid) }

// stop kills the process and adds what it used to the result.
func (p *process) stop(r *result) error {
	// Not that of the process's resource usage, which begins with this process's own.
	peak, err := peakOf(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	killed := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // The error is that it was killed.
	if killed != nil {
		return fmt.Errorf("it had ended: %w\n%s", killed, p.output.String())
	}
	r.set(cpuSeconds, (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Seconds())
	r.set(peakRSS, float64(peak)/(1<<20))
	return nil
}

// settle waits until the process is quiet, and returns since when it is.
func (p *process) settle(ctx context.Context) (since time.Time, err error) {
	used, since := time.Duration(0), p.started
	err = wait.PollUntilContextCancel(ctx, quietStep, false, func(context.Context) (bool, error) {
		now, err := p.cpu()
		if now-used > quietCPU {
			used, since = now, time.Now()
		}
		return time.Since(since) > quietFor, err
	})
	return since, err
}

// cpuOf returns the CPU time that a process has used.
func cpuOf(pid int) (time.Duration, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

// peakOf returns the most memory that a process has had resident, in bytes.
func peakOf(pid int) (uint64, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	status, err := proc.NewStatus()
	return status.VmHWM, err
}
