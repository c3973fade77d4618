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
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/internal/explain"
)

func printed() *explain.Report {
	const own = "a/b"
	return explain.New(&explain.Facts{
		Finalizer: own, Now: now, ControllerOf: controllerOf,
		Serving: &explain.Serving{Operators: operator(func(o *explain.Operator) { o.Finalizer = own })},
		Claims: []*corev1.PersistentVolumeClaim{
			claim("unused", withFinalizers(own)), claim("other", inNamespace("bar"), deleted(0), withFinalizers("d/e")),
			claim("data", deleted(5*time.Minute), withFinalizers(own, "d/e")),
		},
		Pods: []*corev1.Pod{
			pod("lost", podDeleted(time.Hour, time.Minute)), pod("old", ended()),
			pod("new", unscheduled, ownedBy(replicaSet, "web-1")),
		},
	})
}

func TestPrintText(t *testing.T) {
	var got strings.Builder
	if err := printed().PrintText(&got, now); err != nil {
		t.Fatal(err)
	}
	const want = `Name:             other
Namespace:        bar
State:            OtherFinalizer, deleted 0s ago
Finalizers:       d/e
Other finalizers: d/e
Used by:          <none>
Next step:        Finalizer d/e keeps it until whoever put it there takes it off.

Name:             data
Namespace:        shop
State:            Blocked, deleted 5m ago
Finalizers:       a/b,d/e
Other finalizers: d/e
Served by:        the operator
                  Deployment system/manager has 1 of 2 replicas available
Used by:
  POD    NODE     PHASE       SINCE       OWNER                                STATE
  lost   node-1   Running     60m         <none>                               shutting down, should have ended 59m ago
  new    <none>   Pending     60m         ReplicaSet/web-1 of Deployment/web   not scheduled
  old    node-1   Succeeded   <unknown>   <none>                               ended, but holds its volume until it is deleted
Next step:        Look at node node-1 (pod lost should have ended 59m ago) ` +
		`and delete pod old (it has ended): then there are still the finalizers of others.

Name:             unused
Namespace:        shop
State:            Protected
Finalizers:       a/b
Served by:        the operator
                  Deployment system/manager has 1 of 2 replicas available
Used by:          <none>
Next step:        Nothing to do: if it is deleted, it goes, as no pod holds it.
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestPrintTable(t *testing.T) {
	tests := map[string]struct {
		table explain.Table
		want  string
	}{
		"plain": {explain.Table{}, `
NAME     STATE            USED BY
other    OtherFinalizer   <none>
data     Blocked          lost (shutting down),new (not scheduled),old (ended)
unused   Protected        <none>
`},
		"all namespaces": {explain.Table{Namespace: true}, `
NAMESPACE   NAME     STATE            USED BY
bar         other    OtherFinalizer   <none>
shop        data     Blocked          lost (shutting down),new (not scheduled),old (ended)
shop        unused   Protected        <none>
`},
		"wide": {explain.Table{Wide: true}, `
NAME     STATE            USED BY                                                NODES                  AGE    FINALIZERS
other    OtherFinalizer   <none>                                                 <none>                 120m   d/e
data     Blocked          lost (shutting down),new (not scheduled),old (ended)   node-1,<none>,node-1   120m   a/b,d/e
unused   Protected        <none>                                                 <none>                 120m   a/b
`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			if err := printed().PrintTable(&got, test.table, now); err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimPrefix(test.want, "\n"); got.String() != want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

// broken is where nothing can be written to.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken pipe")

func TestPrintErrors(t *testing.T) {
	if err := printed().PrintText(broken{}, now); !errors.Is(err, errBroken) {
		t.Errorf("the text's error is %v", err)
	}
	if err := printed().PrintTable(broken{}, explain.Table{}, now); !errors.Is(err, errBroken) {
		t.Errorf("the table's error is %v", err)
	}
}
