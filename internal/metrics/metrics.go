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

// Package metrics holds the operator's own metrics, all of them, registered in
// controller-runtime's registry. None has a label whose values grow with the
// cluster.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Values of the labels "operation" and "result".
const (
	Protect = "protect"
	Release = "release"

	Success = "success"
	Failure = "error"
	// Superseded is a write that the API server refused because the claim is
	// gone, is another one by now, or is being deleted already: nothing was
	// written and nothing needs to be.
	Superseded = "superseded"
)

// Values of the label "evidence".
const (
	Cache    = "cache"
	LiveList = "live_list"
)

var (
	// BatchClaims observes how many claims a batch had.
	BatchClaims = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "pvc_protection_batch_claims",
		Help:    "Number of claims of a namespace that were looked at together.",
		Buckets: prometheus.ExponentialBuckets(1, 4, 7),
	})

	// LiveLists counts live lists of pods.
	LiveLists = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pvc_protection_live_lists_total",
		Help: "Number of uncached lists of a namespace's pods, by result (success, error).",
	}, []string{"result"})

	// LiveListDuration observes how long live lists took, all pages together.
	LiveListDuration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "pvc_protection_live_list_duration_seconds",
		Help:    "Duration of uncached lists of a namespace's pods in seconds, all pages together.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2, 12),
	})

	// LiveListPods counts the pods that live lists returned.
	LiveListPods = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pvc_protection_live_list_pods_total",
		Help: "Number of pods that uncached lists returned.",
	})

	// Blocked counts the looks at a candidate that found a holder.
	Blocked = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pvc_protection_blocked_total",
		Help: "Number of looks at a claim in deletion that found a pod using it, by where it was found (cache, live_list).",
	}, []string{"evidence"})

	// BlockedClaims is the number of claims that are blocked now.
	BlockedClaims = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pvc_protection_blocked_claims",
		Help: "Number of claims in deletion that are kept because a pod uses them. Only the leader reports them.",
	})

	// Writes counts the patches of claims.
	Writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pvc_protection_writes_total",
		Help: "Number of patches of claims, by operation (protect, release) and result (success, superseded, error).",
	}, []string{"operation", "result"})

	// WritesInFlight is the number of patches that wait for their answer.
	WritesInFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pvc_protection_writes_in_flight",
		Help: "Number of patches of claims that wait for the API server's answer.",
	})

	// ReleaseDelay observes the time from a claim's deletion to its release.
	ReleaseDelay = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "pvc_protection_release_delay_seconds",
		Help:    "Time from the deletion of a claim to its release in seconds, the time in which a pod used it included.",
		Buckets: []float64{0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400},
	})
)

func init() {
	metrics.Registry.MustRegister(BatchClaims, LiveLists, LiveListDuration, LiveListPods, Blocked, BlockedClaims,
		Writes, WritesInFlight, ReleaseDelay)
	// A counter that does not exist yet cannot be told from one that stays at 0.
	for _, result := range []string{Success, Failure} {
		LiveLists.WithLabelValues(result)
	}
	for _, evidence := range []string{Cache, LiveList} {
		Blocked.WithLabelValues(evidence)
	}
	for _, operation := range []string{Protect, Release} {
		for _, result := range []string{Success, Superseded, Failure} {
			Writes.WithLabelValues(operation, result)
		}
	}
}
