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

// Package cli is the kubectl plugin pvc-protection: it reads claims and pods and
// prints package explain's reports. It never writes to the cluster.
package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"pvc-protection-operator/internal/version"
)

const (
	// pluginName is the file name by which kubectl finds the plugin.
	pluginName = "kubectl-pvc_protection"
	// completerName is the file name by which kubectl asks for completions.
	completerName = "kubectl_complete-pvc_protection"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitHeld  = 3
)

// errHeld is for the exit code only: the report says it.
var errHeld = errors.New("a claim cannot go by itself")

// commands are those of newRoot, and those that cobra adds to them.
var commands = []string{
	"explain", "list", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd,
}

// Invoked reports whether the arguments, of which the first is the program, are
// the plugin's and not the manager's: by the name of the program or by the name
// of a command.
func Invoked(argv []string) bool {
	switch programName(argv) {
	case pluginName, completerName:
		return true
	}
	return len(argv) > 1 && slices.Contains(commands, argv[1])
}

func programName(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
}

// Execute runs the command that the arguments name, of which the first is the
// program, and returns the exit code.
func Execute(ctx context.Context, argv []string, streams genericiooptions.IOStreams) int {
	program, args := programName(argv), argv[min(1, len(argv)):]
	if program == completerName {
		program, args = pluginName, append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	root := newRoot(program, streams) //nolint:contextcheck // cobra hands the context to the commands.
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errHeld):
		return exitHeld
	default:
		_, _ = fmt.Fprintf(streams.ErrOut, "error: %v\n", err)
		return exitError
	}
}

func newRoot(program string, streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   program,
		Short: "Say who uses PersistentVolumeClaims, and why deleted ones are still there",
		Long: `Say who uses PersistentVolumeClaims, and why deleted ones are still there.

Everything is read with your own rights: to get and list claims and pods is enough,
as by the ClusterRole view. It works with and without the operator in the cluster.`,
		Version:       version.String(),
		SilenceErrors: true, // Execute prints them
		SilenceUsage:  true,
	}
	if program == pluginName {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl pvc-protection"}
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	s := newSettings(root.DisplayName(), streams)
	s.addFlags(root)
	root.AddCommand(newExplain(s), newList(s))
	return root
}
