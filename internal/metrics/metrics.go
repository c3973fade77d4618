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
	"sync/atomic"
	"time"

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

// Values of the labels "source" and "answer".
const (
	Cache    = "cache"
	LiveList = "live_list"

	Blocked = "blocked"
	Free    = "free"
)

// Dropped is a result of events: that there was no room for it, or no namespace.
const Dropped = "dropped"

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

	// LiveListBytes counts the bytes of the answers to live lists.
	LiveListBytes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pvc_protection_live_list_bytes_total",
		Help: "Size of the answers to uncached lists of a namespace's pods in bytes, before compression.",
	})

	// Answers counts the looks at candidates.
	Answers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pvc_protection_answers_total",
		Help: "Number of looks at a claim in deletion, by where the answer was found (cache, live_list) " +
			"and what it was (blocked, free). The cache alone never frees a claim.",
	}, []string{"source", "answer"})

	// LostEvents counts what only a recheck has found.
	LostEvents = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pvc_protection_lost_events_total",
		Help: "Number of claims that were found free by a recheck although no event had said so.",
	})

	// ForeignReleases counts the claims that somebody else has released.
	ForeignReleases = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pvc_protection_foreign_releases_total",
		Help: "Number of claims that were kept because a pod used them, and that somebody else took the finalizer off: " +
			"another controller that serves it, or a person. It may come as late as the claim's recheck.",
	})

	// Claims are the claims in the cache by state.
	Claims = &ClaimStates{}

	// Events counts the events about claims.
	Events = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pvc_protection_events_total",
		Help: "Number of Kubernetes events about claims, by result: written (success), said by the former leader " +
			"already (superseded), given up because too many waited or the namespace was going (dropped), or refused (error).",
	}, []string{"result"})

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

	// UnusedConditionWrites counts the patches of claims' Unused conditions.
	UnusedConditionWrites = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pvc_protection_unused_condition_writes_total",
		Help: "Number of patches of claims' Unused conditions, by result (success, superseded, error).",
	}, []string{"result"})

	// ReleaseDelay observes the time from a claim's deletion to its release.
	ReleaseDelay = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "pvc_protection_release_delay_seconds",
		Help:    "Time from the deletion of a claim to its release in seconds, the time in which a pod used it included.",
		Buckets: []float64{0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400},
	})
)

// ClaimStates collects the number of claims by state, and the age of the blocked
// claim that was deleted first. All replicas count what their caches have, but only
// the leader knows which claims are blocked.
type ClaimStates struct {
	// Candidates are in deletion with the finalizer, Released without it.
	Unprotected, Protected, Candidates, Released atomic.Int64
	// Blocked are the candidates that are known to have a holder.
	Blocked atomic.Int64

	oldest atomic.Pointer[func() (time.Time, bool)]
}

var (
	claimsDesc = prometheus.NewDesc("pvc_protection_claims",
		"Number of claims in the cache, by state: not in deletion without and with the finalizer (unprotected, protected), "+
			"in deletion and kept because a pod uses them (blocked), in deletion and about to be looked at (waiting), "+
			"in deletion without the finalizer (released). Only the leader knows which are blocked.",
		[]string{"state"}, nil)
	oldestDesc = prometheus.NewDesc("pvc_protection_oldest_blocked_claim_age_seconds",
		"Time since the deletion of the claim that is kept for the longest time in seconds, 0 if none is.", nil, nil)
)

// SetOldest sets what returns the deletion of the oldest blocked claim, and false if
// there is none.
func (c *ClaimStates) SetOldest(oldest func() (time.Time, bool)) { c.oldest.Store(&oldest) }

// Describe implements prometheus.Collector.
func (c *ClaimStates) Describe(descs chan<- *prometheus.Desc) {
	descs <- claimsDesc
	descs <- oldestDesc
}

// Collect implements prometheus.Collector.
func (c *ClaimStates) Collect(collected chan<- prometheus.Metric) {
	blocked := c.Blocked.Load()
	for state, count := range map[string]int64{
		"unprotected": c.Unprotected.Load(),
		"protected":   c.Protected.Load(),
		"blocked":     blocked,
		"waiting":     max(0, c.Candidates.Load()-blocked), // The two are not counted in one moment.
		"released":    c.Released.Load(),
	} {
		collected <- prometheus.MustNewConstMetric(claimsDesc, prometheus.GaugeValue, float64(count), state)
	}
	age := 0.0
	if oldest := c.oldest.Load(); oldest != nil {
		if deleted, ok := (*oldest)(); ok {
			age = time.Since(deleted).Seconds()
		}
	}
	collected <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age)
}

func init() {
	metrics.Registry.MustRegister(BatchClaims, LiveLists, LiveListDuration, LiveListPods, LiveListBytes,
		Answers, LostEvents, ForeignReleases, Claims, Events, Writes, WritesInFlight,
		UnusedConditionWrites, ReleaseDelay)
	// A counter that does not exist yet cannot be told from one that stays at 0.
	for _, result := range []string{Success, Failure} {
		LiveLists.WithLabelValues(result)
	}
	Answers.WithLabelValues(Cache, Blocked)
	for _, answer := range []string{Blocked, Free} {
		Answers.WithLabelValues(LiveList, answer)
	}
	for _, result := range []string{Success, Superseded, Dropped, Failure} {
		Events.WithLabelValues(result)
	}
	for _, result := range []string{Success, Superseded, Failure} {
		UnusedConditionWrites.WithLabelValues(result)
	}
	for _, operation := range []string{Protect, Release} {
		for _, result := range []string{Success, Superseded, Failure} {
			Writes.WithLabelValues(operation, result)
		}
	}
}
