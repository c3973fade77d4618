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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// TestHandoverBetweenVersions updates an older operator, and goes back, while there is work to do. OLD_MANAGER is the
// binary of the older version; without it, it is this one by another name.
func TestHandoverBetweenVersions(t *testing.T) {
	e := newEnv(t)
	leases := watchLease(e)
	older := olderVersion(e)

	leader := startVersion(t, older)
	e.claim("first")
	for i, newcomer := range []string{suite.binary, older} {
		name := func(claim string) string { return fmt.Sprintf("%s-%d", claim, i) }
		standby := startVersion(t, newcomer)
		used, kept := e.claim(name("used")), e.claim(name("kept"))
		usedBy := e.pod(name("used-by"), harness.OnNode(node), harness.WithClaim(used.Name))
		keptBy := e.pod(name("kept-by"), harness.OnNode(node), harness.WithClaim(kept.Name))
		e.delete(used, kept)
		e.held(used, kept)
		if writes, err := standby.Metric(t.Context(), "pvc_protection_writes_total"); err != nil || writes > 0 {
			t.Errorf("the standby has written to %.0f claims, error %v", writes, err)
		}

		// The one has to stop in the middle of this, and the other to find what is left.
		many := createTogether(t, []*env{e}, 200)
		deleteTogether(t, many)
		e.fatalIf(leader.Stop(t.Context()))
		e.kill(usedBy)
		e.claim(name("new"))
		e.gone(append(many, used)...)
		e.held(kept)
		e.kill(keptBy)
		e.gone(kept)
		if writes, err := standby.Metric(t.Context(), "pvc_protection_writes_total"); err != nil || writes == 0 {
			t.Errorf("the new leader has written to %.0f claims, error %v", writes, err)
		}
		leader = standby
	}

	var leaders []string
	e.eventually("the lease has to be passed on twice", func(context.Context) error {
		holders := leases.holders()
		if len(holders) > 0 && holders[0] == "" {
			holders = holders[1:] // it was left by another test
		}
		if len(holders) != 5 || holders[1] != "" || holders[3] != "" {
			return fmt.Errorf("the holders were %q", holders)
		}
		leaders = slices.DeleteFunc(holders, func(holder string) bool { return holder == "" })
		return nil
	})
	var all coordinationv1.LeaseList
	e.fatalIf(suite.admin.List(t.Context(), &all, client.InNamespace(harness.Namespace)))
	if len(all.Items) != 1 {
		t.Errorf("there are %d leases", len(all.Items))
	}
	for _, leader := range leaders {
		e.eventually("an event has to tell who leads", func(ctx context.Context) error {
			var events corev1.EventList
			if err := suite.admin.List(ctx, &events, client.InNamespace(harness.Namespace)); err != nil {
				return err
			}
			if !slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
				return event.InvolvedObject.Kind == "Lease" && event.InvolvedObject.Name == harness.Lease &&
					event.Message == leader+" became leader"
			}) {
				return fmt.Errorf("no event of %d is about leader %s", len(events.Items), leader)
			}
			return nil
		})
	}
}

// olderVersion returns the binary of another version.
func olderVersion(e *env) string {
	e.Helper()
	if binary := os.Getenv("OLD_MANAGER"); binary != "" {
		return binary
	}
	root, err := harness.ModuleDir(e.Context())
	e.fatalIf(err)
	binary := filepath.Join(e.TempDir(), "manager")
	build := exec.CommandContext(e.Context(), "go", "build", "-o", binary,
		"-ldflags=-X=pvc-protection-operator/internal/version.version=v0.0.1-older", ".")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		e.Fatalf("building the older version: %v\n%s", err, output)
	}
	return binary
}

// startVersion is startOperator with what the Deployment says, of another version.
func startVersion(t *testing.T, binary string) *harness.Operator {
	t.Helper()
	defer func(current string) { suite.binary = current }(suite.binary)
	suite.binary = binary
	return startOperator(t, harness.Options{Args: deploymentArgs(t)})
}
