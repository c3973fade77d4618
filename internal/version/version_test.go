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

package version

import (
	"bytes"
	"errors"
	"regexp"
	"runtime"
	"testing"
)

// link sets what the linker sets, for the time of the test.
func link(t *testing.T, newVersion, newCommit string) {
	oldVersion, oldCommit := version, commit
	version, commit = newVersion, newCommit
	t.Cleanup(func() { version, commit = oldVersion, oldCommit })
}

func printed(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := Print(&out, "operator"); err != nil {
		t.Fatalf("Print() failed: %v", err)
	}
	return out.String()
}

func TestPrint(t *testing.T) {
	link(t, "v1.2.3", "0123abc")
	// The binary of a test does not say what its dependencies are.
	want := "operator v1.2.3\n" +
		"commit: 0123abc\n" +
		"go: " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	if got := printed(t); got[:min(len(want), len(got))] != want {
		t.Errorf("Print() wrote %q, want %q", got, want)
	}
}

// TestPrintUnlinked is for a binary of go build or go run.
func TestPrintUnlinked(t *testing.T) {
	link(t, "", "")
	want := regexp.MustCompile(`^operator \S+\ncommit: \S+\ngo: go\S+ \w+/\w+\n([a-z0-9./-]+: v\S+\n)*$`)
	if got := printed(t); !want.MatchString(got) {
		t.Errorf("Print() wrote %q, want it to match %s", got, want)
	}
}

func TestString(t *testing.T) {
	link(t, "v1.2.3", "")
	if got := String(); got != "v1.2.3" {
		t.Errorf("String() = %q, want what was linked in", got)
	}
	link(t, "", "")
	if got := String(); got == "" {
		t.Error("String() is empty if nothing was linked in")
	}
}

type full struct{ room int }

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestPrintFails(t *testing.T) {
	if err := Print(&full{}, "operator"); !errors.Is(err, errFull) {
		t.Errorf("Print() = %v, want the error of the writer", err)
	}
}
