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

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/internal/explain"
)

func TestNextStep(t *testing.T) {
	byOperator := explain.Serving{Operators: operator()}
	byNobody := explain.Serving{InTreeOff: "it is off"}
	byUnknown := explain.Serving{Incomplete: "forbidden"}
	var byInTree explain.Serving
	const old = 2 * time.Minute
	unprotected, both := withFinalizers(), withFinalizers(foreign, finalizer)
	tests := map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		pods    []*corev1.Pod
		serving explain.Serving
		want    string
	}{
		"unprotected": {claim("data", unprotected), nil, byOperator,
			"If it is deleted now, it goes at once, whoever uses it: " +
				"the operator protects claims when it sees them, look at its log if this takes more than seconds."},
		"unprotected, in-tree": {claim("data", unprotected), nil, byInTree,
			"If it is deleted now, it goes at once, whoever uses it: " +
				"kube-controller-manager protects claims when it sees them, look at its log if this takes more than seconds."},
		"unprotected, nobody": {claim("data", unprotected), nil, byNobody,
			"If it is deleted now, it goes at once, whoever uses it: " +
				"see to it that the operator runs with --finalizer=kubernetes.io/pvc-protection, or else the in-tree controller."},
		"protected": {claim("data"), []*corev1.Pod{pod("web")}, byOperator,
			"Nothing to do: if it is deleted, it stays until no pod holds it."},
		"protected, unused": {claim("data"), nil, byOperator,
			"Nothing to do: if it is deleted, it goes, as no pod holds it."},

		"waiting": {claim("data", deleted(0)), nil, byOperator,
			"Nothing to do: it goes within seconds, as no pod holds it."},
		"waiting for long": {claim("data", deleted(old)), nil, byOperator,
			"It should have gone within seconds: look at the operator's log."},
		"waiting for long, in-tree": {claim("data", deleted(old)), nil, byInTree,
			"It should have gone within seconds: see to it that the in-tree controller is not switched off, or start the operator."},
		"waiting for long, unknown": {claim("data", deleted(old)), nil, byUnknown,
			"It should have gone within seconds: see to it that the operator runs, or else the in-tree controller."},
		"waiting, unknown": {claim("data", deleted(0)), nil, byUnknown,
			"It should go within seconds: if it does not, see to it that the operator runs, or else the in-tree controller."},
		"waiting for nobody": {claim("data", deleted(0)), nil, byNobody,
			"Start the operator, or switch the in-tree controller on: nobody takes the finalizer off."},
		"waiting, and then for others": {claim("data", deleted(0), both), nil, byOperator,
			"Finalizer example.com/backup keeps it until whoever put it there takes it off."},
		"waiting for others": {claim("data", deleted(old), withFinalizers(foreign, "foregroundDeletion")), nil, byOperator,
			"Finalizer example.com/backup keeps it until whoever put it there takes it off and finalizer " +
				"foregroundDeletion keeps it until the garbage collector takes it off when what the claim owns has gone."},

		"a pod of nobody": {claim("data", deleted(0)), []*corev1.Pod{pod("web"), pod("new", unscheduled)}, byOperator,
			"Delete pod web: the claim goes when no pod holds it."},
		"two pods of a Deployment": {claim("data", deleted(0)),
			[]*corev1.Pod{pod("web-1", ownedBy(replicaSet, "web-1")), pod("web-2", ownedBy(replicaSet, "web-1"))}, byOperator,
			"Scale down Deployment web: the claim goes when no pod holds it."},
		"a pod of a StatefulSet, and then others": {claim("data", deleted(0), both),
			[]*corev1.Pod{pod("db-0", ownedBy(statefulSet, "db"))}, byOperator,
			"Scale down StatefulSet db: then there are still the finalizers of others."},
		"a pod of a Job": {claim("data", deleted(0)), []*corev1.Pod{pod("a", ownedBy(job, "nightly-1"))}, byOperator,
			"Delete Job nightly-1, or pod a once it has ended: the claim goes when no pod holds it."},
		"a pod of a DaemonSet": {claim("data", deleted(0)), []*corev1.Pod{pod("a", ownedBy(daemonSet, "agent"))}, byOperator,
			"Delete pod a: the claim goes when no pod holds it."},
		"an ended pod": {claim("data", deleted(0)), []*corev1.Pod{pod("a", ended(), ownedBy(job, "nightly-1"))}, byOperator,
			"Delete pod a (it has ended): the claim goes when no pod holds it."},
		"a pod that shuts down": {claim("data", deleted(0)), []*corev1.Pod{pod("a", podDeleted(time.Second, time.Minute))}, byOperator,
			"Wait until pod a has gone: the claim goes when no pod holds it."},
		"a pod on a lost node": {claim("data", deleted(0)), []*corev1.Pod{pod("a", podDeleted(time.Hour, time.Minute))}, byOperator,
			"Look at node node-1 (pod a should have ended 59m ago): the claim goes when no pod holds it."},
		"a shut-down pod": {claim("data", deleted(0)),
			[]*corev1.Pod{pod("a", ended(), podDeleted(time.Hour, 0), podFinalizers("a.b/c", "d.e/f"))}, byOperator,
			"See who has to take a.b/c and d.e/f off pod a: the claim goes when no pod holds it."},
		"what ends by itself comes last": {claim("data", deleted(0)),
			[]*corev1.Pod{pod("a", podDeleted(time.Second, time.Minute)), pod("b", ended()), pod("c")}, byOperator,
			"Delete pod b (it has ended), delete pod c and wait until pod a has gone: the claim goes when no pod holds it."},
		"many pods": {claim("data", deleted(0)),
			[]*corev1.Pod{pod("a"), pod("b"), pod("c"), pod("d"), pod("e")}, byOperator,
			"Delete pod a, delete pod b, delete pod c and 2 more like that: the claim goes when no pod holds it."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := explain.New(&explain.Facts{
				Finalizer: finalizer, Now: now, Serving: &test.serving, ControllerOf: controllerOf,
				Claims: []*corev1.PersistentVolumeClaim{test.claim}, Pods: test.pods,
			}).Items[0].NextStep
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestNextStepOfOwnFinalizer has an operator that does not run beside the in-tree
// controller.
func TestNextStepOfOwnFinalizer(t *testing.T) {
	next := func(options ...claimOption) string {
		return explain.New(&explain.Facts{
			Finalizer: foreign, Now: now, Serving: &explain.Serving{},
			Claims: []*corev1.PersistentVolumeClaim{claim("data", append(options, deleted(0))...)},
		}).Items[0].NextStep
	}
	if got, want := next(withFinalizers(foreign)),
		"Start the operator with --finalizer=example.com/backup: nobody takes the finalizer off."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := next(), "Finalizer kubernetes.io/pvc-protection keeps it until "+
		"the in-tree controller takes it off when no pod holds the claim."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
