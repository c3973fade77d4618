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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	// Registers the operator's metrics.
	_ "pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/test/harness"
)

// dashboard is what is of interest in a dashboard of Grafana.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []panel
}

type panel struct {
	ID      int
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ RefID, Expr, LegendFormat string }
}

// loadDashboard returns the only dashboard in the only ConfigMap of the folder's kustomization.
func loadDashboard(dir string) (d dashboard, err error) {
	manifests, err := harness.Render(dir)
	if err != nil {
		return d, err
	}
	var object corev1.ConfigMap
	if err := manifests.Decode("ConfigMap", &object); err != nil {
		return d, err
	}
	if object.Labels["grafana_dashboard"] != "1" || len(object.Data) != 1 {
		return d, errors.New("the ConfigMap is not one of a dashboard")
	}
	for name, content := range object.Data {
		if filepath.Ext(name) != ".json" {
			return d, fmt.Errorf("grafana does not look into files such as %s", name)
		}
		err = json.Unmarshal([]byte(content), &d)
	}
	return d, err
}

var (
	ownMetric = regexp.MustCompile(`\bpvc_protection_\w+`)
	ofFamily  = regexp.MustCompile(`_(bucket|sum|count)$`)
	inLegend  = regexp.MustCompile(`{{(\w+)}}`)
	labelsOf  = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
)

// TestMetrics has every metric of the operator on the dashboard, and none on it or in an alert that there is not.
func TestMetrics(t *testing.T) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, family := range families {
		if name := family.GetName(); strings.HasPrefix(name, "pvc_protection_") {
			shown[name] = false
		}
	}
	find := func(where, expr string, found func(metric string)) {
		for _, name := range ownMetric.FindAllString(expr, -1) {
			if _, exists := shown[name]; !exists {
				name = ofFamily.ReplaceAllString(name, "")
			}
			if _, exists := shown[name]; !exists {
				t.Errorf("%s: there is no metric %s", where, name)
				continue
			}
			found(name)
		}
	}
	for _, panel := range suite.dashboard.Panels {
		for _, target := range panel.Targets {
			find(panel.Title, target.Expr, func(metric string) { shown[metric] = true })
		}
	}
	for _, group := range suite.groups {
		for _, rule := range group.Rules {
			find(rule.Alert, rule.Expr, func(string) {})
		}
	}
	for name, is := range shown {
		if !is {
			t.Errorf("%s is not on the dashboard", name)
		}
	}
}

// TestPanels has panels that do not lie upon each other or share an identity.
func TestPanels(t *testing.T) {
	const width = 24
	taken, seen := map[[2]int]string{}, map[int]bool{}
	for _, panel := range suite.dashboard.Panels {
		if seen[panel.ID] {
			t.Errorf("%s shares the ID %d", panel.Title, panel.ID)
		}
		seen[panel.ID] = true
		at := panel.GridPos
		if at.W <= 0 || at.H <= 0 || at.X < 0 || at.X+at.W > width {
			t.Errorf("%s is at %+v", panel.Title, at)
		}
		for x := range at.W {
			for y := range at.H {
				cell := [2]int{at.X + x, at.Y + y}
				if other := taken[cell]; other != "" {
					t.Fatalf("%s lies upon %s", panel.Title, other)
				}
				taken[cell] = panel.Title
			}
		}
	}
}

// everyPanelHasData plays a bit of everything and asks what the dashboard asks.
func everyPanelHasData(t *testing.T, l *live) {
	e := newEnv(t, l, 1)
	namespace := e.namespaces[0]
	blocked, _ := e.usedClaim(namespace, "blocked")
	e.delete(blocked)
	e.eventually(`max(pvc_protection_oldest_blocked_claim_age_seconds{job=%q}) > 0`)
	e.delete(e.claim(namespace, "free"))
	e.eventually(`sum(pvc_protection_release_delay_seconds_count{job=%q}) > 0`)

	variables := strings.NewReplacer("$namespace", harness.Namespace, "$job", e.job, "$__rate_interval", "10m")
	for _, panel := range suite.dashboard.Panels {
		for _, target := range panel.Targets {
			expr := variables.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s has an unknown variable: %s", panel.Title, expr)
				continue
			}
			var labels []string
			for _, label := range inLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
				labels = append(labels, label[1])
			}
			if err := harness.Eventually(t.Context(), patience, e.hasData(expr, labels)); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			}
		}
	}
	for _, variable := range suite.dashboard.Templating.List {
		if variable.Type != "query" {
			continue
		}
		parts := labelsOf.FindStringSubmatch(variables.Replace(variable.Query))
		if parts == nil {
			t.Errorf("the variable %s has the query %s", variable.Name, variable.Query)
			continue
		}
		if err := e.hasData(parts[1], parts[2:])(t.Context()); err != nil {
			t.Errorf("the variable %s: %v", variable.Name, err)
		}
	}
}

// hasData is the condition that there is something to see, and that it has the labels.
func (e *env) hasData(expr string, labels []string) harness.Condition {
	return func(ctx context.Context) error {
		samples, err := e.prometheus.query(ctx, expr)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(samples, func(s sample) bool { return !math.IsNaN(s.value) }) {
			return fmt.Errorf("%s has no data: %v", expr, samples)
		}
		for _, label := range labels {
			if samples[0].labels[label] == "" {
				return fmt.Errorf("%s has no label %s: %v", expr, label, samples)
			}
		}
		return nil
	}
}
