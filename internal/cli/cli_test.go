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

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"pvc-protection-operator/internal/cli"
)

func TestInvoked(t *testing.T) {
	tests := map[string]struct {
		argv []string
		want bool
	}{
		"nothing":                   {nil, false},
		"the manager":               {[]string{"/manager"}, false},
		"its flags":                 {[]string{"/manager", "--leader-elect", "list"}, false},
		"no command":                {[]string{"/manager", "lists"}, false},
		"explain":                   {[]string{"/manager", "explain"}, true},
		"list":                      {[]string{"bin/manager", "list", "-A"}, true},
		"completion":                {[]string{"/manager", "completion", "bash"}, true},
		"completion, by the shell":  {[]string{"/manager", "__complete", "l"}, true},
		"the plugin":                {[]string{"/usr/bin/kubectl-pvc_protection"}, true},
		"the plugin, on Windows":    {[]string{"kubectl-pvc_protection.exe", "list"}, true},
		"completion, by kubectl":    {[]string{"kubectl_complete-pvc_protection", ""}, true},
		"another plugin of kubectl": {[]string{"kubectl-pvc"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := cli.Invoked(test.argv); got != test.want {
				t.Errorf("Invoked(%q) = %t, want %t", test.argv, got, test.want)
			}
		})
	}
}

// TestWithoutCluster has what is said before a cluster is asked.
func TestWithoutCluster(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	const contexts = `{"contexts":[{"name":"prod"},{"name":"test"},{"name":"prod-2"}]}`
	if err := os.WriteFile(kubeconfig, []byte(contexts), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	const plugin = "kubectl-pvc_protection"
	tests := map[string]struct {
		argv        []string
		code        int
		out, errors string
	}{
		"help":                     {[]string{plugin, "--help"}, 0, "kubectl pvc-protection [command]", ""},
		"help of a command":        {[]string{plugin, "explain", "--help"}, 0, "  kubectl pvc-protection explain -A", ""},
		"help as the manager":      {[]string{"bin/manager", "list", "--help"}, 0, "  manager list -A --unused", ""},
		"the exit codes":           {[]string{plugin, "explain", "--help"}, 0, "  3  a claim that is being deleted cannot", ""},
		"completion script":        {[]string{plugin, "completion", "bash"}, 0, "bash completion", ""},
		"completion of commands":   {[]string{"kubectl_complete-pvc_protection", "ex"}, 0, "explain\t", ""},
		"completion of contexts":   {[]string{plugin, "__complete", "list", "--context", "prod"}, 0, "prod\nprod-2\n:4", ""},
		"completion of formats":    {[]string{plugin, "__complete", "list", "-o", ""}, 0, "wide\njson\nyaml\n:4", ""},
		"unknown command":          {[]string{plugin, "lists"}, 1, "", `unknown command "lists"`},
		"unknown flag":             {[]string{plugin, "list", "--x"}, 1, "", "unknown flag: --x"},
		"arguments of list":        {[]string{plugin, "list", "data"}, 1, "", `unknown command "data"`},
		"unknown output":           {[]string{plugin, "explain", "-o", "wide"}, 1, "", `--output "wide" is not one of: json, yaml`},
		"bad selector":             {[]string{plugin, "list", "-l", "!"}, 1, "", "--selector: "},
		"bad finalizer":            {[]string{plugin, "list", "--finalizer", "x"}, 1, "", `--finalizer "x": it has no domain`},
		"named and all namespaces": {[]string{plugin, "explain", "data", "-A"}, 1, "", "claims are either named, or selected"},
		"named and selected":       {[]string{plugin, "explain", "data", "-l", "a"}, 1, "", "claims are either named, or selected"},
		"no cluster":               {[]string{plugin, "list"}, 1, "", "no cluster to work on: set --kubeconfig"},
		"no such context":          {[]string{plugin, "list", "--context", "dev"}, 1, "", `context "dev" does not exist`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			code := cli.Execute(t.Context(), test.argv, streams)
			if code != test.code || !strings.Contains(out.String(), test.out) || !strings.Contains(errOut.String(), test.errors) {
				t.Errorf("exit code %d, printed %q, errors %q", code, out, errOut)
			}
			if code == 0 && test.out == "" || code != 0 && out.Len() > 0 {
				t.Errorf("exit code %d, but printed %q", code, out)
			}
		})
	}
}
