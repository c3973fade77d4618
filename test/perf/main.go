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
// kube-controller-manager, and with the floor: a loop that sends the same patches,
// as many in flight, and checks nothing. All three work in turn on the same objects
// in the same cluster, so that their ratios mean something on any machine; the
// times themselves do not.
//
//	go run ./test/perf --repeat 3 --output dist/bench.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pvc-protection-operator/test/harness"
)

func main() {
	log.SetLogger(logr.Discard()) // Only controller-runtime's clients would use it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	repeat := flag.Int("repeat", 3, "how often each scenario runs; the table has the medians")
	only := flag.String("only", "", "run only the scenarios whose names contain this")
	output := flag.String("output", "", "the file for all results as JSON")
	flag.Parse()
	if *repeat < 1 || flag.NArg() > 0 {
		return fmt.Errorf("--repeat must be at least 1, and there are no arguments; got %d and %q", *repeat, flag.Args())
	}
	selected := slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !strings.Contains(s.Name, *only) })
	if len(selected) == 0 {
		return fmt.Errorf("no scenario has %q in its name", *only)
	}

	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary := dir + "/manager"
	if err := harness.Build(ctx, binary); err != nil {
		return err
	}

	var results []result
	for _, s := range selected {
		for n := range *repeat {
			fmt.Printf("%s, run %d of %d\n", s.Name, n+1, *repeat)
			measured, err := s.run(ctx, binary, n)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			results = append(results, measured...)
		}
	}
	if *output != "" {
		content, err := json.MarshalIndent(results, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*output, content, 0o644); err != nil {
			return err
		}
	}
	printTable(os.Stdout, results)
	return nil
}
