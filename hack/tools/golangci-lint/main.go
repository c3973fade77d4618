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

// Command golangci-lint is golangci-lint with the Kubernetes logcheck plugin compiled in.
//
// It is what "golangci-lint custom" would generate. That command clones golangci-lint's repository; this module
// needs nothing but Go modules, so that linting works wherever the build does, and go.sum pins every part of it.
// It is a module of its own because a linter's dependencies must not reach the operator's go.mod.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"

	// Registers the linter "logcheck", which .golangci.yml enables as a module plugin.
	_ "sigs.k8s.io/logtools/logcheck/gclplugin"
)

const linter = "github.com/golangci/golangci-lint/v2"

func main() {
	if err := commands.Execute(buildInfo()); err != nil {
		fmt.Fprintln(os.Stderr, "golangci-lint:", err)
		os.Exit(exitcodes.Failure)
	}
}

// buildInfo reports the version of golangci-lint that go.mod asks for: the version of this module means nothing.
func buildInfo() commands.BuildInfo {
	info := commands.BuildInfo{Version: "unknown", Commit: "none, built from modules", Date: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.GoVersion = build.GoVersion
	for _, dep := range build.Deps {
		if dep.Path == linter {
			info.Version = dep.Version
		}
	}
	return info
}
