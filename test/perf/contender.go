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
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"pvc-protection-operator/test/cluster"
)

const (
	upstream = "upstream"
	operator = "operator"
	floor    = "floor"
)

// contender does the work of a scenario: with a process of its own or, if it has
// no command, in this one.
type contender struct {
	name string
	// agent is how its requests' user agent starts.
	agent   string
	command func(c *cluster.Cluster) *exec.Cmd
}

// isFloor is set if this process does the work.
func (ct contender) isFloor() bool { return ct.command == nil }

// allContenders returns the contenders: with the operator as shipped, and with the
// flags and the environment of each variant.
func allContenders(binary string, variants []string) []contender {
	manager := func(settings ...string) func(c *cluster.Cluster) *exec.Cmd {
		return func(c *cluster.Cluster) *exec.Cmd {
			cmd := exec.Command(binary, "--kubeconfig="+c.Kubeconfig(),
				"--health-probe-bind-address=0", "--metrics-bind-address=0")
			cmd.Env = os.Environ()
			for _, setting := range settings {
				if strings.HasPrefix(setting, "-") {
					cmd.Args = append(cmd.Args, setting)
				} else {
					cmd.Env = append(cmd.Env, setting)
				}
			}
			return cmd
		}
	}
	const agent = "pvc-protection-operator"
	all := append(make([]contender, 0, 3+len(variants)), []contender{
		{upstream, "kube-controller-manager", func(c *cluster.Cluster) *exec.Cmd {
			return exec.Command(filepath.Join(filepath.Dir(c.Kubectl()), "kube-controller-manager"),
				"--kubeconfig="+c.Kubeconfig(), "--leader-elect=false", "--secure-port=0",
				"--controllers=persistentvolumeclaim-protection-controller",
				// No limits in the client, and the Unused condition as in the operator.
				"--kube-api-qps=100000", "--kube-api-burst=100000",
				"--feature-gates=PersistentVolumeClaimUnusedSinceTime=true")
		}},
		{operator, agent, manager()},
		{floor, "floor", nil},
	}...)
	for _, settings := range variants {
		all = append(all, contender{operator + " " + settings, agent, manager(strings.Fields(settings)...)})
	}
	return all
}
