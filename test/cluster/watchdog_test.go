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
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"pvc-protection-operator/test/cluster"
)

// ownerDir names, in the environment of a child process of the test, the folder for the child's cluster.
const ownerDir = "TEST_CLUSTER_OWNER_DIR"

// TestKilledOwner kills the process that started a cluster, and expects the cluster to go with it.
func TestKilledOwner(t *testing.T) {
	if dir := os.Getenv(ownerDir); dir != "" {
		ownCluster(t, dir)
		return
	}

	dir := t.TempDir()
	owner := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	owner.Env = append(os.Environ(), ownerDir+"="+dir)
	stdin, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }() // ends the owner if the test fails early
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}

	line, err := bufio.NewReader(stdout).ReadString('\n')
	var etcd, apiServer int
	if _, scanErr := fmt.Sscan(line, &etcd, &apiServer); err != nil || scanErr != nil {
		t.Fatalf("the owner of the cluster said %q: %v", line, errors.Join(err, scanErr))
	}
	if gone(etcd) || gone(apiServer) {
		t.Fatal("there is nothing to see: the cluster is not running")
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // tells that it was killed

	poll(t, func(context.Context) (bool, error) {
		entries, err := os.ReadDir(dir)
		return len(entries) == 0 && gone(etcd) && gone(apiServer), err
	})
}

// ownCluster starts a cluster, prints the process ids of its components and waits to be killed.
func ownCluster(t *testing.T, dir string) {
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range []cluster.Component{cluster.Etcd, cluster.APIServer} {
		pid, err := c.PID(component)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Print(pid, " ")
	}
	fmt.Println()
	_, _ = os.Stdin.Read(make([]byte, 1)) // never returns unless the test gave up
}

// gone tells whether a process has ended, be it that nobody has collected it yet, which is up to a process that
// containers may not have.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}
