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

package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

// EventReasonBlocked is the reason of the event on a claim that is being deleted
// but kept, because of the pods that the event names.
const EventReasonBlocked = "DeletionBlocked"

// eventActionKeep is what was done about the claim, in the event's words.
const eventActionKeep = "KeepFinalizer"

const (
	// maxNamedHolders is how many holders an event names.
	maxNamedHolders = 5
	// maxDescription is where a description stops to name further holders, in
	// bytes. With one more name and what is around it, the event's note stays
	// below the API server's limit of 1,024.
	maxDescription = 350
)

// holder is what there is to say about a pod that holds a claim.
type holder struct {
	name, node, state string
	uid               types.UID
}

// appendHolder appends the pod once, even if several of its volumes name the
// claim.
func appendHolder(holders []holder, pod *corev1.Pod) []holder {
	if last := len(holders) - 1; last >= 0 && holders[last].uid == pod.UID {
		return holders
	}
	return append(holders, holder{
		name: pod.Name, node: pod.Spec.NodeName, state: stateOf(pod), uid: pod.UID,
	})
}

func stateOf(pod *corev1.Pod) string {
	switch {
	case usage.Ended(pod):
		return "ended, but holds its volume until it is deleted"
	case pod.DeletionTimestamp != nil:
		return "shutting down"
	default:
		return "in use"
	}
}

// describe names the holders, in the order of their names, so that the same
// holders always have the same description.
func describe(holders []holder) string {
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(a.name, b.name) })
	var text strings.Builder
	for i, h := range holders {
		if i == maxNamedHolders || text.Len() > maxDescription {
			fmt.Fprintf(&text, ", and %d more", len(holders)-i)
			break
		}
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "pod %s on node %s (%s)", h.name, h.node, h.state)
	}
	return text.String()
}

// reports remembers what was last said about each blocked claim, so that events
// and log lines are written when something changes, not on every look, and when a
// live list last confirmed that it is blocked. It is bounded by the claims that
// are blocked. The zero value is ready to use.
type reports struct {
	mu      sync.Mutex
	blocked map[types.NamespacedName]blockedReport
}

type blockedReport struct {
	uid       types.UID
	text      string
	confirmed time.Time
}

// changed reports whether what there is to say about the blocked claim differs
// from the last time, and remembers it. That a claim is blocked counts as
// confirmed when it is first seen: it has just become a candidate.
func (r *reports) changed(claim *corev1.PersistentVolumeClaim, text string, now time.Time, confirmed bool) bool {
	key := client.ObjectKeyFromObject(claim)
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.blocked[key]
	report := blockedReport{uid: claim.UID, text: text, confirmed: now}
	if known && last.uid == claim.UID && !confirmed {
		report.confirmed = last.confirmed
	}
	if r.blocked == nil {
		r.blocked = map[types.NamespacedName]blockedReport{}
	}
	r.blocked[key] = report
	metrics.BlockedClaims.Set(float64(len(r.blocked)))
	return last.uid != claim.UID || last.text != text
}

// unconfirmed reports whether the claim is known to be blocked, but no live list
// has confirmed it since.
func (r *reports) unconfirmed(claim *corev1.PersistentVolumeClaim, since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.blocked[client.ObjectKeyFromObject(claim)]
	return known && last.uid == claim.UID && last.confirmed.Before(since)
}

// forget says that the claim is not blocked any more.
func (r *reports) forget(claim types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.blocked, claim)
	metrics.BlockedClaims.Set(float64(len(r.blocked)))
}

func (r *PersistentVolumeClaimReconciler) reportBlocked(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, holders []holder, evidence string,
) {
	text := describe(holders)
	if !r.reports.changed(claim, text, r.Clock.Now(), evidence == metrics.LiveList) {
		return
	}
	log.FromContext(ctx).Info("Claim stays until no pod uses it", "claim", klog.KObj(claim), "holders", text)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: claim.Namespace, Name: holders[0].name, UID: holders[0].uid,
	}}
	r.Recorder.Eventf(claim, pod, corev1.EventTypeNormal, EventReasonBlocked, eventActionKeep,
		"The claim stays until it is not used any more by %s", text)
}

func (r *PersistentVolumeClaimReconciler) reportReleased(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	r.reports.forget(client.ObjectKeyFromObject(claim))
	delay := r.Clock.Since(claim.DeletionTimestamp.Time)
	metrics.ReleaseDelay.Observe(delay.Seconds())
	log.FromContext(ctx).Info("Released claim", "claim", klog.KObj(claim), "sinceDeletion", delay)
}

func (r *PersistentVolumeClaimReconciler) reportProtected(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	log.FromContext(ctx).Info("Protected claim", "claim", klog.KObj(claim))
}
