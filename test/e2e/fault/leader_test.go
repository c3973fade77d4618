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

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

// replicas are two operators, the first of which leads. Each has a proxy of its own, the first that of the env.
type replicas struct {
	leader, standby *harness.Operator
	standbyProxy    *faultproxy.Proxy
}

func (e *env) startReplicas() *replicas {
	e.Helper()
	e.allowElection()
	args := []string{"--recheck-interval=1h", "--leader-elect", "--leader-elect-resource-namespace=" + e.namespace}
	r := &replicas{leader: e.start(args...), standbyProxy: e.newProxy()}
	e.eventually("the first operator has to lead", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := e.admin.Get(ctx, key(e.namespace, harness.Lease), &lease); err != nil {
			return err
		}
		if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
			return errors.New("nobody leads")
		}
		return nil
	})
	r.standby = e.startAs(r.standbyProxy, e.kubeconfig, args...)
	return r
}

// allowElection gives the operator the role for its election in the first namespace, so that tests do not meet at one
// lease.
func (e *env) allowElection() {
	e.Helper()
	var shipped rbacv1.Role
	e.fatalIf(suite.manifests.Decode("Role", &shipped))
	meta := metav1.ObjectMeta{Namespace: e.namespace, Name: shipped.Name}
	e.create(&rbacv1.Role{ObjectMeta: meta, Rules: shipped.Rules})
	e.create(&rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: shipped.Name},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: harness.Namespace, Name: harness.ServiceAccount,
		}},
	})
}

// TestLeaderKilled has a leader that is killed in the middle of a backlog.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 2)
	b := e.backlog(150)
	r := e.startReplicas()
	const before = 100
	gate := faultproxy.NewGate()
	working := e.proxy.Add(faultproxy.Rule{Match: patches(""), Skip: before, Fault: gate.HoldRequest()})
	e.deleteBacklog(b)
	e.hits(working, 1)
	if writes := r.standbyProxy.Count(patches("")); writes > 0 {
		t.Errorf("the standby has sent %d patches", writes)
	}
	takenOver := r.standbyProxy.Add(faultproxy.Rule{Match: patches("")})
	e.fatalIf(r.leader.Kill())
	// The lease lasts for 15 seconds, and is looked at every two.
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	defer cancel()
	e.fatalIf(takenOver.Wait(ctx, 1))
	e.released(b)
	if writes := r.standbyProxy.Count(patches("")); writes < len(b.free)-before {
		t.Errorf("the standby has sent %d patches", writes)
	}
}

// TestLeaderPaused has a leader that stands still for longer than its lease while it has evidence to act on, and goes on
// while another one leads. By then, another claim has the name of the one that the evidence is about.
func TestLeaderPaused(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(*env) *faultproxy.Gate{
		"list on its way back": func(e *env) *faultproxy.Gate { return e.proxy.HoldResponses(liveLists(e.namespace)) },
		"patch on its way":     func(e *env) *faultproxy.Gate { return e.proxy.HoldRequests(patches(e.namespace)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const count = 20 // more than are written at once
			e := newEnv(t, 2)
			made := e.claimsIn(e.namespace, count)
			other := e.namespaces[1]
			backlog := e.claimsIn(other, 200)
			r := e.startReplicas()
			gate := hold(e)
			e.deleteClaims(made)
			e.waiting(gate, 1)
			e.fatalIf(r.leader.Signal(syscall.SIGSTOP))

			e.gone(made...) // the standby has taken over
			made = e.claimsIn(e.namespace, count)
			var users []*corev1.Pod
			for i, claim := range made {
				users = append(users,
					e.pod(fmt.Sprintf("web-%d", i), harness.OnNode(node), harness.WithClaim(claim.Name)))
			}
			e.deleteClaims(made)
			working := r.standbyProxy.Add(faultproxy.Rule{Match: patches(other)})
			e.deleteClaims(backlog)
			e.hits(working, 1)

			gate.Release()
			e.held(made...)
			e.fatalIf(r.leader.Signal(syscall.SIGCONT))
			exitCode, err := r.leader.Wait(t.Context())
			e.fatalIf(err)
			if exitCode == 0 {
				t.Error("the old leader has ended with exit code 0, as if it had been told to")
			}
			e.allGone([]string{other})
			e.held(made...)
			e.kill(users...)
			e.gone(made...)
		})
	}
}
