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

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

// result is what a contender took for a scenario.
type result struct {
	Scenario  string `json:"scenario"`
	Contender string `json:"contender"`

	// Seconds is the time from the contender's first live list or write to the
	// answer to its last write, by the API server's audit log. The start of its
	// process is not in it.
	Seconds float64 `json:"seconds"`
	// CPUSeconds and PeakRSSMiB are those of the contender's process, its start
	// included. The floor has none.
	CPUSeconds float64 `json:"cpuSeconds,omitempty"`
	PeakRSSMiB float64 `json:"peakRSSMiB,omitempty"`

	// LiveLists counts lists of a namespace's pods, however many pages they have.
	LiveLists int `json:"liveLists"`
	Writes    int `json:"writes"`
	Conflicts int `json:"conflicts"`
}

// readAudit fills in what the audit log says. A request is recorded when it has been
// answered, so the last writes may be missing for a moment.
func (r *result) readAudit(ctx context.Context, c *cluster.Cluster, agent string, since time.Time, writes int) error {
	return harness.Eventually(ctx, time.Minute, func(context.Context) error {
		var first, last time.Time
		r.LiveLists, r.Writes, r.Conflicts = 0, 0, 0
		err := c.AuditEvents(func(e cluster.AuditEvent) bool {
			if !strings.HasPrefix(e.UserAgent, agent) || e.RequestReceivedTimestamp.Time.Before(since) ||
				e.ObjectRef == nil || e.ResponseStatus == nil {
				return true
			}
			list := e.Verb == "list" && e.ObjectRef.Resource == "pods" && e.ObjectRef.Namespace != ""
			write := e.ObjectRef.Resource == "persistentvolumeclaims" && (e.Verb == "patch" || e.Verb == "update")
			if !list && !write {
				return true
			}
			if t := e.RequestReceivedTimestamp.Time; first.IsZero() || t.Before(first) {
				first = t
			}
			switch {
			case list && !strings.Contains(e.RequestURI, "continue="):
				r.LiveLists++
			case write && e.ResponseStatus.Code == 409:
				r.Conflicts++
			case write:
				r.Writes++
				if t := e.StageTimestamp.Time; t.After(last) {
					last = t
				}
			}
			return true
		})
		if err != nil {
			return err
		}
		if r.Writes < writes {
			return fmt.Errorf("the audit log has %d writes of %s instead of %d", r.Writes, r.Contender, writes)
		}
		r.Seconds = last.Sub(first).Seconds()
		return nil
	})
}

// printTable prints the medians and the ratios of the scenarios, in their order.
func printTable(w io.Writer, results []result) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format+"\n", args...) }
	for _, s := range scenarios {
		of := func(name string) []result {
			return slices.DeleteFunc(slices.Clone(results), func(r result) bool {
				return r.Scenario != s.Name || r.Contender != name
			})
		}
		seconds := func(r result) float64 { return r.Seconds }
		cpu := func(r result) float64 { return r.CPUSeconds }
		rss := func(r result) float64 { return r.PeakRSSMiB }
		lists := func(r result) float64 { return float64(r.LiveLists) }
		conflicts := func(r result) float64 { return float64(r.Conflicts) }
		if len(of(operator)) == 0 {
			continue
		}
		row("\n%s\t", s.Name)
		if s.idle() {
			row("\tCPU seconds\tpeak RSS MiB (min–max)")
			for _, name := range []string{upstream, operator} {
				rs := of(name)
				row("%s\t%.2f\t%.0f (%.0f–%.0f)", name, median(rs, cpu), median(rs, rss), least(rs, rss), most(rs, rss))
			}
			row("operator / upstream\t%.2f\t%.2f", median(of(operator), cpu)/median(of(upstream), cpu),
				median(of(operator), rss)/median(of(upstream), rss))
			continue
		}
		row("\tseconds (min–max)\tCPU seconds\tpeak RSS MiB\tlive lists\tconflicts")
		for _, ct := range contenders {
			rs := of(ct.name)
			row("%s\t%.2f (%.2f–%.2f)\t%.2f\t%.0f\t%.0f\t%.0f", ct.name, median(rs, seconds), least(rs, seconds), most(rs, seconds),
				median(rs, cpu), median(rs, rss), median(rs, lists), median(rs, conflicts))
		}
		row("operator / upstream\t%.2f\t%.2f\t%.2f", median(of(operator), seconds)/median(of(upstream), seconds),
			median(of(operator), cpu)/median(of(upstream), cpu), median(of(operator), rss)/median(of(upstream), rss))
		row("operator / floor\t%.2f", median(of(operator), seconds)/median(of(floor), seconds))
	}
	_ = table.Flush()
}

func sorted(results []result, value func(result) float64) []float64 {
	values := make([]float64, 0, len(results))
	for _, r := range results {
		values = append(values, value(r))
	}
	slices.Sort(values)
	return values
}

func least(results []result, value func(result) float64) float64 { return sorted(results, value)[0] }

func most(results []result, value func(result) float64) float64 {
	return sorted(results, value)[len(results)-1]
}

func median(results []result, value func(result) float64) float64 {
	values := sorted(results, value)
	if middle := len(values) / 2; len(values)%2 == 1 {
		return values[middle]
	}
	return (values[len(values)/2-1] + values[len(values)/2]) / 2
}
