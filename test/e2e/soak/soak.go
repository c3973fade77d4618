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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/e2e/oracle"
	"pvc-protection-operator/test/harness"
)

const (
	// quietTime is how long it may take, once the faults have ended, until nothing is left to do.
	quietTime = 2 * time.Minute
	// quiet is how long nothing happens when nothing is left to do.
	quiet = 5 * time.Second
)

// Options describe a run.
type Options struct {
	Seed     uint64
	Duration time.Duration
	// Binary is the operator.
	Binary string
	// Dir is for everything that goes when the run is over, LogDir for the output of the replicas and the plan.
	Dir, LogDir string
	// Log receives what goes on.
	Log io.Writer
}

// Result is what came of a run.
type Result struct {
	// Steps were done, Moot ones found nothing to do.
	Steps, Moot int
	// Faults were injected, and those that are for requests have hit Requests of them.
	Faults, Requests int
	FaultsByKind     string
	// Starts is how often a replica was started.
	Starts int
	// Settled is how long it took after the faults until no claim was left that should be gone.
	Settled time.Duration
	Report  *oracle.Report

	wrong error
}

// Err returns an error unless all was well.
func (r *Result) Err() error {
	return errors.Join(r.Report.Err(), r.wrong)
}

// String implements fmt.Stringer.
func (r *Result) String() string {
	return fmt.Sprintf(`operations: %d, and %d that found nothing to do
faults:     %d, which hit %d requests; replicas were started %d times
            (%s)
%s
settled:    %.1fs after the last fault`,
		r.Steps, r.Moot, r.Faults, r.Requests, r.Starts, r.FaultsByKind, r.Report, r.Settled.Seconds())
}

// Run plays the plan of the seed. The error says that it could not be played; what came of it is in the result.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	plan := Plan(o.Seed, o.Duration)
	if err := writePlan(filepath.Join(o.LogDir, "plan.txt"), plan); err != nil {
		return nil, err
	}
	options := cluster.Options{ControllerManager: true, Scheduler: true, Nodes: nodes, Log: o.Log}
	if o.Seed%2 == 1 {
		// New claims have no finalizer until the operator has seen them.
		options.DisableAdmissionPlugins = []string{"StorageObjectInUseProtection"}
	}
	stage, err := NewStage(ctx, o.Dir, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	team, err := start(ctx, stage, o)
	if err != nil {
		return nil, err
	}
	defer team.stop()
	player, saboteur := &player{admin: stage.Admin}, newSaboteur(team.replicas)
	play(ctx, plan, o.Duration, player, saboteur)
	result := &Result{Steps: player.done, Moot: player.moot}
	result.Faults, result.Requests, result.FaultsByKind = saboteur.count()
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	_, _ = fmt.Fprintln(o.Log, "the faults have ended")
	var settled []oracle.Change
	result.Settled, settled = settle(ctx, stage.Recorder, o.Log)
	team.stop()
	result.wrong = errors.Join(append(player.wrong, team.err())...)
	result.Starts = team.starts()
	if result.Report, err = stage.Judge(ctx); err != nil {
		return nil, err
	}
	// What the cluster's controllers have set free since then is nobody's fault.
	result.Report.Stuck, err = oracle.Stuck(settled, harness.Finalizer)
	return result, err
}

// play does what the plan says, when it says so, or later if the cluster is slow. When it returns, no fault is left.
func play(ctx context.Context, plan []Op, duration time.Duration, player *player, saboteur *saboteur) {
	faulty, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	work := make([]chan Op, lanes)
	for lane := range work {
		work[lane] = make(chan Op, len(plan)) // nobody waits for a lane
		group.Go(func() {
			for op := range work[lane] {
				player.play(ctx, op)
			}
		})
	}
	began := time.Now()
	for _, op := range plan {
		pass(ctx, op.At-time.Since(began))
		if ctx.Err() != nil {
			break
		}
		if op.isTraffic() {
			work[op.Lane] <- op
		} else {
			saboteur.inject(faulty, op)
		}
	}
	pass(ctx, duration-time.Since(began))
	for _, lane := range work {
		close(lane)
	}
	group.Wait()
	player.side.Wait()
	player.letGo(ctx)
	cancel()
	saboteur.end()
}

// settle returns when nothing changes any more and no claim is left that should be gone, or when the time for that is
// over. It returns how long the last of these claims was there, and what has changed until it returns.
func settle(ctx context.Context, recorder *oracle.Recorder, log io.Writer) (time.Duration, []oracle.Change) {
	began := time.Now()
	changed, stuck := began, began
	changes := recorder.Changes()
	err := harness.Eventually(ctx, quietTime, func(context.Context) error {
		now := time.Now()
		if current := recorder.Changes(); len(current) != len(changes) {
			changes, changed = current, now
		}
		if left := recorder.Stuck(harness.Finalizer); left > 0 {
			stuck = now
			return fmt.Errorf("%d claims should be gone", left)
		}
		if now.Sub(changed) < quiet {
			return errors.New("something still changes")
		}
		return nil
	})
	if err != nil {
		_, _ = fmt.Fprintln(log, "not quiet:", err)
	}
	return stuck.Sub(began), changes
}

// letGo deletes the pods of some namespaces, finalizers or not, while faults may still last: what is released then is
// released after them.
func (p *player) letGo(ctx context.Context) {
	var all corev1.PodList
	if err := p.admin.List(ctx, &all); err != nil {
		p.wrong = append(p.wrong, err)
		return
	}
	for i := range all.Items {
		pod := &all.Items[i]
		lane, ok := strings.CutPrefix(pod.Namespace, "soak-")
		if !ok || (lane[0]-'0')%2 == 0 {
			continue
		}
		for _, err := range []error{
			p.removeFinalizer(ctx, pod.DeepCopy()), p.admin.Delete(ctx, pod, client.GracePeriodSeconds(0)),
		} {
			if err != nil && !isMoot(err) {
				p.wrong = append(p.wrong, err)
			}
		}
	}
}

func writePlan(file string, plan []Op) error {
	var text strings.Builder
	for _, op := range plan {
		text.WriteString(op.String() + "\n")
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// team is the replicas.
type team struct {
	replicas []*replica
	running  sync.WaitGroup
	cancel   context.CancelFunc
	outputs  []*os.File
}

func start(ctx context.Context, stage *Stage, o Options) (*team, error) {
	var deployment appsv1.Deployment
	if err := stage.Manifests.Decode("Deployment", &deployment); err != nil {
		return nil, err
	}
	args := slices.DeleteFunc(deployment.Spec.Template.Spec.Containers[0].Args, func(arg string) bool {
		return strings.HasPrefix(arg, "--metrics-bind-address=") || strings.HasPrefix(arg, "--health-probe-bind-address=")
	})
	args = append(args, "--leader-elect-resource-namespace="+harness.Namespace)

	ctx, cancel := context.WithCancel(ctx)
	t := &team{cancel: cancel}
	for i := range replicas {
		name := fmt.Sprintf("replica-%d", i)
		output, err := os.Create(filepath.Join(o.LogDir, name+".log"))
		if err != nil {
			t.stop()
			return nil, err
		}
		t.outputs = append(t.outputs, output)
		proxy, kubeconfig, err := stage.Proxy()
		if err != nil {
			t.stop()
			return nil, err
		}
		r := newReplica(name, proxy, harness.Options{Binary: o.Binary, Kubeconfig: kubeconfig, Args: args}, output)
		t.replicas = append(t.replicas, r)
		t.running.Go(func() { r.run(ctx) })
	}
	return t, nil
}

// stop stops the replicas. A second call does nothing.
func (t *team) stop() {
	t.cancel()
	t.running.Wait()
	for _, output := range t.outputs {
		_ = output.Close() // nobody writes any more
	}
}

func (t *team) err() error {
	errs := make([]error, 0, len(t.replicas))
	for _, r := range t.replicas {
		errs = append(errs, r.err())
	}
	return errors.Join(errs...)
}

func (t *team) starts() int {
	starts := 0
	for _, r := range t.replicas {
		starts += r.starts
	}
	return starts
}
