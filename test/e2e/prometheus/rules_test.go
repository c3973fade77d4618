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

package prometheus_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"pvc-protection-operator/test/harness"
)

// group is a group of a rule file, which is what a PrometheusRule has in its spec.
type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// loadRules returns the groups of the only PrometheusRule.
func loadRules(manifests harness.Manifests) ([]group, error) {
	var object struct {
		Spec struct {
			Groups []group `json:"groups"`
		} `json:"spec"`
	}
	if err := manifests.Decode("PrometheusRule", &object); err != nil {
		return nil, err
	}
	if len(object.Spec.Groups) == 0 {
		return nil, errors.New("the PrometheusRule has no groups")
	}
	return object.Spec.Groups, nil
}

// writeRules writes a rule file.
func writeRules(file string, groups []group) error {
	content, err := yaml.Marshal(map[string]any{"groups": groups})
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

const (
	// haste is how many times faster than a user's Prometheus that of the live tests is. With it, the operator's longest
	// back-off of 30 seconds still lies within the ranges of the rules, as it does there.
	haste = 8

	// anHour is how ages are written in the rules. In the live tests, claims age faster still: an hour in a second.
	anHour = "* 3600"
)

var aDuration = regexp.MustCompile(`\b[0-9]+[smh]\b`)

// hasten returns the groups as they are, but for every duration, in the expressions and of "for", which is divided by
// haste, and for the ages.
func hasten(groups []group) []group {
	shorten := func(text string) string {
		return aDuration.ReplaceAllStringFunc(text, func(text string) string {
			duration, err := time.ParseDuration(text)
			if err != nil {
				panic(err) // the pattern has let nothing else through
			}
			return strconv.FormatInt((duration/haste).Milliseconds(), 10) + "ms"
		})
	}
	groups = slices.Clone(groups)
	for i := range groups {
		groups[i].Rules = slices.Clone(groups[i].Rules)
		for j := range groups[i].Rules {
			r := &groups[i].Rules[j]
			r.For = shorten(r.For)
			r.Expr = strings.ReplaceAll(shorten(r.Expr), anHour, "* 1")
		}
	}
	return groups
}

// alerts returns the names of all alerts.
func alerts() []string {
	var names []string
	for _, group := range suite.groups {
		for _, rule := range group.Rules {
			names = append(names, rule.Alert)
		}
	}
	return names
}

// TestRules runs the tests in testdata, and has promtool look for mistakes in the rules.
func TestRules(t *testing.T) {
	const tests = "alerts_test.yaml"
	promtool, err := built("promtool")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.yaml") // what the tests call it
	if err := writeRules(rules, suite.groups); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join("testdata", tests))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, tests), content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", rules},
		{"test", "rules", filepath.Join(dir, tests)},
	} {
		if output, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
}

// TestEveryAlertIsTested has every alert fire, and not fire, in the tests of promtool.
func TestEveryAlertIsTested(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "alerts_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Cases []struct {
				Alert    string `json:"alertname"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			if len(c.Expected) > 0 {
				fires[c.Alert] = true
			} else {
				silent[c.Alert] = true
			}
		}
	}
	for _, alert := range alerts() {
		if !fires[alert] || !silent[alert] {
			t.Errorf("%s: tested to fire: %t, not to fire: %t", alert, fires[alert], silent[alert])
		}
	}
}

// TestAlertsAreExplained has every alert say how bad it is, what it means and where to read on.
func TestAlertsAreExplained(t *testing.T) {
	for _, group := range suite.groups {
		for _, rule := range group.Rules {
			if severity := rule.Labels["severity"]; severity != "warning" && severity != "critical" {
				t.Errorf("%s has the severity %q", rule.Alert, severity)
			}
			if rule.Annotations["summary"] == "" {
				t.Errorf("%s has no summary", rule.Alert)
			}
			if !strings.HasSuffix(rule.Annotations["description"], "See docs/troubleshooting.md.") {
				t.Errorf("%s does not say where to read on", rule.Alert)
			}
		}
	}
}

func TestHasten(t *testing.T) {
	got := hasten([]group{{Name: "g", Rules: []rule{{
		Alert: "A", Expr: `max_over_time(age{a="5m2"}[5m]) > 24 * 3600 and rate(b[1h]) > 3`, For: "10m",
	}}}})
	want := fmt.Sprint([]group{{Name: "g", Rules: []rule{{
		Alert: "A", Expr: `max_over_time(age{a="5m2"}[37500ms]) > 24 * 1 and rate(b[450000ms]) > 3`, For: "75000ms",
	}}}})
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
