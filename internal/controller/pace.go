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
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"

	"pvc-protection-operator/internal/batch"
)

// The pace of a namespace's live lists. Claims that are deleted now and then do not
// wait, and neither does what a full batch left over: both are worth a list. Only
// candidates wait; claims that need protection never do.
const (
	// While claims of a namespace keep coming, its next live list waits until none
	// has come for paceQuiet, but no longer than paceMost; or, where its lists take
	// long, until none has come for half as long as the last one took, but no longer
	// than paceFactor times as long as that. So claims go soon after the last one has
	// come, and in between, lists of 100 ms take a tenth of the time, and long ones
	// no more than a quarter.
	paceQuiet  = 250 * time.Millisecond
	paceMost   = time.Second
	paceFactor = 3
	// slowList is the longest that a list is taken to last.
	slowList = 3 * time.Second

	// crowdRate is how often a second, and crowdBurst how often at once, a batch
	// of another namespace than the one before may have a list of its own at
	// once. With more, claims are deleted all over the cluster, and those of a
	// namespace wait for each other until none has come for crowdQuiet, but no
	// longer than crowdMost.
	crowdRate  = 5
	crowdBurst = 10
	crowdQuiet = 500 * time.Millisecond
	crowdMost  = 3 * time.Second
)

// crowd tells whether claims are being deleted in many namespaces at once.
type crowd struct {
	rate flowcontrol.RateLimiter

	mu sync.Mutex
	// last is the namespace that was let through last. Alone it is no crowd,
	// however often it comes: it has one list at a time.
	last string
}

func newCrowd() *crowd {
	return &crowd{rate: flowcontrol.NewTokenBucketRateLimiter(crowdRate, crowdBurst)}
}

// joined reports whether the namespace comes together with many others.
func (c *crowd) joined(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if namespace == c.last {
		return false
	}
	if !c.rate.TryAccept() {
		return true
	}
	c.last = namespace
	return false
}

// gather holds the candidates, and reports whether it did, if claims are being
// deleted in many namespaces at once: more of this one are likely to come, and
// one list would do for all. Those that have waited already, or existed when the
// operator started, do not wait and do not count.
func (r *PersistentVolumeClaimReconciler) gather(
	b *batch.Batch, namespace string, candidates []*corev1.PersistentVolumeClaim,
) bool {
	if r.full(b) || !b.Fresh() || !r.crowd.joined(namespace) {
		return false
	}
	b.StartHold(batch.HoldTimes{Quiet: crowdQuiet, Most: crowdMost})
	hold(b, candidates)
	return true
}

// pace makes the namespace's next live list wait if claims kept coming while the
// batch was worked on, until enough of them have come to be worth another list.
func (r *PersistentVolumeClaimReconciler) pace(b *batch.Batch, listed time.Time, took time.Duration) {
	if r.full(b) || !b.MoreWaiting() {
		return
	}
	took = min(took, slowList)
	b.StartHold(batch.HoldTimes{
		Quiet: max(paceQuiet, took/2),
		Most:  max(paceMost, paceFactor*took) - r.Clock.Since(listed),
	})
}

func (r *PersistentVolumeClaimReconciler) full(b *batch.Batch) bool {
	return len(b.Requests()) >= r.Options.MaxBatchSize
}
