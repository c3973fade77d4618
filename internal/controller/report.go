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
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"pvc-protection-operator/internal/batch"
	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

// Reasons of the events on claims.
const (
	// EventReasonBlocked says which pods keep a claim that was deleted.
	EventReasonBlocked = "DeletionBlocked"
	// EventReasonReleased says that no pod keeps it any more.
	EventReasonReleased = "Released"
	// EventReasonProtected says that a claim which existed without protection
	// has it now.
	EventReasonProtected = "Protected"
	// EventReasonFailing says why protection or release fail again and again.
	EventReasonFailing = "ProtectionFailing"
)

// What was done about the claim, in the words of an event.
const (
	eventActionKeep    = "KeepFinalizer"
	eventActionRelease = "RemoveFinalizer"
	eventActionProtect = "AddFinalizer"
)

const (
	// maxNamedHolders is how many holders an event names.
	maxNamedHolders = 5
	// maxDescription is where a description stops to name further holders, in
	// bytes, and maxCause where the cause of a failure ends. With one more name
	// and what is around it, the event's note stays below the API server's
	// limit of 1,024.
	maxDescription = 300
	maxCause       = 500

	// oldClaim is the age from which on a claim's protection is worth an event.
	oldClaim = time.Minute
	// manyFailures is how often something fails in a row before an event says so.
	manyFailures = 5
)

// holder is what there is to say about a pod that holds a claim.
type holder struct {
	name, node, state string
	uid               types.UID
}

// appendHolder appends the pod once, even if several of its volumes name the
// claim.
func appendHolder(holders []holder, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) []holder {
	if last := len(holders) - 1; last >= 0 && holders[last].uid == pod.UID {
		return holders
	}
	return append(holders, holder{
		name: pod.Name, node: pod.Spec.NodeName, state: usage.StateOf(pod, claim), uid: pod.UID,
	})
}

// describe names the holders, in the order of their names, so that the same
// holders always have the same description. The facts are what makes it another
// one: the holders that are named, and roughly how many more there are, since a
// thousand pods that go one by one are not worth an event each.
func describe(holders []holder) (text, facts string) {
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(a.name, b.name) })
	var words, identity strings.Builder
	for i, h := range holders {
		if i == maxNamedHolders || words.Len() > maxDescription {
			rest := len(holders) - i
			fmt.Fprintf(&words, ", and %d more", rest)
			fmt.Fprintf(&identity, "2^%d", bits.Len(uint(rest)))
			break
		}
		if i > 0 {
			words.WriteString(", ")
		}
		fmt.Fprintf(&words, "pod %s on node %s (%s)", h.name, h.node, h.state)
		fmt.Fprintf(&identity, "%s on %s %s, ", h.uid, h.node, h.state)
	}
	return words.String(), identity.String()
}

func (r *PersistentVolumeClaimReconciler) reportBlocked(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, holders []holder, source string, recheck time.Duration,
) {
	metrics.Answers.WithLabelValues(source, metrics.Blocked).Inc()
	now := r.Clock.Now()
	text, facts := describe(holders)
	say, again := r.reports.blocked(claim, facts, now, now.Add(recheck), source == metrics.LiveList)
	if !say {
		return
	}
	log.FromContext(ctx).Info("Claim stays until no pod uses it", "claim", klog.KObj(claim), "holders", text)
	r.announcer.say(statement{
		claim: claim,
		pod: &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: claim.Namespace, Name: holders[0].name, UID: holders[0].uid,
		},
		eventType: corev1.EventTypeNormal, reason: EventReasonBlocked, action: eventActionKeep,
		note:  "The claim stays until it is not used any more by " + text,
		facts: facts, again: again, lasting: true,
	})
}

// dismiss forgets a claim that is gone, or has lost the finalizer. If it was kept, and
// no failed write of ours may have done it all the same, somebody else released it:
// another controller with the same finalizer, or a person.
func (r *PersistentVolumeClaimReconciler) dismiss(ctx context.Context, b *batch.Batch, request reconcile.Request) {
	if r.reports.forget(request.NamespacedName) && b.Failures(request) == 0 {
		metrics.ForeignReleases.Inc()
		log.FromContext(ctx).Info("Somebody else took the finalizer off a claim that was kept; "+
			"look for another controller that serves it, such as the in-tree one",
			"claim", klog.KRef(request.Namespace, request.Name), "finalizer", r.Options.Finalizer)
	}
	r.announcer.forget(request.NamespacedName)
}

func (r *PersistentVolumeClaimReconciler) reportReleased(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	waited := r.reports.released(requestFor(claim).NamespacedName)
	// The API server's clock may be ahead of ours.
	delay := max(0, r.Clock.Since(claim.DeletionTimestamp.Time))
	metrics.ReleaseDelay.Observe(delay.Seconds())
	log.FromContext(ctx).Info("Released claim", "claim", klog.KObj(claim), "sinceDeletion", delay)
	r.announcer.say(statement{
		claim:     claim,
		eventType: corev1.EventTypeNormal, reason: EventReasonReleased, action: eventActionRelease,
		note:     "No pod uses the claim: it was released " + duration.HumanDuration(delay) + " after its deletion",
		optional: !waited,
	})
}

func (r *PersistentVolumeClaimReconciler) reportProtected(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	r.reports.forget(requestFor(claim).NamespacedName)
	log.FromContext(ctx).Info("Protected claim", "claim", klog.KObj(claim))
	if r.Clock.Since(claim.CreationTimestamp.Time) < oldClaim {
		return // What is usual is not worth an event.
	}
	r.announcer.say(statement{
		claim:     claim,
		eventType: corev1.EventTypeNormal, reason: EventReasonProtected, action: eventActionProtect,
		note:     "The claim had no protection, and stays now until no pod uses it even if it is deleted",
		optional: true,
	})
}

// reportFailing says why the claim is not worked on, once it has failed often.
func (r *PersistentVolumeClaimReconciler) reportFailing(
	claim *corev1.PersistentVolumeClaim, failures int, what string, err error,
) {
	if failures < manyFailures {
		return
	}
	cause := causeOf(err)
	// The words may differ every time, such as by the number of the request.
	facts := what + string(apierrors.ReasonForError(err))
	if say, again := r.reports.failing(claim, facts, r.Clock.Now()); say {
		action := eventActionProtect
		if claim.DeletionTimestamp != nil {
			action = eventActionRelease
		}
		r.announcer.say(statement{
			claim:     claim,
			eventType: corev1.EventTypeWarning, reason: EventReasonFailing, action: action,
			note:  what + " fails again and again, and is tried on: " + cause,
			facts: facts, again: again,
		})
	}
}

// causeOf says in words why a request failed. What the API server says goes to the
// user as it is; what else may be in an error, such as addresses, does not.
func causeOf(err error) string {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status) && status.Status().Message != "":
		message := status.Status().Message
		if len(message) > maxCause {
			message = strings.ToValidUTF8(message[:maxCause], "") + " …"
		}
		return message
	case errors.Is(err, context.DeadlineExceeded):
		return "the API server did not answer in time"
	default:
		return "the API server could not be reached, or its answer not be read; the operator's log says more"
	}
}
