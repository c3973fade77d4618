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

package metrics_test

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"pvc-protection-operator/internal/metrics"
)

const prefix = "pvc_protection_"

// ours are the collectors of the package, and how many series each has at start.
var ours = map[string]struct {
	collector prometheus.Collector
	series    int
}{
	"pvc_protection_batch_claims":                     {metrics.BatchClaims, 1},
	"pvc_protection_live_lists_total":                 {metrics.LiveLists, 2},
	"pvc_protection_live_list_duration_seconds":       {metrics.LiveListDuration, 1},
	"pvc_protection_live_list_pods_total":             {metrics.LiveListPods, 1},
	"pvc_protection_live_list_bytes_total":            {metrics.LiveListBytes, 1},
	"pvc_protection_answers_total":                    {metrics.Answers, 3},
	"pvc_protection_lost_events_total":                {metrics.LostEvents, 1},
	"pvc_protection_foreign_releases_total":           {metrics.ForeignReleases, 1},
	"pvc_protection_events_total":                     {metrics.Events, 4},
	"pvc_protection_claims":                           {metrics.Claims, 5},
	"pvc_protection_oldest_blocked_claim_age_seconds": {metrics.Claims, 1},
	"pvc_protection_writes_total":                     {metrics.Writes, 6},
	"pvc_protection_writes_in_flight":                 {metrics.WritesInFlight, 1},
	"pvc_protection_unused_condition_writes_total":    {metrics.UnusedConditionWrites, 3},
	"pvc_protection_release_delay_seconds":            {metrics.ReleaseDelay, 1},
}

// values are the values that labels may have.
var values = map[string][]string{
	"operation": {metrics.Protect, metrics.Release},
	"result":    {metrics.Success, metrics.Superseded, metrics.Dropped, metrics.Failure},
	"source":    {metrics.Cache, metrics.LiveList},
	"answer":    {metrics.Blocked, metrics.Free},
	"state":     {"unprotected", "protected", "blocked", "waiting", "released"},
}

// registered returns what the registry has of this program's own metrics: all
// that is not of a library.
func registered(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := runtimemetrics.Registry.Gather()
	if err != nil {
		t.Fatalf("gathering failed: %v", err)
	}
	own := map[string]*dto.MetricFamily{}
	for _, family := range families {
		isLibrary := func(prefix string) bool { return strings.HasPrefix(family.GetName(), prefix) }
		if !slices.ContainsFunc([]string{
			"go_", "process_", "rest_client_", "workqueue_", "controller_runtime_", "certwatcher_", "leader_election_",
		}, isLibrary) {
			own[family.GetName()] = family
		}
	}
	return own
}

func TestNames(t *testing.T) {
	got := slices.Sorted(maps.Keys(registered(t)))
	want := slices.Sorted(maps.Keys(ours))
	if !slices.Equal(got, want) {
		t.Errorf("the registry has %q, want %q", got, want)
	}
	for _, name := range got {
		if !strings.HasPrefix(name, prefix) {
			t.Errorf("metric %s lacks the prefix %s", name, prefix)
		}
	}
	for name, metric := range ours {
		var already prometheus.AlreadyRegisteredError
		if err := runtimemetrics.Registry.Register(metric.collector); !errors.As(err, &already) {
			t.Errorf("metric %s was not registered: %v", name, err)
		}
	}
}

// TestDocumented proves that the README has every metric, and no other.
func TestDocumented(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(pvc_protection_[a-z_]+)").FindAllSubmatch(readme, -1) {
		documented[string(row[1])] = true
	}
	got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(ours))
	if !slices.Equal(got, want) {
		t.Errorf("the README has %q, want %q", got, want)
	}
}

func TestLint(t *testing.T) {
	problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(registered(t)))).Lint()
	if err != nil {
		t.Fatalf("linting failed: %v", err)
	}
	for _, problem := range problems {
		t.Errorf("metric %s: %s", problem.Metric, problem.Text)
	}
}

// TestLabels proves that every series exists from the start, so that a counter that
// stays at 0 is seen, and that there are no others.
func TestLabels(t *testing.T) {
	for name, family := range registered(t) {
		if got, want := len(family.GetMetric()), ours[name].series; got != want {
			t.Errorf("metric %s has %d series at start, want %d", name, got, want)
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if !slices.Contains(values[label.GetName()], label.GetValue()) {
					t.Errorf("metric %s has the label %s=%s, want it to be of %q",
						name, label.GetName(), label.GetValue(), values)
				}
				if !strings.Contains(family.GetHelp(), label.GetValue()) {
					t.Errorf("the help of metric %s does not say %s=%s", name, label.GetName(), label.GetValue())
				}
			}
		}
	}
}

// TestBuckets proves that the histograms reach as far as what they measure.
func TestBuckets(t *testing.T) {
	for name, reach := range map[string]struct{ from, to float64 }{
		"pvc_protection_batch_claims":               {1, 2000},
		"pvc_protection_live_list_duration_seconds": {0.05, 10},
		"pvc_protection_release_delay_seconds":      {0.5, 86400},
	} {
		buckets := registered(t)[name].GetMetric()[0].GetHistogram().GetBucket()
		if len(buckets) < 2 {
			t.Errorf("metric %s has %d buckets", name, len(buckets))
			continue
		}
		if first := buckets[0].GetUpperBound(); first > reach.from {
			t.Errorf("the first bucket of %s ends at %v, want at most %v", name, first, reach.from)
		}
		if last := buckets[len(buckets)-1].GetUpperBound(); last < reach.to {
			t.Errorf("the last bucket of %s ends at %v, want at least %v", name, last, reach.to)
		}
	}
}

func TestClaimStates(t *testing.T) {
	var states metrics.ClaimStates
	registry := prometheus.NewRegistry()
	registry.MustRegister(&states)
	value := func(name, state string) float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if family.GetName() == name && (state == "" || metric.GetLabel()[0].GetValue() == state) {
					return metric.GetGauge().GetValue()
				}
			}
		}
		t.Fatalf("there is no %s of state %q", name, state)
		return 0
	}
	states.Unprotected.Store(1)
	states.Protected.Store(2)
	states.Candidates.Store(7)
	states.Blocked.Store(3)
	states.Released.Store(5)
	for state, want := range map[string]float64{"unprotected": 1, "protected": 2, "blocked": 3, "waiting": 4, "released": 5} {
		if got := value("pvc_protection_claims", state); got != want {
			t.Errorf("%v claims are %s, want %v", got, state, want)
		}
	}
	states.Candidates.Store(2) // before those that are gone were noticed
	if got := value("pvc_protection_claims", "waiting"); got != 0 {
		t.Errorf("%v claims are waiting, want none", got)
	}

	const age = "pvc_protection_oldest_blocked_claim_age_seconds"
	if got := value(age, ""); got != 0 {
		t.Errorf("the oldest claim is %v s old, want 0 as long as nobody knows", got)
	}
	states.SetOldest(func() (time.Time, bool) { return time.Now().Add(-time.Hour), true })
	if got := value(age, ""); got < 3600 || got > 7200 {
		t.Errorf("the oldest claim is %v s old, want an hour", got)
	}
	states.SetOldest(func() (time.Time, bool) { return time.Time{}, false })
	if got := value(age, ""); got != 0 {
		t.Errorf("the oldest claim is %v s old, want 0 if there is none", got)
	}
}
