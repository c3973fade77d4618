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

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// heading prints what comes next.
func heading(format string, args ...any) {
	fmt.Printf("\n=== %s\n", strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n    "))
}

// kubectl runs the command as the cluster's administrator, prints it as a user
// would type it, and prints and returns its output. A command that fails is an
// error.
func (d *demo) kubectl(ctx context.Context, args ...string) (string, error) {
	return d.kubectlExits(ctx, 0, args...)
}

// kubectlExits is kubectl for a command whose exit code says something.
func (d *demo) kubectlExits(ctx context.Context, code int, args ...string) (string, error) {
	fmt.Printf("\n$ kubectl %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, d.cluster.Kubectl(), args...)
	cmd.Dir = d.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.cluster.Kubeconfig(),
		"PATH="+d.plugins+string(os.PathListSeparator)+os.Getenv("PATH"))
	var output bytes.Buffer
	cmd.Stdout = io.MultiWriter(os.Stdout, &output)
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		return "", fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), cmp.Or(err, errors.New("exit code 0")))
	}
	return output.String(), nil
}
