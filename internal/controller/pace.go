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
	"time"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/internal/batch"
)

// The pace of a namespace's live lists. Claims that are deleted now and then do not
// wait, and neither does what a full batch left over: both are worth a list. Only
// candidates wait; claims that need protection never do.
const (
	// paceFactor is how many times the duration of the last list must pass after
	// it while claims keep coming, and paceQuiet how long none must have come.
	paceFactor = 10
	paceQuiet  = 150 * time.Millisecond

	// crowdRate is how many batches a second, and crowdBurst how many at once,
	// may have a list of their own at once. One namespace cannot make as many.
	// With more, claims are deleted all over the cluster, and those of a
	// namespace wait for each other until none has come for crowdQuiet.
	crowdRate  = 5
	crowdBurst = 10
	crowdQuiet = 500 * time.Millisecond

	// maxPace is the longest wait.
	maxPace = 3 * time.Second
)

// gather holds the candidates, and reports whether it did, if claims are being
// deleted in many namespaces at once: more of this one are likely to come, and
// one list would do for all. Those that have waited already, or existed when the
// operator started, do not wait and do not count.
func (r *PersistentVolumeClaimReconciler) gather(b *batch.Batch, candidates []*corev1.PersistentVolumeClaim) bool {
	if r.full(b) || !b.Fresh() || r.crowd.TryAccept() {
		return false
	}
	b.StartHold(batch.HoldTimes{Quiet: crowdQuiet, Most: maxPace})
	hold(b, candidates)
	return true
}

// pace makes the namespace's next live list wait if claims kept coming while the
// batch was worked on, until enough of them have come to be worth another list.
func (r *PersistentVolumeClaimReconciler) pace(b *batch.Batch, listed time.Time, took time.Duration) {
	if r.full(b) || !b.MoreWaiting() {
		return
	}
	since := r.Clock.Since(listed)
	b.StartHold(batch.HoldTimes{Quiet: paceQuiet, Least: min(paceFactor*took, maxPace) - since, Most: maxPace - since})
}

func (r *PersistentVolumeClaimReconciler) full(b *batch.Batch) bool {
	return len(b.Requests()) >= r.Options.MaxBatchSize
}
