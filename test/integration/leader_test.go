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
	"slices"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"pvc-protection-operator/test/harness"
)

// TestLeaderElection has two replicas, as the Deployment starts them, and stops the leader.
func TestLeaderElection(t *testing.T) {
	e := newEnv(t)
	leases := watchLease(e)
	leader := startOperator(t, harness.Options{Args: deploymentArgs(t)})
	e.claim("first")
	var first string
	e.eventually("the first operator has to lead", func(context.Context) error {
		holders := leases.holders()
		if len(holders) == 0 || holders[len(holders)-1] == "" {
			return fmt.Errorf("the holders were %q", holders)
		}
		first = holders[len(holders)-1]
		return nil
	})

	standby := startOperator(t, harness.Options{Args: deploymentArgs(t)}) // and it is ready
	claim := e.claim("data")
	used := e.claim("used")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("used"))
	e.delete(claim, used)
	e.gone(claim)
	e.held(used)
	if writes, err := standby.Metric(t.Context(), "pvc_protection_writes_total"); err != nil || writes > 0 {
		t.Errorf("the standby has written to %.0f claims, error %v", writes, err)
	}
	if writes, err := leader.Metric(t.Context(), "pvc_protection_writes_total"); err != nil || writes == 0 {
		t.Errorf("the leader has written to %.0f claims, error %v", writes, err)
	}
	e.fatalIf(standby.Ready(t.Context()))

	e.fatalIf(leader.Stop(t.Context()))
	e.held(used) // this needs a leader
	e.kill(pod)
	e.gone(used)
	e.claim("second")
	if writes, err := standby.Metric(t.Context(), "pvc_protection_writes_total"); err != nil || writes == 0 {
		t.Errorf("the new leader has written to %.0f claims, error %v", writes, err)
	}

	e.eventually("the lease has to be given up by the one and taken by the other", func(context.Context) error {
		holders := leases.holders()
		last := slices.Index(holders, first)
		if rest := holders[last+1:]; len(rest) != 2 || rest[0] != "" || rest[1] == "" {
			return fmt.Errorf("the holders were %q, the first leader was %q", holders, first)
		}
		return nil
	})
}

// TestNoLeaseAccess has an operator that could never lead.
func TestNoLeaseAccess(t *testing.T) {
	e := newEnv(t)
	account := e.serviceAccount("no-lease")
	e.bind(account, harness.ManagerRole)
	e.bind(account, harness.UnusedConditionRole)
	fails(t, harness.Options{
		Kubeconfig: e.accountKubeconfig(account.Name),
		Args: []string{
			"--leader-elect", "--leader-elect-resource-namespace=" + e.namespace, "--watch-namespaces=" + e.namespace,
		},
	}, "create leases.coordination.k8s.io", "update leases.coordination.k8s.io", harness.Lease, e.namespace)
}

// leaseWatch collects who held the leader election lease, one after the other.
type leaseWatch struct {
	mu   sync.Mutex
	seen []string
}

func watchLease(e *env) *leaseWatch {
	e.Helper()
	clientset, err := kubernetes.NewForConfig(suite.cluster.Config())
	e.fatalIf(err)
	events, err := clientset.CoordinationV1().Leases(harness.Namespace).Watch(e.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + harness.Lease,
	})
	e.fatalIf(err)
	e.Cleanup(events.Stop)

	w := &leaseWatch{}
	go func() {
		for event := range events.ResultChan() {
			if lease, ok := event.Object.(*coordinationv1.Lease); ok {
				w.add(lease)
			}
		}
	}()
	return w
}

func (w *leaseWatch) add(lease *coordinationv1.Lease) {
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) == 0 || w.seen[len(w.seen)-1] != holder {
		w.seen = append(w.seen, holder)
	}
}

func (w *leaseWatch) holders() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}
