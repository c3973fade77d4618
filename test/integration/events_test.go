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
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

func testEvent(e *env) {
	claim := e.claim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	other := e.pod("worker", harness.OnNode("node-b"), harness.WithClaim("data"))
	e.delete(claim)

	event := e.saysBlocked(claim, "web", node, "worker", "node-b")
	if event.Regarding.Kind != "PersistentVolumeClaim" || event.Regarding.Name != claim.Name || event.Namespace != e.namespace {
		e.Errorf("the event is about %+v", event.Regarding)
	}
	if event.Related == nil || event.Related.Kind != "Pod" || event.Related.UID != pod.UID {
		e.Errorf("the related object is %+v, want the pod", event.Related)
	}
	if event.ReportingController != harness.EventController || event.ReportingInstance == "" || event.Action == "" {
		e.Errorf("the event is by %q, instance %q, action %q", event.ReportingController, event.ReportingInstance, event.Action)
	}
	if event.Type != corev1.EventTypeNormal {
		e.Errorf("the event's type is %s", event.Type)
	}
	e.kill(pod, other)
	e.gone(claim)
}

func testEventOnFirstChange(e *env) { testEventOnChange(e, "web-0", "web-1") }

func testEventOnLaterChange(e *env) {
	testEventOnChange(e, "web-1", "web-0")
}

// testEventOnChange has two holders, of which one goes.
func testEventOnChange(e *env, goes, stays string) {
	claim := e.claim("data")
	pods := map[string]*corev1.Pod{}
	for _, name := range []string{"web-0", "web-1"} {
		pods[name] = e.pod(name, harness.OnNode(node), harness.WithClaim("data"))
	}
	e.delete(claim)
	e.saysBlocked(claim, "web-0", "web-1")
	e.kill(pods[goes])
	e.eventually("another event has to name only the pod that is left", func(ctx context.Context) error {
		events, err := e.blockedEvents(ctx, claim)
		if err != nil {
			return err
		}
		var notes []string
		for _, event := range events {
			if strings.Contains(event.Note, stays) && !strings.Contains(event.Note, goes) {
				return nil
			}
			notes = append(notes, event.Note)
		}
		return fmt.Errorf("the events are %q", notes)
	})
	e.kill(pods[stays])
	e.gone(claim)
}

func testEventOnRelease(e *env) {
	claim := e.claim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim)
	e.saysBlocked(claim, "web")
	e.kill(pod)
	e.gone(claim)
	e.says(claim, "Released", "after its deletion")
}

func testEventOfUnusedClaim(e *env) {
	claim := e.claim("data")
	e.delete(claim)
	e.gone(claim)
	e.says(claim, "Released", "after its deletion")
}

func testEventOfEphemeralVolume(e *env) {
	pod := e.pod("web", harness.OnNode(node), harness.WithEphemeral("scratch"))
	claim := e.ephemeralClaim(pod, "scratch")
	e.setPhase(pod, corev1.PodRunning)
	e.delete(claim)
	e.saysBlocked(claim, "pod web on node "+node+" (running; the claim is its ephemeral volume)")
	e.kill(pod)
	e.gone(claim)
}

// TestBlockedClaims has claims that are blocked and looked at for every event of their pods: that takes no live list.
func TestBlockedClaims(t *testing.T) {
	const count = 20
	e := newEnv(t)
	claims, pods := useClaims(e, count)
	// It starts after the pods, so that its cache knows them all.
	o := startOperator(t, harness.Options{Args: []string{"--watch-namespaces=" + e.namespace, "--recheck-interval=1h"}})
	e.delete(asObjects(claims)...)
	lookedAt(e, o, count)
	for _, pod := range pods {
		e.setPhase(pod, corev1.PodSucceeded)
	}
	lookedAt(e, o, 2*count)
	if lists := liveLists(e, e.namespace); lists > 0 {
		t.Errorf("blocked claims took %d live lists", lists)
	}
	e.kill(pods...)
	e.gone(claims...)
}

// TestRecheck has claims that are looked at again and again while they are blocked: that takes no further event.
func TestRecheck(t *testing.T) {
	const count, rounds = 20, 4
	e := newEnv(t)
	claims, pods := useClaims(e, count)
	o := startOperator(t, harness.Options{Args: []string{"--watch-namespaces=" + e.namespace, "--recheck-interval=1s"}})
	e.delete(asObjects(claims)...)
	lookedAt(e, o, rounds*count)
	e.consistently("each claim has to have one event", func(ctx context.Context) error {
		var errs []error
		for _, claim := range claims {
			events, err := e.blockedEvents(ctx, claim)
			switch {
			case err != nil:
				errs = append(errs, err)
			case len(events) != 1:
				errs = append(errs, fmt.Errorf("claim %s has %d events", claim.Name, len(events)))
			case events[0].Series != nil:
				errs = append(errs, fmt.Errorf("claim %s has an event that was repeated: %+v", claim.Name, events[0].Series))
			}
		}
		return errors.Join(errs...)
	})
	e.kill(pods...)
	e.gone(claims...)
}

// useClaims creates protected claims, and a pod for each that uses it.
func useClaims(e *env, count int) (claims []*corev1.PersistentVolumeClaim, pods []*corev1.Pod) {
	e.Helper()
	claims = createTogether(e.T, []*env{e}, count)
	for i, claim := range claims {
		pods = append(pods, e.pod(fmt.Sprintf("web-%d", i), harness.OnNode(node), harness.WithClaim(claim.Name)))
	}
	return claims, pods
}

// lookedAt waits until the operator has found a blocked claim that many times.
func lookedAt(e *env, o *harness.Operator, times float64) {
	e.Helper()
	e.eventually("the claims have to be looked at", func(ctx context.Context) error {
		looks, err := o.Metric(ctx, "pvc_protection_answers_total", `answer="blocked"`)
		if err == nil && looks < times {
			err = fmt.Errorf("it was %.0f times, want %.0f", looks, times)
		}
		return err
	})
}

// blockedEvents returns the events that say why the claim stays.
func (e *env) blockedEvents(ctx context.Context, claim *corev1.PersistentVolumeClaim) ([]eventsv1.Event, error) {
	return e.eventsOf(ctx, claim, "DeletionBlocked")
}

func (e *env) eventsOf(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, reason string,
) ([]eventsv1.Event, error) {
	var list eventsv1.EventList
	if err := suite.admin.List(ctx, &list, client.InNamespace(e.namespace)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(event eventsv1.Event) bool {
		return event.Regarding.UID != claim.UID || event.Reason != reason
	}), nil
}

// saysBlocked waits until an event says why the claim stays, with all the words.
func (e *env) saysBlocked(claim *corev1.PersistentVolumeClaim, words ...string) eventsv1.Event {
	e.Helper()
	return e.says(claim, "DeletionBlocked", words...)
}

// says waits for an event on the claim that has that reason and all the words, and returns it.
func (e *env) says(claim *corev1.PersistentVolumeClaim, reason string, words ...string) eventsv1.Event {
	e.Helper()
	var found eventsv1.Event
	e.eventually(fmt.Sprintf("an event on claim %s has to say %q", claim.Name, words), func(ctx context.Context) error {
		events, err := e.eventsOf(ctx, claim, reason)
		if err != nil {
			return err
		}
		var notes []string
		for _, event := range events {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(event.Note, word) }) {
				found = event
				return nil
			}
			notes = append(notes, event.Note)
		}
		return fmt.Errorf("the events are %q", notes)
	})
	return found
}
