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
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSumOf(t *testing.T) {
	const text = `# HELP writes_total Number of writes.
# TYPE writes_total counter
writes_total{operation="protect",result="error"} 1
writes_total{operation="release",result="error"} 2
writes_total{operation="release",result="success"} 4
writes_total_other 8
in_flight 1.5e+01
`
	for name, tc := range map[string]struct {
		metric string
		labels []string
		want   float64
		none   bool
	}{
		"all series":     {metric: "writes_total", want: 7},
		"one label":      {metric: "writes_total", labels: []string{`result="error"`}, want: 3},
		"two labels":     {metric: "writes_total", labels: []string{`result="error"`, `operation="release"`}, want: 2},
		"without labels": {metric: "in_flight", want: 15},
		"no such label":  {metric: "writes_total", labels: []string{`result="superseded"`}, none: true},
		"no such metric": {metric: "writes", none: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := SumMetric(text, tc.metric, tc.labels...)
			if got != tc.want || (err != nil) != tc.none {
				t.Errorf("got %v, error %v", got, err)
			}
		})
	}
}

func TestEventually(t *testing.T) {
	failure := errors.New("not yet")
	calls := 0
	if err := Eventually(t.Context(), time.Minute, func(context.Context) error {
		if calls++; calls < 3 {
			return failure
		}
		return nil
	}); err != nil || calls != 3 {
		t.Errorf("got error %v after %d calls", err, calls)
	}
	err := Eventually(t.Context(), time.Millisecond, func(context.Context) error { return failure })
	if !errors.Is(err, failure) {
		t.Errorf("got error %v, want it to say what failed last", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it has ended"))
	err = Eventually(ctx, time.Minute, func(context.Context) error { return failure })
	if err == nil || !strings.Contains(err.Error(), "it has ended") {
		t.Errorf("got error %v, want it to say why the context is done", err)
	}
}

func TestConsistently(t *testing.T) {
	if err := Consistently(t.Context(), time.Millisecond, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	failure := errors.New("not any more")
	calls := 0
	err := Consistently(t.Context(), time.Minute, func(context.Context) error {
		if calls++; calls < 3 {
			return nil
		}
		return failure
	})
	if !errors.Is(err, failure) || calls != 3 {
		t.Errorf("got error %v after %d calls", err, calls)
	}
}
