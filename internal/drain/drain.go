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

// Package drain takes a finalizer of the operator's own off all claims, so that the
// operator can be uninstalled and strands none.
package drain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"pvc-protection-operator/internal/controller"
)

// Command is the first argument by which the program is told to drain.
const Command = "drain-finalizers"

// operatorName names the operator's lease, and is the label of what config installs.
const operatorName = "pvc-protection-operator"

const (
	// maxPasses is how often the claims are gone through. After that, somebody
	// keeps putting the finalizer on, or claims keep failing.
	maxPasses = 10
	// pause is between two passes: time for somebody to put the finalizer on
	// again, and to be noticed.
	pause = time.Second
	// settleTime is how long after the deletion of an admission policy no API
	// server applies it any more: they poll their watches every second.
	settleTime = 5 * time.Second
)

// Run drains as the arguments say, on the cluster that connect returns once the flags
// are parsed. It returns an error unless no claim has the finalizer in the end.
func Run(ctx context.Context, args []string, connect func() (*rest.Config, error), out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	config, err := connect()
	if err != nil {
		return err
	}
	d := &drainer{options: *o, progress: progress{out: out}, kept: sets.New[types.UID]()}
	if d.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if d.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if err := d.run(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return nil
}

type drainer struct {
	options
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	progress progress
	// kept are the claims that were said to be in use.
	kept sets.Set[types.UID]
}

func (d *drainer) run(ctx context.Context) error {
	if err := d.stopSources(ctx); err != nil {
		return err
	}
	settled := time.Now()
	if d.stop {
		settled = settled.Add(settleTime)
	}
	for n := 1; ; n++ {
		began := time.Now()
		p, err := d.pass(ctx)
		if err != nil {
			return err
		}
		if d.dryRun || n == maxPasses || p.idle() && !began.Before(settled) {
			return d.conclude(p)
		}
		select {
		case <-time.After(max(pause, time.Until(settled))):
		case <-ctx.Done():
			return fmt.Errorf("stopped before all claims were drained, run it again: %w", context.Cause(ctx))
		}
	}
}

// conclude says what there is after the last pass.
func (d *drainer) conclude(last *pass) error {
	if d.dryRun {
		d.progress.printf("%d claims would lose the finalizer %s", last.taken, d.finalizer)
	} else {
		d.progress.printf("%d claims have lost the finalizer %s", d.progress.taken, d.finalizer)
	}
	d.progress.printf("of %d claims, %d have %s, which the in-tree controller serves where it is on, and %d have no such protection",
		last.looked, last.inTree, controller.DefaultFinalizer, last.looked-last.inTree)
	switch {
	case last.failed > 0:
		return fmt.Errorf("%d claims still have the finalizer %s because it could not be taken off, run it again: %w",
			last.failed, d.finalizer, last.err)
	case last.held > 0:
		return fmt.Errorf("%d claims still have the finalizer %s because they are being deleted and pods use them: "+
			"delete these pods and run it again", last.held, d.finalizer)
	case !d.dryRun && !last.idle():
		return errors.New("somebody keeps putting the finalizer " + d.finalizer + " on claims: " +
			"look for another installation of the operator, stop it and run this again")
	}
	return nil
}
