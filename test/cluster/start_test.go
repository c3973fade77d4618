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

package cluster_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"pvc-protection-operator/test/cluster"
)

func TestStartNamesMissingBinaries(t *testing.T) {
	binDir, dir := t.TempDir(), t.TempDir()
	_, err := cluster.Start(t.Context(), cluster.Options{BinDir: binDir, Dir: dir, Nodes: 1})
	if err == nil {
		t.Fatal("started without binaries")
	}
	for _, want := range []string{"etcd", "kube-apiserver", "kubectl", "kwok", binDir, "make cluster-binaries"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q: %v", want, err)
		}
	}
	mustBeEmpty(t, dir)
}

func TestStartRefusesUnknownAuditLevel(t *testing.T) {
	_, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir(), Audit: "Everything"})
	if want := `unknown audit level "Everything"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	// Long enough for the first processes to be there, too short for them to become ready.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	dir := t.TempDir()
	if _, err := cluster.Start(ctx, cluster.Options{Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
	mustBeEmpty(t, dir)
}

func TestStartTellsWhyAComponentFailed(t *testing.T) {
	dir := t.TempDir()
	_, err := cluster.Start(t.Context(), cluster.Options{
		Dir:            dir,
		APIServerFlags: cluster.Flags{"no-such-flag": "true"},
	})
	if want := "unknown flag: --no-such-flag"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one that says %q", err, want)
	}
	mustBeEmpty(t, dir)
}

func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Errorf("a failed start left %v behind", entries)
	}
}
