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

// The report draws what the benchmark has measured, and fits how memory and time
// grow. It is a module of its own, so that the operator's has no plotting library.
//
//	make bench-report
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

func main() {
	folder := flag.String("folder", "dist/bench", "the folder with results.json; the pictures go there, too")
	flag.Parse()
	if err := run(*folder); err != nil {
		fmt.Fprintf(os.Stderr, "report: %v\n", err)
		os.Exit(1)
	}
}

// result is what the benchmark writes.
type result struct {
	Scenario  string             `json:"scenario"`
	Size      int                `json:"size"`
	Contender string             `json:"contender"`
	Values    map[string]float64 `json:"values"`
}

// curve is how a measure grows with the size of the scenarios of a family.
type curve struct {
	family, measure, file string
	// unit is what grows, and per how many of it the slope is printed.
	unit string
	per  float64
}

var curves = []curve{
	{family: "idle", measure: "peak RSS MiB", file: "memory.png", unit: "pods", per: 1000},
	{family: "idle", measure: "start s", file: "start.png", unit: "pods", per: 1000},
	{family: "backlog", measure: "time s", file: "backlog.png", unit: "claims and as many other pods", per: 1000},
	{family: "backlog", measure: "CPU s", file: "backlog-cpu.png", unit: "claims and as many other pods", per: 1000},
}

var contenders = []string{"upstream", "operator", "floor"}

func run(folder string) error {
	content, err := os.ReadFile(filepath.Join(folder, "results.json"))
	if err != nil {
		return fmt.Errorf("%w (make bench writes it)", err)
	}
	var results []result
	if err := json.Unmarshal(content, &results); err != nil {
		return fmt.Errorf("results.json: %w", err)
	}
	for _, c := range curves {
		if err := c.draw(folder, results); err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
	}
	return drawRatios(filepath.Join(folder, "ratios.png"), results)
}

// medians returns the measure's medians by size.
func (c curve) medians(results []result, contender string) plotter.XYs {
	values := map[int][]float64{}
	for _, r := range results {
		if value, ok := r.Values[c.measure]; ok && r.Contender == contender && r.Size > 0 &&
			strings.HasPrefix(r.Scenario, c.family+"-") {
			values[r.Size] = append(values[r.Size], value)
		}
	}
	var points plotter.XYs
	for size, all := range values {
		points = append(points, plotter.XY{X: float64(size), Y: median(all)})
	}
	slices.SortFunc(points, func(a, b plotter.XY) int { return int(a.X - b.X) })
	return points
}

func (c curve) draw(folder string, results []result) error {
	p := newPlot(c.family + ": " + c.measure)
	p.X.Label.Text, p.Y.Label.Text = c.unit, c.measure
	p.X.Min, p.Y.Min = 0, 0
	p.X.Tick.Marker = plot.TickerFunc(thousands)
	var lines []any
	for _, contender := range contenders {
		points := c.medians(results, contender)
		if len(points) < 2 {
			continue
		}
		lines = append(lines, contender, points)
		var x, y []float64
		for _, point := range points {
			x, y = append(x, point.X), append(y, point.Y)
		}
		intercept, slope := stat.LinearRegression(x, y, nil, false)
		fmt.Printf("%s, %s of %s: %.3g + %.3g for every %g %s (R² %.3f)\n", c.family, c.measure, contender,
			intercept, slope*c.per, c.per, c.unit, stat.RSquared(x, y, nil, intercept, slope))
	}
	if len(lines) == 0 {
		return nil // These scenarios did not run.
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return err
	}
	return p.Save(16*vg.Centimeter, 10*vg.Centimeter, filepath.Join(folder, c.file))
}

func thousands(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = fmt.Sprintf("%gk", ticks[i].Value/1000)
		}
	}
	return ticks
}

// ratioOf is what the operator's share of upstream's use is drawn of.
var ratioOf = []string{"time s", "p50 ms", "CPU µs/event", "CPU s", "peak RSS MiB"}

// drawRatios draws the operator's part of what upstream takes.
func drawRatios(file string, results []result) error {
	var labels []string
	var ratios plotter.Values
	for _, r := range results {
		for _, m := range ratioOf {
			label := r.Scenario + ", " + m
			of := func(contender string) (all []float64) {
				for _, other := range results {
					if value, ok := other.Values[m]; ok && other.Scenario == r.Scenario && other.Contender == contender {
						all = append(all, value)
					}
				}
				return all
			}
			operator, upstream := of("operator"), of("upstream")
			if slices.Contains(labels, label) || len(operator) == 0 || len(upstream) == 0 || median(upstream) == 0 {
				continue
			}
			labels, ratios = append(labels, label), append(ratios, median(operator)/median(upstream))
		}
	}
	if len(ratios) == 0 {
		return nil
	}
	slices.Reverse(labels)
	slices.Reverse(ratios)
	bars, err := plotter.NewBarChart(ratios, 8*vg.Points(1))
	if err != nil {
		return err
	}
	bars.Horizontal, bars.LineStyle.Width = true, 0
	bars.Color = plotutil.Color(2)
	p := newPlot("what the operator takes of what upstream takes (1 = as much)")
	p.Add(plotter.NewGrid(), bars)
	p.NominalY(labels...)
	p.X.Min = 0
	return p.Save(16*vg.Centimeter, vg.Length(2+len(ratios)/2)*vg.Centimeter, file)
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(6)
	p.Legend.Top, p.Legend.Left = true, true
	return p
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	if middle := len(values) / 2; len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[len(values)/2]
}
