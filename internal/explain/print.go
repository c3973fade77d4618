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

package explain

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

const none = "<none>"

// Table says which columns PrintTable prints.
type Table struct {
	Namespace, Wide bool
}

// PrintTable prints a line for every claim.
func (r *Report) PrintTable(w io.Writer, t Table, now time.Time) error {
	columns := []string{"NAME", "STATE", "USED BY"}
	if t.Namespace {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	if t.Wide {
		columns = append(columns, "NODES", "AGE", "FINALIZERS")
	}
	table := newTable(w, columns...)
	for i := range r.Items {
		c := &r.Items[i]
		row := []string{c.Name, string(c.State), c.usedBy()}
		if t.Namespace {
			row = append([]string{c.Namespace}, row...)
		}
		if t.Wide {
			row = append(row, c.nodes(), ago(c.Created.Time, now), list(c.Finalizers))
		}
		table.row(row...)
	}
	return table.flush()
}

// PrintText prints a paragraph for every claim.
func (r *Report) PrintText(w io.Writer, now time.Time) error {
	p := &printer{w: w}
	for i := range r.Items {
		if i > 0 {
			p.line("")
		}
		r.Items[i].printText(p, now)
	}
	return p.err
}

func (c *Claim) printText(p *printer, now time.Time) {
	state := string(c.State)
	if c.Deleted != nil {
		state += ", deleted " + ago(c.Deleted.Time, now) + " ago"
	}
	p.field("Name", c.Name)
	p.field("Namespace", c.Namespace)
	p.field("State", state)
	p.field("Finalizers", list(c.Finalizers))
	if len(c.OtherFinalizers) > 0 {
		p.field("Other finalizers", list(c.OtherFinalizers))
	}
	if c.State != OtherFinalizer {
		p.field("Served by", servers[c.ServedBy.By])
		for part := range strings.SplitSeq(c.ServedBy.Evidence, "; ") {
			p.line(strings.Repeat(" ", fieldWidth) + part)
		}
	}
	if len(c.Pods) == 0 {
		p.field("Used by", none)
	} else {
		p.field("Used by", "")
		p.do(func() error { return c.printPods(p.w, now) })
	}
	p.field("Next step", c.NextStep)
}

// servers are the words for who serves a finalizer.
var servers = map[Server]string{
	ByOperator: "the operator",
	ByInTree:   "the in-tree controller",
	ByNobody:   "nobody",
	ByUnknown:  "unknown",
}

func (c *Claim) printPods(w io.Writer, now time.Time) error {
	pods := newTable(w, "  POD", "NODE", "PHASE", "SINCE", "OWNER", "STATE")
	for _, pod := range c.Pods {
		since := "<unknown>"
		if pod.Since != nil {
			since = ago(pod.Since.Time, now)
		}
		state := pod.State
		if pod.Overdue != nil {
			state += ", should have ended " + ago(pod.Overdue.Time, now) + " ago"
		}
		pods.row("  "+pod.Name, orNone(pod.Node), string(pod.Phase), since, pod.owner(), state)
	}
	return pods.flush()
}

// usedBy names the pods, and says in short of those that do not just run what they
// do instead.
func (c *Claim) usedBy() string {
	names := make([]string, 0, len(c.Pods))
	for _, pod := range c.Pods {
		name := pod.Name
		if pod.deleted || !pod.Holds || pod.Phase != corev1.PodRunning {
			short, _, _ := strings.Cut(strings.ReplaceAll(pod.State, ";", ","), ",")
			name += " (" + short + ")"
		}
		names = append(names, name)
	}
	return list(names)
}

func (c *Claim) nodes() string {
	nodes := make([]string, 0, len(c.Pods))
	for _, pod := range c.Pods {
		nodes = append(nodes, orNone(pod.Node))
	}
	return list(nodes)
}

// owner names who made the pod, and who made that.
func (p *Pod) owner() string {
	names := make([]string, 0, len(p.Owners))
	for _, owner := range p.Owners {
		names = append(names, owner.Kind+"/"+owner.Name)
	}
	return orNone(strings.Join(names, " of "))
}

func list(items []string) string { return orNone(strings.Join(items, ",")) }

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}

// ago is how long something has lasted, as kubectl says it.
func ago(since, now time.Time) string { return duration.HumanDuration(max(now.Sub(since), 0)) }

// printer remembers the first error and does nothing after it.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) do(print func() error) {
	if p.err == nil {
		p.err = print()
	}
}

func (p *printer) line(text string) {
	p.do(func() error {
		_, err := fmt.Fprintln(p.w, text)
		return err
	})
}

// fieldWidth is where the values of fields begin.
const fieldWidth = 18

func (p *printer) field(name, value string) {
	p.line(strings.TrimRight(fmt.Sprintf("%-*s%s", fieldWidth, name+":", value), " "))
}

// table aligns columns as kubectl does.
type table struct {
	printer
	flush func() error
}

func newTable(w io.Writer, header ...string) *table {
	aligned := tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
	t := &table{printer: printer{w: aligned}}
	t.flush = func() error {
		t.do(aligned.Flush)
		return t.err
	}
	t.row(header...)
	return t
}

func (t *table) row(cells ...string) { t.line(strings.Join(cells, "\t")) }
