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

package prometheus_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/test/faultproxy"
)

// TestLive has everything go wrong that there are alerts for, each for a job of its own, and looks at the dashboard.
func TestLive(t *testing.T) {
	l, err := startLive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	tests := map[string]func(*testing.T, *live){
		"PVCProtectionClaimBlockedTooLong": claimBlocked,
		"PVCProtectionWritesFailing":       writesFailing,
		"PVCProtectionLiveListsFailing":    liveListsFailing,
		"PVCProtectionQueueNotDraining":    queueNotDraining,
		"PVCProtectionNoLeader":            noLeader,
		"PVCProtectionEventsLost":          eventsLost,
	}
	for _, alert := range alerts() {
		if tests[alert] == nil {
			t.Errorf("there is no live test of %s", alert)
		}
	}
	for alert, test := range tests {
		t.Run(alert, func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(alerts(), alert) {
				t.Fatal("there is no such alert")
			}
			test(t, l)
		})
	}
	t.Run("dashboard", func(t *testing.T) {
		t.Parallel()
		everyPanelHasData(t, l)
	})
}

// claimBlocked has a claim that a pod keeps for too long.
func claimBlocked(t *testing.T, l *live) {
	e := newEnv(t, l, 1)
	claim, pod := e.usedClaim(e.namespaces[0], "data")
	e.delete(claim)
	e.fires("PVCProtectionClaimBlockedTooLong")
	e.kill(pod)
	e.resolves("PVCProtectionClaimBlockedTooLong")
}

// writesFailing has an API server that refuses patches of claims.
func writesFailing(t *testing.T, l *live) {
	e := newEnv(t, l, 1)
	released, unprotected := e.claim(e.namespaces[0], "released"), e.claim(e.namespaces[0], "unprotected")
	refusal := e.proxy.Add(faultproxy.Rule{Match: patches, Fault: faultproxy.Answer(http.StatusInternalServerError)})
	e.delete(released)
	e.unprotect(unprotected)
	operations := []string{`operation="release"`, `operation="protect"`}
	for _, operation := range operations {
		e.fires("PVCProtectionWritesFailing", operation)
	}
	refusal.Remove()
	for _, operation := range operations {
		e.resolves("PVCProtectionWritesFailing", operation)
	}
}

// liveListsFailing has an API server that refuses lists of pods.
func liveListsFailing(t *testing.T, l *live) {
	e := newEnv(t, l, 1)
	refusal := e.proxy.Add(faultproxy.Rule{Match: liveLists, Fault: faultproxy.Answer(http.StatusInternalServerError)})
	e.delete(e.claim(e.namespaces[0], "data"))
	e.fires("PVCProtectionLiveListsFailing")
	refusal.Remove()
	e.resolves("PVCProtectionLiveListsFailing")
}

// queueNotDraining has an API server that leaves lists of pods unanswered: the namespace whose turn it is keeps the
// others waiting.
func queueNotDraining(t *testing.T, l *live) {
	e := newEnv(t, l, 4, "--concurrent-namespaces=1")
	gate := e.proxy.HoldRequests(liveLists)
	for _, namespace := range e.namespaces {
		e.delete(e.claim(namespace, "data"))
	}
	e.fires("PVCProtectionQueueNotDraining")
	gate.Release()
	e.resolves("PVCProtectionQueueNotDraining")
}

// noLeader has an API server that refuses to write leases: the leader gives up, and the standby cannot take over.
func noLeader(t *testing.T, l *live) {
	e := newEnv(t, l, 1)
	refusal := e.proxy.Add(faultproxy.Rule{
		Match: faultproxy.Match{Verb: "update", Resource: "leases"},
		Fault: faultproxy.Answer(http.StatusInternalServerError),
	})
	e.fires("PVCProtectionNoLeader")
	refusal.Remove()
	e.resolves("PVCProtectionNoLeader")
}

// eventsLost has a watch of pods that says nothing.
func eventsLost(t *testing.T, l *live) {
	e := newEnv(t, l, 1, "--recheck-interval=2s")
	var users []*corev1.Pod
	for i := range 5 {
		claim, pod := e.usedClaim(e.namespaces[0], fmt.Sprintf("data-%d", i))
		e.delete(claim)
		users = append(users, pod)
	}
	e.eventually(`sum(pvc_protection_claims{job=%q, state="blocked"}) == 5`)
	gate := e.proxy.HoldEvents(faultproxy.Match{Resource: pods})
	for _, pod := range users {
		e.kill(pod)
	}
	e.fires("PVCProtectionEventsLost")
	gate.Release()
	e.resolves("PVCProtectionEventsLost")
}
