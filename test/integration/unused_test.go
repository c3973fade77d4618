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
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pvc-protection-operator/test/harness"
)

// TestUnusedCondition has a subtest for every rule of the condition Unused, all with one operator. There is nobody else
// on the cluster who binds claims or writes conditions.
func TestUnusedCondition(t *testing.T) {
	startOperator(t, harness.Options{Args: append(deploymentArgs(t), "--recheck-interval=1h")})

	rules := map[string]func(*env){
		"it changes with the first and the last pod":       testUnusedLife,
		"what others write into the status stays":          testUnusedForeignStatus,
		"somebody else's value is put right":               testUnusedPutRight,
		"somebody else's reason stays":                     testUnusedForeignReason,
		"a claim that is not bound has none":               testUnusedNotBound,
		"a claim that is lost keeps it":                    testUnusedLost,
		"a claim that is being deleted keeps it":           testUnusedDeleted,
		"a recreated claim is another one":                 testUnusedRecreated,
		"an ephemeral volume's claim is its pod's":         testUnusedEphemeral,
		"a pod replaced under its name does not refer":     testUnusedReplacedPod,
		"a pod elsewhere does not refer":                   testUnusedElsewhere,
		"pods that come and go together are right at last": testUnusedBurst,
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules[name](newEnv(t))
		})
	}
}

func testUnusedLife(e *env) {
	claim := e.boundClaim("data")
	since := e.unused(claim)
	if since.Reason != "NoPodsUsingPVC" || since.LastTransitionTime.Before(&claim.CreationTimestamp) {
		e.Errorf("the condition is %+v", since)
	}
	first := e.pod("first", harness.WithClaim("data")) // It is never scheduled.
	if now := e.used(claim); now.Reason != "PodUsingPVC" || now.LastTransitionTime.Before(&since.LastTransitionTime) {
		e.Errorf("the condition is %+v, it was %+v", now, since)
	}
	second := e.pod("second", harness.OnNode(node), harness.WithClaim("data"))
	e.setPhase(second, corev1.PodRunning)
	e.kill(first)
	e.staysUsed(claim)
	e.setPhase(second, corev1.PodSucceeded) // and is still there
	e.unused(claim)
	e.kill(second)
	e.staysUnused(claim)
	e.hasWritten(claim, 3)
}

func testUnusedForeignStatus(e *env) {
	claim := e.boundClaim("data")
	foreign := []corev1.PersistentVolumeClaimCondition{
		{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue, Reason: "Mine", Message: "text"},
		{Type: "example.com/Other", Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now().Rfc3339Copy()},
	}
	check := func() {
		e.Helper()
		e.fatalIf(exists(e.Context(), claim, true))
		for _, want := range foreign {
			if got := conditionOf(claim, want.Type); got == nil || got.Status != want.Status || got.Reason != want.Reason ||
				got.Message != want.Message || !got.LastTransitionTime.Equal(&want.LastTransitionTime) {
				e.Errorf("condition %s is %+v, want %+v", want.Type, got, want)
			}
		}
		if len(claim.Status.Conditions) != len(foreign)+1 || claim.Status.Phase != corev1.ClaimBound ||
			len(claim.Status.AccessModes) != 1 {
			e.Errorf("the status is %+v", claim.Status)
		}
	}
	e.patchStatus(claim, map[string]any{"accessModes": []string{"ReadWriteOnce"}, "conditions": foreign})
	e.unused(claim)
	check()
	e.pod("web", harness.WithClaim("data"))
	e.used(claim)
	check()
}

func testUnusedPutRight(e *env) {
	claim := e.boundClaim("data")
	e.unused(claim)
	for _, wrong := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		e.setUnused(claim, wrong)
		e.unused(claim)
	}
	e.patchStatus(claim, map[string]any{"conditions": []any{map[string]any{"$patch": "delete", "type": "Unused"}}})
	e.unused(claim)
	e.hasWritten(claim, 4)
}

func testUnusedForeignReason(e *env) {
	claim := e.boundClaim("data")
	e.unused(claim)
	e.setUnused(claim, corev1.ConditionTrue)
	e.staysUnused(claim)
	if got := conditionOf(claim, corev1.PersistentVolumeClaimUnused); got.Reason != "Somebody" {
		e.Errorf("the condition is %+v, want it left alone", got)
	}
	e.hasWritten(claim, 1)
}

func testUnusedNotBound(e *env) {
	claim := e.claim("data")
	e.pod("web", harness.WithClaim("data"))
	e.patchStatus(claim, map[string]any{"phase": corev1.ClaimPending})
	e.unusedSentinel()
	e.fatalIf(exists(e.Context(), claim, true))
	if len(claim.Status.Conditions) > 0 {
		e.Errorf("the conditions are %+v", claim.Status.Conditions)
	}
	e.patchStatus(claim, map[string]any{"phase": corev1.ClaimBound})
	e.used(claim)
	e.hasWritten(claim, 1)
}

func testUnusedLost(e *env) {
	claim := e.boundClaim("data")
	e.unused(claim)
	e.patchStatus(claim, map[string]any{"phase": corev1.ClaimLost})
	e.pod("web", harness.WithClaim("data"))
	e.staysUnused(claim)
	e.patchStatus(claim, map[string]any{"phase": corev1.ClaimBound})
	e.used(claim)
}

func testUnusedDeleted(e *env) {
	claim := e.boundClaim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.used(claim)
	e.delete(claim)
	e.setPhase(pod, corev1.PodSucceeded) // It holds the claim, and does not refer to it any more.
	e.held(claim)
	e.staysUsed(claim)
	e.kill(pod)
	e.gone(claim)
	if writes := conditionWrites(e, "data", http.StatusOK); writes > 2 { // True perhaps, and False
		e.Errorf("the operator wrote the condition %d times", writes)
	}
}

func testUnusedRecreated(e *env) {
	for range 3 {
		claim := e.boundClaim("data")
		e.unused(claim)
		e.delete(claim)
		e.gone(claim)
	}
	claim := e.claim("data")
	e.unusedSentinel()
	e.fatalIf(exists(e.Context(), claim, true))
	if len(claim.Status.Conditions) > 0 {
		e.Errorf("the new claim has the conditions %+v", claim.Status.Conditions)
	}
}

func testUnusedEphemeral(e *env) {
	owner := e.pod("web", harness.WithEphemeral("scratch"))
	claim := e.markBound(e.ephemeralClaim(owner, "scratch"))
	e.used(claim)
	e.pod("other", harness.WithEphemeral("scratch"))
	namesake := e.boundClaim("other-scratch")
	e.unused(namesake)
	e.kill(owner)
	e.unused(claim)
}

func testUnusedReplacedPod(e *env) {
	claim := e.boundClaim("data")
	pod := e.pod("web", harness.WithClaim("data"))
	e.used(claim)
	e.kill(pod)
	e.pod("web", harness.WithClaim("other"))
	e.unused(claim)
}

func testUnusedElsewhere(e *env) {
	claim := e.boundClaim("data")
	other := newEnv(e.T)
	other.pod("web", harness.WithClaim("data"))
	e.staysUnused(claim)
	e.hasWritten(claim, 1)
}

// testUnusedBurst has pods of one claim that come together and go together: faster than the operator sees what it has
// written itself.
func testUnusedBurst(e *env) {
	const pods = 20
	claim := e.boundClaim("data")
	e.unused(claim)
	var created []*corev1.Pod
	for i := range pods {
		created = append(created, e.pod(fmt.Sprintf("web-%d", i), harness.WithClaim("data")))
	}
	e.used(claim)
	e.kill(created...)
	e.unused(claim)
	e.unusedSentinel()
	e.hasWritten(claim, 3)
}

// TestUnusedConditionAtStart has an operator that comes to claims from before its time, some of which somebody has
// written the condition of.
func TestUnusedConditionAtStart(t *testing.T) {
	e := newEnv(t)
	old := func(name string, unused ...corev1.ConditionStatus) *corev1.PersistentVolumeClaim {
		claim := harness.Claim(e.namespace, name)
		claim.Finalizers = []string{harness.Finalizer}
		e.create(claim)
		e.markBound(claim)
		for _, status := range unused {
			e.setUnused(claim, status)
		}
		return claim
	}
	unknown, right, wrong := old("unknown"), old("right", corev1.ConditionTrue), old("wrong", corev1.ConditionTrue)
	e.pod("web", harness.WithClaim("wrong"))
	startOperator(t, harness.Options{})
	e.unused(unknown)
	e.used(wrong)
	e.staysUnused(right)
	e.hasWritten(right, 0)
	e.hasWritten(unknown, 1)
	e.hasWritten(wrong, 1)
}

// TestUnusedConditionLostEvents has an operator that does not see pods come and go, and then what there is.
func TestUnusedConditionLostEvents(t *testing.T) {
	e := newEnv(t)
	watch := newPodWatch()
	behindProxy(e, watch.handler)
	used, unused, replaced := e.boundClaim("used"), e.boundClaim("unused"), e.boundClaim("replaced")
	pod := e.pod("web", harness.WithClaim("unused"))
	other := e.pod("other", harness.WithClaim("replaced"))
	e.unused(used)
	e.used(unused)
	e.used(replaced)

	watch.cut()
	e.pod("new", harness.WithClaim("used"))
	e.kill(pod, other)
	e.pod("other", harness.WithClaim("somewhere-else"))
	e.staysUsed(unused)
	watch.restore()
	e.used(used)
	e.unused(unused)
	e.unused(replaced)
}

// TestUnusedConditionOff has an operator that is told to leave the condition alone, and needs no permission for it.
func TestUnusedConditionOff(t *testing.T) {
	e := newEnv(t)
	account := e.serviceAccount("no-condition")
	e.bind(account, harness.ManagerRole)
	kubeconfig, here := e.accountKubeconfig(account.Name), "--watch-namespaces="+e.namespace
	fails(t, harness.Options{Kubeconfig: kubeconfig, Args: []string{here}},
		"patch persistentvolumeclaims/status in namespace "+e.namespace, "config/rbac")

	o := startOperator(t, harness.Options{Kubeconfig: kubeconfig, Args: []string{here, "--unused-condition=false"}})
	claim := e.boundClaim("data")
	e.setUnused(claim, corev1.ConditionFalse)
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.kill(pod)
	e.sentinel()
	e.staysUsed(claim)
	if writes, err := o.Metric(t.Context(), "pvc_protection_unused_condition_writes_total"); err != nil || writes > 0 {
		t.Errorf("the operator has written %.0f conditions, error %v", writes, err)
	}
	const reconciles, label = "controller_runtime_reconcile_total", `controller="persistentvolumeclaim-unused"`
	if _, err := o.Metric(t.Context(), reconciles, label); err == nil {
		t.Error("the controller of the condition runs")
	}
}

// TestNoUnusedCondition renders the installation with the component that leaves the condition to others.
func TestNoUnusedCondition(t *testing.T) {
	root, err := harness.ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config, err := filepath.Rel(dir, filepath.Join(root, "config"))
	if err != nil {
		t.Fatal(err)
	}
	kustomization := fmt.Sprintf("resources: [%[1]s/default]\ncomponents: [%[1]s/components/no-unused-condition]\n", config)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	without, err := harness.Render(dir)
	if err != nil {
		t.Fatal(err)
	}

	const flag, permission = "--unused-condition=false", "persistentvolumeclaims/status"
	for name, test := range map[string]struct {
		manifests harness.Manifests
		on        bool
	}{"as it is": {suite.manifests, true}, "with the component": {without, false}} {
		content, err := json.Marshal(test.manifests)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		if got := strings.Contains(text, permission); got != test.on {
			t.Errorf("%s, the installation grants the permission: %t", name, got)
		}
		if got := strings.Contains(text, flag); got == test.on {
			t.Errorf("%s, the installation has the flag: %t", name, got)
		}
		if got := strings.Contains(text, harness.UnusedConditionRole); got != test.on {
			t.Errorf("%s, the installation names the role: %t", name, got)
		}
	}
}
