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

// Package version says what this binary was built from.
package version

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
)

var (
	// version and commit are set by the linker (see the Makefile):
	//
	//	-X pvc-protection-operator/internal/version.version=v1.2.3
	version, commit string
)

// libraries are the modules that Print lists.
var libraries = []string{"sigs.k8s.io/controller-runtime", "k8s.io/client-go"}

// String returns the version that was linked in, or that of the module.
func String() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		return cmp.Or(info.Main.Version, "(devel)")
	}
	return cmp.Or(version, "(devel)")
}

// Print writes the version of the program of that name, its commit, and the
// versions of Go and of the libraries that matter.
func Print(w io.Writer, program string) error {
	revision := cmp.Or(commit, "unknown")
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && commit == "" {
			revision = setting.Value
		}
	}
	if _, err := fmt.Fprintf(w, "%s %s\ncommit: %s\ngo: %s %s/%s\n",
		program, String(), revision, runtime.Version(), runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	for _, dependency := range info.Deps {
		if slices.Contains(libraries, dependency.Path) {
			if _, err := fmt.Fprintf(w, "%s: %s\n", dependency.Path, dependency.Version); err != nil {
				return err
			}
		}
	}
	return nil
}
