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

package explain_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pvc-protection-operator/internal/explain"
)

func lease(namespace, holder string, renewed time.Duration) []coordinationv1.Lease {
	return []coordinationv1.Lease{{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lease"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &holder,
			LeaseDurationSeconds: new(int32(15)),
			RenewTime:            new(metav1.NewMicroTime(now.Add(-renewed))),
		},
	}}
}

func operator(change ...func(*explain.Operator)) []explain.Operator {
	o := explain.Operator{Namespace: "system", Name: "manager", Finalizer: finalizer, Replicas: 2, Available: 1}
	for _, c := range change {
		c(&o)
	}
	return []explain.Operator{o}
}

func TestServedBy(t *testing.T) {
	down := func(o *explain.Operator) { o.Available = 0 }
	ofAnother := func(o *explain.Operator) { o.Finalizer = foreign }
	watching := func(namespaces ...string) func(*explain.Operator) {
		return func(o *explain.Operator) { o.WatchNamespaces = namespaces }
	}
	const (
		incomplete = "deployments is forbidden"
		off        = "kube-controller-manager runs without it"
		noOperator = "no operator serves this finalizer"
	)
	tests := map[string]struct {
		serving   explain.Serving
		finalizer string
		want      explain.Server
		evidence  string
	}{
		"no operator": {explain.Serving{}, finalizer, explain.ByInTree,
			noOperator + ", it is the in-tree controller's"},
		"no operator for a finalizer of one's own": {explain.Serving{}, foreign, explain.ByNobody, noOperator},
		"a finalizer of one's own, in-tree off":    {explain.Serving{InTreeOff: off}, foreign, explain.ByNobody, noOperator},
		"nobody": {explain.Serving{InTreeOff: off}, finalizer, explain.ByNobody,
			noOperator + "; " + off},
		"nobody may look": {explain.Serving{Incomplete: incomplete}, finalizer, explain.ByUnknown, incomplete},
		"a replica is available": {explain.Serving{Operators: operator()}, finalizer, explain.ByOperator,
			"Deployment system/manager has 1 of 2 replicas available"},
		"no replica, but a lease": {
			explain.Serving{Operators: operator(down), Leases: lease("system", "a", 3*time.Second)}, finalizer, explain.ByOperator,
			"Deployment system/manager, its Lease was renewed 3s ago"},
		"a lease, and nobody may look": {
			explain.Serving{Incomplete: incomplete, Leases: lease("system", "a", 3*time.Second)}, finalizer, explain.ByOperator,
			"Lease system/lease was renewed 3s ago"},
		"an old lease": {explain.Serving{Leases: lease("system", "a", 16*time.Second)}, finalizer, explain.ByInTree,
			noOperator + ", it is the in-tree controller's"},
		"a lease that was given up": {explain.Serving{Leases: lease("system", "", 0)}, finalizer, explain.ByInTree,
			noOperator + ", it is the in-tree controller's"},
		"a lease of somebody else": {
			explain.Serving{Operators: operator(down), Leases: lease("other", "a", 0), InTreeOff: off}, finalizer, explain.ByOperator,
			"Lease other/lease was renewed 0s ago"},
		"the operator is down": {explain.Serving{Operators: operator(down)}, finalizer, explain.ByUnknown,
			"Deployment system/manager has no replica available; the in-tree controller may run or not"},
		"the operator is down, the in-tree controller off": {
			explain.Serving{Operators: operator(down), InTreeOff: off}, finalizer, explain.ByNobody,
			"Deployment system/manager has no replica available; " + off},
		"an operator with another finalizer": {
			explain.Serving{Operators: operator(ofAnother), Leases: lease("system", "a", 0)}, finalizer, explain.ByInTree,
			noOperator + ", it is the in-tree controller's"},
		"an operator with flags of another version": {
			explain.Serving{Operators: operator(func(o *explain.Operator) { o.Finalizer = "" })}, foreign, explain.ByOperator,
			"Deployment system/manager has 1 of 2 replicas available"},
		"an operator of this namespace": {
			explain.Serving{Operators: operator(watching("bar", "shop"))}, finalizer, explain.ByOperator,
			"Deployment system/manager has 1 of 2 replicas available"},
		"an operator of other namespaces": {
			explain.Serving{Operators: operator(watching("bar")), InTreeOff: off}, finalizer, explain.ByNobody,
			noOperator + "; " + off},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := explain.New(&explain.Facts{
				Finalizer: test.finalizer, Now: now, Serving: &test.serving,
				Claims: []*corev1.PersistentVolumeClaim{claim("data")},
			}).Items[0].ServedBy
			if want := (explain.Service{By: test.want, Evidence: test.evidence}); *got != want {
				t.Errorf("got %+v, want %+v", *got, want)
			}
		})
	}
}
