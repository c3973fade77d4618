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

// The benchmark compares the operator with the controller in
// kube-controller-manager, and with the floor: a loop that sends the same requests,
// as many in flight, and checks nothing. All work in turn on the same objects in the
// same cluster, so that their ratios mean something on any machine; the times
// themselves do not.
//
//	make bench
//	make bench BENCHFLAGS='--only backlog --repeat 5'
//	make bench BENCHFLAGS='--only backlog-5000 --variant "--concurrent-writes=8"'
//
// The results go to a folder as JSON. The program in test/perf/report draws them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pvc-protection-operator/test/harness"
)

func main() {
	log.SetLogger(logr.Discard()) // Only controller-runtime's clients would use it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	repeat   int
	only     string
	output   string
	patience time.Duration
	variants []string
}

func parse() (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.IntVar(&o.repeat, "repeat", 3, "how often each scenario runs; the table has the medians")
	fs.StringVar(&o.only, "only", "", "run only the scenarios whose names contain one of these, separated by commas")
	fs.StringVar(&o.output, "output", "dist/bench", "the folder for results.json")
	fs.DurationVar(&o.patience, "patience", 10*time.Minute, "how long a contender may take")
	fs.Func("variant", "run the operator with these flags or variables, such as GOGC=50, too; may be given several times",
		func(value string) error {
			o.variants = append(o.variants, value)
			return nil
		})
	if err := fs.Parse(os.Args[1:]); err != nil {
		return nil, err
	}
	if o.repeat < 1 || o.patience <= 0 || fs.NArg() > 0 {
		return nil, fmt.Errorf("--repeat and --patience must be positive, and there are no arguments; got %d, %s and %q",
			o.repeat, o.patience, fs.Args())
	}
	return o, nil
}

// selected returns the scenarios that are to run.
func (o *options) selected() ([]scenario, error) {
	var selected []scenario
	names := make([]string, 0, len(scenarios))
	for _, s := range scenarios {
		names = append(names, s.Name)
		if slices.ContainsFunc(strings.Split(o.only, ","), func(part string) bool { return strings.Contains(s.Name, part) }) {
			selected = append(selected, s)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("--only=%s: no such scenario, there are %s", o.only, strings.Join(names, ", "))
	}
	return selected, nil
}

func run(ctx context.Context) (err error) {
	o, err := parse()
	if err != nil {
		return err
	}
	selected, err := o.selected()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary := filepath.Join(dir, "manager")
	if err := harness.Build(ctx, binary); err != nil {
		return err
	}
	contenders := allContenders(binary, o.variants)

	var results []result
	for _, s := range selected {
		for n := range o.repeat {
			fmt.Printf("%s, run %d of %d\n", s.Name, n+1, o.repeat)
			measured, err := s.run(ctx, contenders, n, o.patience)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			results = append(results, measured...)
			// What has been measured is not lost if a later scenario fails.
			if err := save(o.output, results); err != nil {
				return err
			}
		}
		printTable(os.Stdout, s, contenders, results)
	}
	fmt.Printf("\nthe results are in %s\n", o.output)
	return nil
}

func save(folder string, results []result) error {
	content, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "results.json"), content, 0o644)
}
