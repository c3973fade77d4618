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

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

const (
	// restartDelay is how long a replica that has ended is away.
	restartDelay = 500 * time.Millisecond
	// askPatience is how long a replica has to say whether it leads. One that is paused says nothing.
	askPatience = 300 * time.Millisecond
	// stopPatience is how long a replica has to end in order: the grace period of config/manager.
	stopPatience = 30 * time.Second
)

// replica is one of the operators, which is started again whenever it has ended, as by a Deployment.
type replica struct {
	name    string
	options harness.Options
	proxy   *faultproxy.Proxy

	busy sync.Mutex

	mu      sync.Mutex
	current *harness.Operator
	starts  int
	wrong   []error
}

// run runs the replica until the context ends, and then stops it.
func (r *replica) run(ctx context.Context) {
	for ctx.Err() == nil {
		operator, err := harness.Start(r.options)
		if err != nil {
			r.fail(err)
			return
		}
		r.mu.Lock()
		r.current = operator
		r.starts++
		r.mu.Unlock()

		exitCode, err := operator.Wait(ctx)
		if err != nil { // the context has ended
			stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
			r.fail(operator.Stop(stopCtx))
			cancel()
			r.fail(operator.Kill())
		}
		r.inspect(operator.Output(), exitCode)
		pass(ctx, restartDelay)
	}
}

// inspect looks for an end that no fault excuses.
func (r *replica) inspect(output string, exitCode int) {
	for _, sign := range []string{"panic:", "Observed a panic", "WARNING: DATA RACE", "fatal error:"} {
		if at := strings.Index(output, sign); at >= 0 {
			r.fail(fmt.Errorf("%s, exit code %d: %s", r.name, exitCode, output[at:min(at+4000, len(output))]))
			return
		}
	}
}

func (r *replica) fail(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Errorf("%s: %w", r.name, err))
}

// err returns what must not have happened.
func (r *replica) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.wrong...)
}

func (r *replica) operator() *harness.Operator {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

func (r *replica) leads(ctx context.Context) bool {
	operator := r.operator()
	if operator == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	leads, err := operator.Metric(ctx, "leader_election_master_status")
	return err == nil && leads == 1
}

// disturb kills, stops or pauses the replica. It returns false if somebody is at it already.
func (r *replica) disturb(ctx context.Context, op Op) bool {
	operator := r.operator()
	if operator == nil || !r.busy.TryLock() {
		return false
	}
	go func() {
		defer r.busy.Unlock()
		switch op.Kind {
		case Kill:
			r.fail(operator.Kill())
		case Stop:
			_ = operator.Signal(syscall.SIGTERM) // it may have ended
			pass(ctx, op.For)                    // nobody kills it before it had the time to end in order
		case Pause:
			_ = operator.Signal(syscall.SIGSTOP)
			pass(ctx, op.For)
			_ = operator.Signal(syscall.SIGCONT)
		}
	}()
	return true
}

// resume makes sure that the replica is not paused.
func (r *replica) resume() {
	r.busy.Lock() // the pause ends with the context of the faults
	defer r.busy.Unlock()
}

// newReplica returns a replica that reaches the API server through a proxy of its own.
func newReplica(name string, proxy *faultproxy.Proxy, options harness.Options, output io.Writer) *replica {
	options.Output = output
	return &replica{name: name, proxy: proxy, options: options}
}
