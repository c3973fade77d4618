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
	"testing"
	"time"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

// TestAPIServerKilled has an API server that dies in the middle of a backlog and comes back.
func TestAPIServerKilled(t *testing.T) {
	t.Parallel()
	e := newEnvWithCluster(t, 2)
	b := e.backlog(100)
	e.start("--recheck-interval=1h")
	gate := e.proxy.HoldRequests(patches(""))
	e.deleteBacklog(b)
	e.waiting(gate, 1)
	e.fatalIf(e.cluster.StopAPIServer())
	gate.Release()
	e.fatalIf(e.cluster.StartAPIServer(t.Context()))
	e.released(b)
}

// TestEtcdPaused has an API server that nobody stores anything for, for a while.
func TestEtcdPaused(t *testing.T) {
	t.Parallel()
	e := newEnvWithCluster(t, 2)
	b := e.backlog(100)
	o := e.start("--recheck-interval=1h")
	gate := e.proxy.HoldRequests(patches(""))
	e.deleteBacklog(b)
	e.waiting(gate, 1)
	e.fatalIf(e.cluster.Pause(cluster.Etcd))
	gate.Release()
	if err := harness.Consistently(t.Context(), 20*time.Second, o.Ready); err != nil {
		t.Errorf("the operator has lost its readiness: %v", err)
	}
	e.fatalIf(e.cluster.Resume(cluster.Etcd))
	e.released(b)
}
