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
		d.progress.printf("would take the finalizer %s off %s", d.finalizer, claims(last.taken))
	} else {
		d.progress.printf("took the finalizer %s off %s", d.finalizer, claims(d.progress.taken))
	}
	d.progress.printf("%s in the cluster: %d with %s, which the in-tree controller serves where it is on, %d without",
		claims(last.looked), last.inTree, controller.DefaultFinalizer, last.looked-last.inTree)
	switch {
	case last.failed > 0:
		return fmt.Errorf("the finalizer %s is still on %s that could not be written, run this again: %w",
			d.finalizer, claims(last.failed), last.err)
	case last.held > 0:
		return fmt.Errorf("the finalizer %s is still on %s in deletion that pods use: delete the pods and run this again",
			d.finalizer, claims(last.held))
	case !d.dryRun && !last.idle():
		return errors.New("somebody keeps putting the finalizer " + d.finalizer + " on claims: " +
			"look for another installation of the operator, stop it and run this again")
	}
	return nil
}

func claims(count int) string {
	if count == 1 {
		return "1 claim"
	}
	return fmt.Sprintf("%d claims", count)
}
