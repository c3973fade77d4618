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

package drain

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"pvc-protection-operator/internal/controller"
)

const own = "example.com/in-use"

// TestArguments has what is said before a cluster is asked.
func TestArguments(t *testing.T) {
	connected := errors.New("the arguments are good")
	tests := map[string]struct {
		args []string
		want string
	}{
		"the finalizer":     {[]string{"--finalizer=" + own, "--stop", "--dry-run", "--operator-namespace=x"}, connected.Error()},
		"no finalizer":      {nil, "flag -finalizer is required"},
		"a bad finalizer":   {[]string{"--finalizer=in-use"}, `invalid value "in-use" for flag -finalizer: it has no domain`},
		"in-tree":           {[]string{"--finalizer=" + controller.DefaultFinalizer}, "set --leave-claims-unprotected"},
		"in-tree, knowing":  {[]string{"--finalizer=" + controller.DefaultFinalizer, "--leave-claims-unprotected"}, connected.Error()},
		"a bad namespace":   {[]string{"--operator-namespace=A"}, `invalid value "A" for flag -operator-namespace: not the name of a`},
		"a bad boolean":     {[]string{"--stop=maybe"}, `invalid boolean value "maybe" for -stop: must be true or false`},
		"an argument":       {[]string{"--finalizer=" + own, "now"}, `unexpected argument "now"`},
		"an unknown flag":   {[]string{"--force"}, "-force"},
		"where to find all": {[]string{"--force"}, "drain-finalizers --help"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			connect := func() (*rest.Config, error) { return nil, connected }
			err := Run(t.Context(), test.args, connect, t.Output())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %q, want one line with %q", err, test.want)
			}
		})
	}
}

func TestKeepsAlone(t *testing.T) {
	tests := map[string]struct {
		deleted    bool
		finalizer  string
		finalizers []string
		want       bool
	}{
		"not in deletion":                  {false, own, []string{own}, false},
		"the only finalizer":               {true, own, []string{own}, true},
		"the in-tree one protects as well": {true, own, []string{own, controller.DefaultFinalizer}, false},
		"others do not protect":            {true, own, []string{own, "example.com/other"}, true},
		"the in-tree one itself":           {true, controller.DefaultFinalizer, []string{own, controller.DefaultFinalizer}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Finalizers: test.finalizers}}
			if test.deleted {
				claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			if got := keepsAlone(claim, test.finalizer); got != test.want {
				t.Errorf("keepsAlone() = %t, want %t", got, test.want)
			}
		})
	}
}

func TestMutates(t *testing.T) {
	policy := func(expression string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"matchConditions": []any{map[string]any{"expression": "'" + own + "' in object.metadata.finalizers"}},
			"mutations":       []any{map[string]any{"applyConfiguration": map[string]any{"expression": expression}}},
		}}}
	}
	if !mutates(policy(`Object{metadata: Object.metadata{finalizers: ["`+own+`"]}}`), own) {
		t.Error("a policy that adds the finalizer is not recognized")
	}
	if mutates(policy(`Object{metadata: Object.metadata{labels: Object.metadata.labels{a: "b"}}}`), own) {
		t.Error("a policy that only asks for the finalizer is taken for one that adds it")
	}
}

func TestServes(t *testing.T) {
	tests := map[string]struct {
		finalizer string
		args      []string
		want      bool
	}{
		"its own":                  {own, []string{"--leader-elect", "--finalizer=" + own}, true},
		"another":                  {own, []string{"--finalizer=example.com/other"}, false},
		"by default":               {controller.DefaultFinalizer, nil, true},
		"another by default":       {own, nil, false},
		"flags of another version": {own, []string{"--unheard-of"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var deployment appsv1.Deployment
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sidecar"}, {Name: "manager", Args: test.args}}
			if got := serves(&deployment, test.finalizer); got != test.want {
				t.Errorf("serves() = %t, want %t", got, test.want)
			}
		})
	}
	if !serves(&appsv1.Deployment{}, own) {
		t.Error("a Deployment without the manager's container serves nothing, as if that were known")
	}
}

func TestHeld(t *testing.T) {
	now := time.Unix(1000, 0)
	lease := func(holder string, age time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now.Add(-age)},
		}}
	}
	tests := map[string]struct {
		lease *coordinationv1.Lease
		want  bool
	}{
		"renewed":  {lease("pod-1", 15*time.Second), true},
		"expired":  {lease("pod-1", 16*time.Second), false},
		"given up": {lease("", time.Second), false},
		"empty":    {&coordinationv1.Lease{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := held(test.lease, now); got != test.want {
				t.Errorf("held() = %t, want %t", got, test.want)
			}
		})
	}
}
