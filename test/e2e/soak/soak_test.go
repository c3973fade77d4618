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

package soak_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pvc-protection-operator/test/e2e/soak"
	"pvc-protection-operator/test/harness"
)

// binary is the operator.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())  // controller-runtime's clients ask for one
	klog.SetLogger(logr.Discard()) // client-go tells of requests whose time is over
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is the system's folder for temporary files
	binary = filepath.Join(dir, "manager")
	return m.Run()
}

// shipped returns the operator, built as it is.
func shipped(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	must(t, harness.Build(t.Context(), binary))
	return binary
}

// TestSoak plays the plan of SOAK_SEED, which is random if unset, for SOAK_DURATION, which is a minute if unset, with
// the operator in the file SOAK_BINARY, which is built from the working tree if unset. With -artifacts, the plan and the
// output of the replicas are kept.
func TestSoak(t *testing.T) {
	options := soak.Options{
		Seed:     seed(t),
		Duration: duration(t),
		Binary:   os.Getenv("SOAK_BINARY"),
		Dir:      t.TempDir(),
		LogDir:   t.ArtifactDir(),
		Log:      t.Output(),
	}
	if options.Binary == "" {
		options.Binary = shipped(t)
	}
	t.Logf("seed:       %d for %s; replay it with SOAK_SEED=%[1]d", options.Seed, options.Duration)
	result, err := soak.Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed:       %d\n%s", options.Seed, result)
	if err := result.Err(); err != nil {
		t.Error(err)
	}
	if result.Report.Releases == 0 {
		t.Error("no release was checked")
	}
}

func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("SOAK_SEED")
	if text == "" {
		return rand.Uint64N(1_000_000)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal("SOAK_SEED:", err)
	}
	return seed
}

func duration(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SOAK_DURATION")
	if text == "" {
		return time.Minute
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal("SOAK_DURATION:", err)
	}
	return duration
}
