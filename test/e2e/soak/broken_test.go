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

package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/e2e/soak"
	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

const patience = time.Minute

// breakage replaces parts of internal/controller/livelist.go for one build. Nothing in what is shipped knows of it.
type breakage [][2]string

// keptList takes the first list of a namespace for all claims that are deleted later: the rule of the in-tree
// controller, with a batch that lasts forever.
var keptList = breakage{
	{"r.listHolders(ctx, namespace, candidates)", "r.keptHolders(ctx, namespace, candidates)"},
	{"import (\n", "import (\n\t\"sync\"\n"},
	{"\nfunc (r *PersistentVolumeClaimReconciler) listHolders(", `
var kept sync.Map

func (r *PersistentVolumeClaimReconciler) keptHolders(
	ctx context.Context, namespace string, candidates map[string]*corev1.PersistentVolumeClaim,
) (map[string][]holder, error) {
	if holders, ok := kept.Load(namespace); ok {
		return holders.(map[string][]holder), nil
	}
	holders, err := r.listHolders(ctx, namespace, candidates)
	if err == nil {
		kept.Store(namespace, holders)
	}
	return holders, err
}

func (r *PersistentVolumeClaimReconciler) listHolders(`},
}

// TestOracleCatchesBrokenS1 has the oracle judge operators that break S1, and one that does not, in a situation where
// that matters: claims are deleted just after their pods were bound, which the operator's cache does not know of.
func TestOracleCatchesBrokenS1(t *testing.T) {
	stage, err := soak.NewStage(t.Context(), t.TempDir(), cluster.Options{Log: t.Output()})
	must(t, err)
	t.Cleanup(func() { must(t, stage.Close()) })

	for _, tc := range []struct {
		name   string
		binary string
		caught bool
	}{
		{"not broken", shipped(t), false},
		{"list kept over", build(t, keptList), true},
	} {
		before, err := stage.Judge(t.Context())
		must(t, err)
		playCounterexample(t, stage, tc.binary)
		after, err := stage.Judge(t.Context())
		must(t, err)
		t.Logf("%s:\n%s", tc.name, after)

		if caught := len(after.InUse) > len(before.InUse); caught != tc.caught {
			t.Errorf("%s: caught: %t, want %t\n%v", tc.name, caught, tc.caught, after.Err())
		}
		if after.Releases == before.Releases {
			t.Errorf("%s: no release was judged", tc.name)
		}
		if other := len(after.Stuck) + len(after.Missing); other > 0 {
			t.Errorf("%s: the oracle has found something else: %v", tc.name, after.Err())
		}
	}
}

// playCounterexample plays S1's counterexample to the operator, in a namespace of its own.
func playCounterexample(t *testing.T, stage *soak.Stage, binary string) {
	t.Helper()
	ctx := t.Context()
	proxy, kubeconfig, err := stage.Proxy()
	must(t, err)
	operator, err := harness.Start(harness.Options{Binary: binary, Kubeconfig: kubeconfig})
	must(t, err)
	defer func() { must(t, operator.StopIfRunning(context.WithoutCancel(ctx))) }()
	must(t, operator.WaitReady(ctx))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, stage.Admin.Create(ctx, namespace))
	releaseUnused(t, stage, namespace.Name) // this takes a list, unless that is what is broken

	gate := proxy.HoldEvents(faultproxy.Match{Resource: "pods"})
	defer gate.Release()
	for i := range 5 {
		claim := harness.Claim(namespace.Name, fmt.Sprintf("claim-%d", i))
		pod := harness.Pod(namespace.Name, fmt.Sprintf("pod-%d", i), harness.WithClaim(claim.Name))
		must(t, stage.Admin.Create(ctx, claim))
		must(t, stage.Admin.Create(ctx, pod))
		must(t, stage.Admin.SubResource("binding").Create(ctx, pod,
			&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}))
		must(t, stage.Admin.Delete(ctx, claim))
	}
	// The operator looks at claims in their order: it has looked at these when the next one is gone.
	releaseUnused(t, stage, namespace.Name)
}

// releaseUnused creates and deletes a claim that nobody uses, and waits until it is gone.
func releaseUnused(t *testing.T, stage *soak.Stage, namespace string) {
	t.Helper()
	claim := harness.Claim(namespace, "")
	claim.GenerateName = "unused-"
	must(t, stage.Admin.Create(t.Context(), claim))
	must(t, stage.Admin.Delete(t.Context(), claim))
	must(t, harness.Eventually(t.Context(), patience, func(ctx context.Context) error {
		err := stage.Admin.Get(ctx, client.ObjectKeyFromObject(claim), &corev1.PersistentVolumeClaim{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("claim %s is still there, error %w", claim.Name, err)
	}))
}

// build builds the operator, broken.
func build(t *testing.T, broken breakage) string {
	t.Helper()
	dir := t.TempDir()
	root, err := harness.ModuleDir(t.Context())
	must(t, err)
	original := filepath.Join(root, "internal", "controller", "livelist.go")
	content, err := os.ReadFile(original)
	must(t, err)
	source := string(content)
	for _, replace := range broken {
		if strings.Count(source, replace[0]) != 1 {
			t.Fatalf("%q is not once in %s: this test has to be adapted", replace[0], original)
		}
		source = strings.Replace(source, replace[0], replace[1], 1)
	}
	replacement, overlay := filepath.Join(dir, "livelist.go"), filepath.Join(dir, "overlay.json")
	must(t, os.WriteFile(replacement, []byte(source), 0o600))
	content, err = json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	must(t, err)
	must(t, os.WriteFile(overlay, content, 0o600))

	binary := filepath.Join(dir, "manager")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-ldflags", "-s -w", "-o", binary, ".")
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, output)
	}
	return binary
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
