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

package integration_test

import (
	"context"
	"strings"
	"testing"

	"pvc-protection-operator/test/harness"
)

// startOperator starts an operator that is stopped with the test, and waits until it is ready.
func startOperator(t *testing.T, options harness.Options) *harness.Operator {
	t.Helper()
	o := launchOperator(t, options)
	if err := o.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// launchOperator is startOperator without the wait. The options default to the operator's own ServiceAccount.
func launchOperator(t *testing.T, options harness.Options) *harness.Operator {
	t.Helper()
	options.Binary = suite.binary
	if options.Kubeconfig == "" {
		options.Kubeconfig = suite.kubeconfig
	}
	o, err := harness.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.StopIfRunning(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the end of what the operator printed:\n%s", tail(o.Output()))
		}
	})
	return o
}

// tail returns the last lines of a text.
func tail(text string) string {
	const count = 60
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(len(lines)-count, 0):], "")
}
