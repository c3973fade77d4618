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
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

// TestEventsAfterFailover has thousands of blocked claims and a new leader: it does not say again what was said.
func TestEventsAfterFailover(t *testing.T) {
	t.Parallel()
	const count, perPod, eventsTotal = 2000, 100, "pvc_protection_events_total"
	e := newEnv(t, 1)
	made := e.claimsIn(e.namespace, count)
	var users []*corev1.Pod
	for i := 0; i < count; i += perPod {
		options := []harness.PodOption{harness.OnNode(node)}
		for _, claim := range made[i : i+perPod] {
			options = append(options, harness.WithClaim(claim.Name))
		}
		users = append(users, e.pod(fmt.Sprintf("web-%d", i/perPod), options...))
	}
	r := e.startReplicas()
	e.deleteClaims(made)
	e.counted(r.leader, count, eventsTotal, `result="success"`)
	e.fatalIf(r.leader.Kill())
	e.counted(r.standby, count, eventsTotal, `result="superseded"`)

	ended := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"phase":"Failed"}}`))
	e.fatalIf(e.admin.Status().Patch(t.Context(), users[0].DeepCopy(), ended))
	e.counted(r.standby, perPod, eventsTotal, `result="success"`)

	said := map[types.UID]int{}
	for _, event := range e.events("DeletionBlocked") {
		said[event.Regarding.UID]++
	}
	for i, claim := range made {
		want := 1
		if i < perPod {
			want = 2 // Its user has ended.
		}
		if got := said[claim.UID]; got != want {
			t.Errorf("claim %s has %d events, want %d", claim.Name, got, want)
		}
	}
	e.kill(users...)
	e.allGone(e.namespaces)
}

// TestFailuresAreSaid has claims whose writes, or whose namespace's lists, fail for a while: an event says why, and
// another one that it is over.
func TestFailuresAreSaid(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails func(namespace string) faultproxy.Match
		words []string
	}{
		"lists":  {liveLists, []string{"Listing the pods", "answered by a fault"}},
		"writes": {patches, []string{"Removing the finalizer", "answered by a fault"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, 1)
			claim := e.claim("data")
			e.start()
			fault := e.proxy.Add(faultproxy.Rule{Match: test.fails(e.namespace), Fault: faultproxy.Answer(http.StatusInternalServerError)})
			e.delete(claim)
			event := e.says(claim, "ProtectionFailing", test.words...)
			if event.Type != corev1.EventTypeWarning {
				t.Errorf("the event's type is %s", event.Type)
			}
			fault.Remove()
			e.gone(claim)
			e.says(claim, "Released", "after its deletion")
		})
	}
}

// says waits until an event of that reason on the claim has all the words, and returns it.
func (e *env) says(claim *corev1.PersistentVolumeClaim, reason string, words ...string) (found eventsv1.Event) {
	e.Helper()
	e.eventually(fmt.Sprintf("an event has to say %q", words), func(context.Context) error {
		var notes []string
	events:
		for _, event := range e.events(reason) {
			if event.Regarding.UID != claim.UID {
				continue
			}
			notes = append(notes, event.Note)
			for _, word := range words {
				if !strings.Contains(event.Note, word) {
					continue events
				}
			}
			found = event
			return nil
		}
		return fmt.Errorf("the events say %q", notes)
	})
	return found
}

// events returns the events of that reason in the first namespace.
func (e *env) events(reason string) (found []eventsv1.Event) {
	e.Helper()
	var list eventsv1.EventList
	e.fatalIf(e.admin.List(e.Context(), &list, client.InNamespace(e.namespace)))
	for _, event := range list.Items {
		if event.Reason == reason {
			found = append(found, event)
		}
	}
	return found
}
