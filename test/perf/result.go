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

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/rest"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

// measure is something that is measured. Its name is the column in the table.
type measure string

const (
	// seconds is the time of the work; see the scenarios' kinds.
	seconds measure = "time s"
	// trafficSeconds is how long the traffic lasted that made the work.
	trafficSeconds measure = "traffic s"
	// startSeconds is the time from the start of the process until it is quiet.
	startSeconds measure = "start s"
	p50          measure = "p50 ms"
	p99          measure = "p99 ms"
	// eventMicroseconds is the CPU time for a pod's event.
	eventMicroseconds measure = "CPU µs/event"
	// cpuSeconds and peakRSS are those of the contender's process, its start
	// included. The floor has none.
	cpuSeconds measure = "CPU s"
	peakRSS    measure = "peak RSS MiB"
	// liveLists counts lists of a namespace's pods, however many pages they have.
	liveLists measure = "live lists"
	// listMiB is how large they were on the wire.
	listMiB   measure = "lists MiB"
	writes    measure = "writes"
	conflicts measure = "conflicts"
	// serverCPU is the API server's CPU time. For the traffic, too, if there is any.
	serverCPU measure = "API server CPU s"
)

// measures are in the order of the table's columns.
var measures = []measure{seconds, p50, p99, eventMicroseconds, startSeconds, cpuSeconds, peakRSS,
	liveLists, listMiB, writes, conflicts, serverCPU, trafficSeconds}

// isCount reports whether a ratio of the measure would say nothing.
func (m measure) isCount() bool { return m == writes || m == conflicts || m == trafficSeconds }

// result is what a contender took for a scenario.
type result struct {
	Scenario  string              `json:"scenario"`
	Size      int                 `json:"size,omitempty"`
	Contender string              `json:"contender"`
	Values    map[measure]float64 `json:"values"`
}

func (r *result) set(m measure, value float64) { r.Values[m] = value }

// serverUse is what the API server has used since its start.
type serverUse struct {
	cpu       time.Duration
	listBytes float64
}

func (e *env) serverUse(ctx context.Context) (use serverUse, err error) {
	pid, err := e.cluster.PID(cluster.APIServer)
	if err != nil {
		return use, err
	}
	if use.cpu, err = cpuOf(pid); err != nil {
		return use, err
	}
	web, err := rest.HTTPClientFor(e.cluster.Config())
	if err != nil {
		return use, err
	}
	text, err := harness.Get(ctx, web, strings.TrimSuffix(e.cluster.Config().Host, "/")+"/metrics")
	if err != nil {
		return use, err
	}
	// That there is none yet is no error here.
	use.listBytes, _ = harness.SumMetric(text, "apiserver_response_sizes_sum",
		`resource="pods"`, `scope="namespace"`, `verb="LIST"`)
	return use, nil
}

// audit is what the audit log says of a contender.
type audit struct {
	// first is when the first live list or write came, last when the last write was
	// answered.
	first, last                  time.Time
	liveLists, writes, conflicts int
}

func (a *audit) report(r *result) {
	r.set(liveLists, float64(a.liveLists))
	r.set(writes, float64(a.writes))
	r.set(conflicts, float64(a.conflicts))
}

// audit reads the audit log. A request is recorded when it has been answered, so the
// last writes may be missing for a moment.
func (e *env) audit(ctx context.Context, ct contender, since time.Time, writes int) (seen *audit, err error) {
	return seen, harness.Eventually(ctx, time.Minute, func(context.Context) error {
		seen = &audit{}
		err := e.cluster.AuditEvents(func(event cluster.AuditEvent) bool {
			if strings.HasPrefix(event.UserAgent, ct.agent) && !event.RequestReceivedTimestamp.Time.Before(since) {
				seen.add(&event)
			}
			return true
		})
		if err == nil && seen.writes < writes {
			err = fmt.Errorf("the audit log has %d writes of %s instead of %d", seen.writes, ct.name, writes)
		}
		return err
	})
}

func (a *audit) add(event *cluster.AuditEvent) {
	if event.ObjectRef == nil || event.ResponseStatus == nil {
		return
	}
	list := event.Verb == "list" && event.ObjectRef.Resource == "pods" && event.ObjectRef.Namespace != ""
	write := event.ObjectRef.Resource == "persistentvolumeclaims" && (event.Verb == "patch" || event.Verb == "update")
	if !list && !write {
		return
	}
	if t := event.RequestReceivedTimestamp.Time; a.first.IsZero() || t.Before(a.first) {
		a.first = t
	}
	switch {
	case list && !strings.Contains(event.RequestURI, "continue="):
		a.liveLists++
	case write && event.ResponseStatus.Code == 409:
		a.conflicts++
	case write:
		a.writes++
		if t := event.StageTimestamp.Time; t.After(a.last) {
			a.last = t
		}
	}
}

// printTable prints the medians of the scenario, with least and most, and the
// operator's ratios to the others.
func printTable(w io.Writer, s scenario, contenders []contender, results []result) {
	valuesOf := func(name string, m measure) []float64 {
		var values []float64
		for _, r := range results {
			if value, ok := r.Values[m]; ok && r.Scenario == s.Name && r.Contender == name {
				values = append(values, value)
			}
		}
		slices.Sort(values)
		return values
	}
	columns := slices.DeleteFunc(slices.Clone(measures), func(m measure) bool { return len(valuesOf(operator, m)) == 0 })

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(measure) string) {
		_, _ = fmt.Fprint(table, name)
		for _, m := range columns {
			_, _ = fmt.Fprint(table, "\t", cell(m))
		}
		_, _ = fmt.Fprintln(table)
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", s.Title)
	if s.withoutUpstream != "" {
		_, _ = fmt.Fprintf(w, "(without upstream: %s)\n", s.withoutUpstream)
	}
	row("", func(m measure) string { return string(m) })
	for _, ct := range contenders {
		if !slices.ContainsFunc(results, func(r result) bool { return r.Scenario == s.Name && r.Contender == ct.name }) {
			continue
		}
		row(ct.name, func(m measure) string {
			values := valuesOf(ct.name, m)
			switch {
			case len(values) == 0:
				return ""
			case values[0] == values[len(values)-1]:
				return number(values[0])
			default:
				return fmt.Sprintf("%s (%s–%s)", number(median(values)), number(values[0]), number(values[len(values)-1]))
			}
		})
	}
	for _, other := range []string{upstream, floor} {
		ratio := func(m measure) string {
			mine, others := valuesOf(operator, m), valuesOf(other, m)
			if m.isCount() || len(others) == 0 || median(others) == 0 {
				return ""
			}
			return fmt.Sprintf("%.2f", median(mine)/median(others))
		}
		if slices.ContainsFunc(columns, func(m measure) bool { return ratio(m) != "" }) {
			row(operator+" / "+other, ratio)
		}
	}
	_ = table.Flush()
	_, _ = fmt.Fprintln(w)
}

// number prints a value with three digits or so.
func number(value float64) string {
	switch {
	case value == float64(int(value)) || value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}

// median returns the median of sorted values.
func median(values []float64) float64 {
	if middle := len(values) / 2; len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[len(values)/2]
}
