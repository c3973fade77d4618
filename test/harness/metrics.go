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

package harness

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// MetricsAddress returns the host and port at which the operator serves its metrics.
func (o *Operator) MetricsAddress() string {
	return o.metrics
}

// Metric returns the value of a metric of the operator: the sum of the series of that name that have all the given
// labels, each written as in the exposition format, for instance `result="success"`. That there is none is an error.
func (o *Operator) Metric(ctx context.Context, name string, labels ...string) (float64, error) {
	text, err := Get(ctx, http.DefaultClient, "http://"+o.metrics+"/metrics")
	if err != nil {
		return 0, err
	}
	return SumMetric(text, name, labels...)
}

// SumMetric is Metric of a text in the exposition format.
func SumMetric(text, name string, labels ...string) (float64, error) {
	sum, found := 0.0, false
	lines := bufio.NewScanner(strings.NewReader(text))
next:
	for lines.Scan() {
		series, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || series != name && !strings.HasPrefix(series, name+"{") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(series, "{"+label) && !strings.Contains(series, ","+label) {
				continue next
			}
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", series, err)
		}
		sum, found = sum+number, true
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("there is no metric %s with labels %v", name, labels)
	}
	return sum, nil
}
