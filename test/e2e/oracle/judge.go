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

package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Judge judges all releases, and what is left at the end. The changes may be in any order.
func Judge(changes []Change, audit *Audit, finalizer string) (*Report, error) {
	h, err := newHistory(changes)
	if err != nil {
		return nil, err
	}
	j := &judge{history: h, audit: audit, finalizer: finalizer, report: &Report{Changes: len(changes), Claims: len(h.claims)}}
	for _, pods := range h.pods {
		j.report.Pods += len(pods)
	}
	for _, revisions := range audit.Lists {
		j.report.Lists += len(revisions)
	}

	released := map[types.UID]bool{}
	for _, uid := range slices.Sorted(maps.Keys(h.claims)) {
		claim := *h.claims[uid]
		for i := range claim[1:] {
			if before, after := claim[i], claim[i+1]; j.isRelease(before, after) {
				released[uid] = true
				j.release(claim, before, after)
			}
		}
		if last := claim.last(); !last.gone {
			j.left(last.object, last.revision)
		}
	}
	j.compare(released)
	return j.report, nil
}

// Stuck returns the claims that should be gone, by what has changed so far.
func Stuck(changes []Change, finalizer string) ([]Finding, error) {
	report, err := Judge(changes, &Audit{}, finalizer)
	if err != nil {
		return nil, err
	}
	return report.Stuck, nil
}

type (
	claimLife  = life[*corev1.PersistentVolumeClaim]
	claimState = state[*corev1.PersistentVolumeClaim]
)

type judge struct {
	history   *history
	audit     *Audit
	finalizer string
	report    *Report
}

func (j *judge) has(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Finalizers, j.finalizer)
}

// isRelease tells whether the finalizer was taken off. A claim that is deleted by that never gets a state without it.
func (j *judge) isRelease(before, after claimState) bool {
	return j.has(before.object) && (after.gone || !j.has(after.object))
}

func (j *judge) release(life claimLife, before, after claimState) {
	claim := before.object
	if after.gone && claim.DeletionTimestamp == nil {
		// Whoever deleted it was faster than the finalizer, which the API server had not seen when it began to delete.
		j.report.Others++
		return
	}
	switch byOperator, known := j.whoReleased(before, after); {
	case known && !byOperator:
		j.report.Others++
		return
	case !known:
		j.report.Unanswered++
	}
	j.report.Releases++

	finding := Finding{Claim: describe(claim), Deleted: deletionOf(life), Released: after.revision}
	for _, pod := range j.history.holders(claim, after.revision) {
		finding.Holders = append(finding.Holders, j.describeHolder(pod, claim))
	}
	slices.Sort(finding.Holders)
	founded := false
	for _, list := range j.audit.Lists[claim.Namespace] {
		if finding.Deleted == 0 || list < finding.Deleted || list >= after.revision {
			continue
		}
		finding.Lists = append(finding.Lists, list)
		founded = founded || len(j.history.holders(claim, list)) == 0
	}
	switch {
	case founded && len(finding.Holders) > 0:
		j.report.Late = append(j.report.Late, finding)
	case founded:
	case len(finding.Holders) > 0:
		j.report.InUse = append(j.report.InUse, finding)
	default:
		j.report.Unfounded = append(j.report.Unfounded, finding)
	}
}

// whoReleased tells whether it was the operator. Of a writer that has gone away before it got an answer nothing is known.
func (j *judge) whoReleased(before, after claimState) (byOperator, known bool) {
	for _, removal := range j.audit.Removals[before.object.UID] {
		if removal.Revision == after.revision || after.gone && removal.Revision == before.revision {
			byOperator, known = byOperator || removal.ByOperator, true
		}
	}
	return byOperator, known
}

// left judges a claim that exists at the end.
func (j *judge) left(claim *corev1.PersistentVolumeClaim, revision int64) {
	if claim.DeletionTimestamp == nil {
		return
	}
	j.report.Terminating++
	if IsStuck(claim, j.finalizer) && len(j.history.holders(claim, end)) == 0 {
		j.report.Stuck = append(j.report.Stuck, Finding{Claim: describe(claim), Deleted: revision})
	}
}

// end is after all revisions.
const end = 1<<62 - 1

// IsStuck tells whether nothing but the finalizer keeps the claim. If no pod holds it, it should be gone.
func IsStuck(claim *corev1.PersistentVolumeClaim, finalizer string) bool {
	return claim.DeletionTimestamp != nil && slices.Equal(claim.Finalizers, []string{finalizer})
}

// compare finds what the audit log tells and the recorder does not.
func (j *judge) compare(released map[types.UID]bool) {
	for _, written := range slices.SortedFunc(maps.Keys(j.audit.written), func(a, b version) int {
		return int(a.revision - b.revision)
	}) {
		if !j.history.known[written] {
			j.report.Missing = append(j.report.Missing, j.audit.written[written])
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(j.audit.Removals)) {
		if !released[uid] && slices.ContainsFunc(j.audit.Removals[uid], func(r Removal) bool { return r.ByOperator }) {
			// Or the write was for an earlier claim of that name, and has hit one that had no finalizer yet.
			j.report.Missing = append(j.report.Missing, fmt.Sprintf("the operator's release of the claim of UID %s", uid))
		}
	}
}

func deletionOf(life claimLife) int64 {
	for _, state := range life {
		if state.object.DeletionTimestamp != nil {
			return state.revision
		}
	}
	return 0
}

// describeHolder tells of a pod and since when it has held the claim.
func (j *judge) describeHolder(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	since := int64(0)
	for _, state := range *j.history.pods[pod.Namespace][pod.UID] {
		if held := !state.gone && holds(state.object, claim); held && since == 0 {
			since = state.revision
		} else if !held {
			since = 0
		}
		if state.object == pod {
			break
		}
	}
	return fmt.Sprintf("pod %s (UID %s) on %s since revision %d", pod.Name, pod.UID, pod.Spec.NodeName, since)
}

func describe(claim *corev1.PersistentVolumeClaim) string {
	return fmt.Sprintf("claim %s/%s (UID %s, finalizers %s)",
		claim.Namespace, claim.Name, claim.UID, strings.Join(claim.Finalizers, ","))
}
