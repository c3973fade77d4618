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
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/internal/explain"
	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

// The exit codes that the plugin's help names.
const (
	exitOK = iota
	exitError
	_
	exitHeld
)

// TestExplain runs the plugin without an operator, as somebody who may only view the test's namespace.
func TestExplain(t *testing.T) {
	for name, test := range map[string]func(*env){
		"a claim that a Deployment's pod uses":          testExplainDeployment,
		"a claim that a pod uses that is shutting down": testExplainShuttingDown,
		"a claim that a Job's ended pod uses":           testExplainEnded,
		"a claim with a finalizer of others":            testExplainOtherFinalizer,
		"claims that are not being deleted":             testExplainOthers,
		"a claim that does not exist":                   testExplainNotFound,
		"nothing to explain":                            testExplainNothing,
		"a finalizer of one's own":                      testExplainFinalizer,
		"all namespaces":                                testExplainAllNamespaces,
		"who may not read pods":                         testExplainForbidden,
		"list":                                          testList,
		"what the plugin asks the API server for":       testPluginRequests,
		"completion":                                    testCompletion,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newEnv(t))
		})
	}
}

func testExplainDeployment(e *env) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web"}}
	labels := map[string]string{"app": "web"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: harness.Pod("", "").Spec}
	template.Spec.SchedulerName = ""
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "web-1"},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}
	ownedBy(deployment, "Deployment")(&set.ObjectMeta)
	e.create(set)
	e.oldClaim("data", harness.Finalizer)
	e.pod("web-1-a", harness.OnNode(node), harness.WithClaim("data"), podOwnedBy(set, "ReplicaSet"))
	e.pod("web-1-b", harness.WithClaim("data"), podOwnedBy(set, "ReplicaSet"))
	e.deleteClaim("data")

	a := e.view("explain")
	a.mustBe(e, exitHeld, "data", "Blocked", "web-1-a", node, "ReplicaSet/web-1 of Deployment/web", "scheduled",
		"web-1-b", "not scheduled", "Scale down Deployment web")
}

func testExplainShuttingDown(e *env) {
	e.oldClaim("data", harness.Finalizer)
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.fatalIf(suite.admin.Delete(e.Context(), pod, client.GracePeriodSeconds(600)))
	e.deleteClaim("data")
	e.view("explain", "data").mustBe(e, exitHeld, "Blocked", "shutting down", "Wait until pod web has gone")
}

func testExplainEnded(e *env) {
	e.oldClaim("data", harness.Finalizer)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "gone"}}
	pod := e.pod("nightly-a", harness.OnNode(node), harness.WithClaim("data"), podOwnedBy(job, "Job"))
	e.setPhase(pod, corev1.PodSucceeded)
	e.deleteClaim("data")
	e.view("explain").mustBe(e, exitHeld, "Blocked", "Succeeded", "Job/nightly", "ended, but holds its volume",
		"Delete pod nightly-a (it has ended)")
}

func testExplainOtherFinalizer(e *env) {
	e.oldClaim("data", foreignFinalizer)
	e.deleteClaim("data")
	e.view("explain").mustBe(e, exitHeld, "OtherFinalizer", foreignFinalizer, "whoever put it there takes it off")
}

func testExplainOthers(e *env) {
	e.oldClaim("unprotected")
	e.oldClaim("protected", harness.Finalizer)
	e.pod("web", harness.OnNode(node), harness.WithClaim("protected"))
	a := e.view("explain", "protected", "unprotected")
	a.mustBe(e, exitOK, "Protected", "web", "Unprotected", "unknown", "forbidden", "If it is deleted now, it goes at once")
}

func testExplainNotFound(e *env) {
	e.oldClaim("data", harness.Finalizer)
	a := e.view("explain", "missing", "data")
	a.mustBe(e, exitError, "data", "Protected")
	if !strings.Contains(a.errors, `"missing" not found`) {
		e.Errorf("the errors are %q", a.errors)
	}
}

func testExplainNothing(e *env) {
	e.oldClaim("data", harness.Finalizer)
	a := e.view("explain")
	a.mustBe(e, exitOK)
	if want := "No claim is being deleted in namespace " + e.namespace + ".\n"; a.out != "" || a.errors != want {
		e.Errorf("printed %q and %q, want %q", a.out, a.errors, want)
	}
	if a := e.view("explain", "-o", "json"); len(a.report(e).Items) > 0 || a.errors != "" {
		e.Errorf("printed %q and %q", a.out, a.errors)
	}
}

func testExplainFinalizer(e *env) {
	e.oldClaim("data", harness.Finalizer, foreignFinalizer)
	e.deleteClaim("data")
	a := e.view("explain", "--finalizer="+foreignFinalizer, "-o", "yaml")
	item := a.report(e).Items[0]
	if item.State != explain.Waiting || !slices.Equal(item.OtherFinalizers, []string{harness.Finalizer}) {
		e.Errorf("the claim is %+v", item)
	}
	if !strings.Contains(item.NextStep, "in-tree controller takes it off") {
		e.Errorf("the next step is %s", item.NextStep)
	}
}

func testExplainAllNamespaces(e *env) {
	other := newEnv(e.T)
	for _, e := range []*env{e, other} {
		e.oldClaim("data", harness.Finalizer)
		e.deleteClaim("data")
	}
	e.oldClaim("used", harness.Finalizer)
	e.pod("web", harness.OnNode(node), harness.WithClaim("used"))
	other.pod("web", harness.OnNode(node), harness.WithClaim("data"))

	a := plugin(e, suite.cluster.Kubeconfig(), "explain", "-A", "-o", "json")
	if a.code != exitHeld {
		e.Errorf("the exit code is %d", a.code)
	}
	states := map[string]explain.State{}
	for _, item := range a.report(e).Items {
		states[item.Namespace+"/"+item.Name] = item.State
	}
	if used, ok := states[e.namespace+"/used"]; ok {
		e.Errorf("the claim that is not being deleted is %s", used)
	}
	if got := states[e.namespace+"/data"]; got != explain.Waiting {
		e.Errorf("the claim without a holder is %s", got)
	}
	if got := states[other.namespace+"/data"]; got != explain.Blocked {
		e.Errorf("the claim in the other namespace is %s", got)
	}
	if a := e.view("explain", "-A"); a.code != exitError || !strings.Contains(a.errors, "forbidden") {
		e.Errorf("who may view one namespace gets exit code %d and %q", a.code, a.errors)
	}
}

func testExplainForbidden(e *env) {
	account := e.serviceAccount("nobody")
	a := plugin(e, e.accountKubeconfig(account.Name), "explain", "data")
	if a.code != exitError || !strings.Contains(a.errors, "forbidden") {
		e.Errorf("exit code %d, errors %q", a.code, a.errors)
	}
}

func testList(e *env) {
	e.oldClaim("unprotected")
	e.oldClaim("protected", harness.Finalizer)
	e.oldClaim("blocked", harness.Finalizer)
	e.oldClaim("waiting", harness.Finalizer)
	e.oldClaim("foreign", foreignFinalizer)
	e.labelClaim("protected", "app", "web")
	e.pod("web", harness.OnNode(node), harness.WithClaim("protected"), harness.WithClaim("blocked"))
	e.deleteClaim("blocked", "waiting", "foreign")

	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, []string{
			"NAME STATE USED BY", "blocked Blocked web (scheduled)", "foreign OtherFinalizer <none>",
			"protected Protected web (scheduled)", "unprotected Unprotected <none>", "waiting Waiting <none>",
		}},
		{[]string{"--blocked"}, []string{"NAME STATE USED BY", "blocked Blocked web (scheduled)"}},
		{[]string{"--unused"}, []string{
			"NAME STATE USED BY", "foreign OtherFinalizer <none>", "unprotected Unprotected <none>", "waiting Waiting <none>",
		}},
		{[]string{"-l", "app=web"}, []string{"NAME STATE USED BY", "protected Protected web (scheduled)"}},
		{[]string{"-l", "app=db"}, nil},
	} {
		a := e.view("list", test.args...)
		a.mustBe(e, exitOK)
		var lines []string
		for line := range strings.Lines(a.out) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		if !slices.Equal(lines, test.want) {
			e.Errorf("%q: got %q, want %q", test.args, lines, test.want)
		}
	}
	e.view("list", "-o", "wide").mustBe(e, exitOK, "NODES", "AGE", "FINALIZERS", node, harness.Finalizer)
	plugin(e, suite.cluster.Kubeconfig(), "list", "-A").mustBe(e, exitOK, "NAMESPACE", e.namespace)
}

// testPluginRequests looks into the audit log. Short lists ask for pages too, so there need not be long ones.
func testPluginRequests(e *env) {
	e.oldClaim("data", harness.Finalizer)
	e.deleteClaim("data")
	e.view("explain").mustBe(e, exitOK)
	e.view("list").mustBe(e, exitOK)
	lists := 0
	e.fatalIf(suite.cluster.AuditEvents(func(event cluster.AuditEvent) bool {
		if event.User.Username != "system:serviceaccount:"+e.namespace+":viewer" {
			return true
		}
		if event.Verb != "get" && event.Verb != "list" {
			e.Errorf("the plugin has asked for %s %s", event.Verb, event.RequestURI)
		}
		// In other namespaces it may look for the operator, but is not allowed to.
		if event.Verb == "list" && event.ObjectRef.Namespace == e.namespace {
			lists++
			if !strings.Contains(event.RequestURI, "limit=500") {
				e.Errorf("%s is not a list of a page", event.RequestURI)
			}
		}
		return true
	}))
	if lists < 4 {
		e.Errorf("claims and pods were listed %d times, want at least twice each", lists)
	}
}

func testCompletion(e *env) {
	e.oldClaim("data-1")
	e.oldClaim("data-2")
	e.oldClaim("other")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"explain", "data-1", "d"}, []string{"data-2"}},
		{[]string{"list", "d"}, nil},
		{[]string{"explain", "-o", ""}, []string{"json", "yaml"}},
		{[]string{"list", "--namespace", e.namespace[:len(e.namespace)-1]}, []string{e.namespace}},
	} {
		args := append([]string{"--namespace", e.namespace, "--kubeconfig", suite.cluster.Kubeconfig()}, test.args...)
		a := execute(e, append([]string{"__complete"}, args...)...)
		lines := strings.Split(strings.TrimSpace(a.out), "\n")
		if got := lines[:len(lines)-1]; !slices.Equal(got, test.want) { // the last one is for the shell
			e.Errorf("%q completes to %q, want %q", test.args, got, test.want)
		}
	}
}

// TestExplainOperator asks who serves the finalizer, while the operator leads and after it has stopped.
func TestExplainOperator(t *testing.T) {
	e := newEnv(t)
	e.oldClaim("data", harness.Finalizer)
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.deleteClaim("data")
	served := func(by explain.Server, words ...string) harness.Condition {
		return func(context.Context) error {
			got := plugin(e, suite.cluster.Kubeconfig(), "explain", "-o", "json").report(e).Items[0].ServedBy
			if got.By != by {
				return fmt.Errorf("the finalizer is served by %+v", got)
			}
			for _, word := range words {
				if !strings.Contains(got.Evidence, word) {
					return fmt.Errorf("the evidence %q lacks %q", got.Evidence, word)
				}
			}
			return nil
		}
	}

	o := startOperator(t, harness.Options{Args: deploymentArgs(t)})
	e.eventually("the operator has to be seen", served(explain.ByOperator, harness.Namespace, "Lease"))
	e.fatalIf(o.Stop(t.Context()))
	e.eventually("the operator has to be missed", served(explain.ByUnknown, "no replica available"))

	// A cluster that has been told to leave the work to the operator.
	manager := harness.Pod(metav1.NamespaceSystem, "kube-controller-manager")
	manager.Labels = map[string]string{"component": "kube-controller-manager"}
	manager.Spec.Containers[0].Command = []string{
		"kube-controller-manager", "--controllers=*,-persistentvolumeclaim-protection-controller",
	}
	e.create(manager)
	t.Cleanup(func() {
		e.fatalIf(suite.admin.Delete(context.WithoutCancel(t.Context()), manager, client.GracePeriodSeconds(0)))
	})
	e.eventually("nobody has to be seen", served(explain.ByNobody, "no replica available", "-persistentvolumeclaim-protection"))
	e.kill(pod)
	plugin(e, suite.cluster.Kubeconfig(), "explain").mustBe(e, exitHeld, "Waiting", "nobody", "Start the operator")
}

// TestKubectlPlugin has kubectl find the operator's binary as a plugin.
func TestKubectlPlugin(t *testing.T) {
	e := newEnv(t)
	e.oldClaim("data", harness.Finalizer)
	e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.deleteClaim("data")
	dir := t.TempDir()
	for _, name := range []string{"kubectl-pvc_protection", "kubectl_complete-pvc_protection"} {
		e.fatalIf(os.Symlink(suite.binary, filepath.Join(dir, name)))
	}
	run := func(program string, args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
			"KUBECONFIG="+suite.cluster.Kubeconfig())
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}

	for _, command := range [][]string{
		{suite.cluster.Kubectl(), "pvc-protection", "explain", "data", "-n", e.namespace},
		{suite.binary, "explain", "data", "-n", e.namespace},
	} {
		out, code := run(command[0], command[1:]...)
		if code != exitHeld || !strings.Contains(out, "Blocked") {
			t.Errorf("%q: exit code %d, printed\n%s", command, code, out)
		}
	}
	out, code := run(suite.cluster.Kubectl(), "__complete", "pvc-protection", "explain", "-n", e.namespace, "d")
	if code != exitOK || !strings.HasPrefix(out, "data\n") {
		t.Errorf("completion: exit code %d, printed\n%s", code, out)
	}
}
