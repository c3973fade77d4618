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
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	makeTarget = regexp.MustCompile(`(?m)^([a-zA-Z][\w-]*):(?:[^=]|$)`)
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

	repoPath   = regexp.MustCompile(`^(?:\./)?((?:internal|config|test|docs|hack|\.github|\.ci)/[\w./*-]*)$`)
	madeByPage = regexp.MustCompile(`^(?:#|//) ?(\S+/\S+)$`)

	metricName = regexp.MustCompile(`^pvc_protection_[a-z_]+`)
	alertName  = regexp.MustCompile(`^PVCProtection\w+$`)
	testName   = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w*$`)
)

type checker struct {
	root    string
	targets set
	tests   set
	// metrics and alerts are the files that define them.
	metrics, alerts string
	// flags are those of the manager's commands.
	flags map[string]set

	findings []string
	// file and page are what is being checked, made what that page has its reader make.
	file string
	page *page
	made set
}

// newChecker reads what pages may name from the files of the repository.
func newChecker(root string, files []string) (*checker, error) {
	c := &checker{root: root, targets: set{}, tests: set{}}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	for _, match := range makeTarget.FindAllSubmatch(makefile, -1) {
		c.targets.add(string(match[1]))
	}
	metrics, metricsErr := os.ReadFile(filepath.Join(root, "internal/metrics/metrics.go"))
	alerts, alertsErr := os.ReadFile(filepath.Join(root, "config/prometheus/prometheus_rule.yaml"))
	if err := errors.Join(metricsErr, alertsErr); err != nil {
		return nil, err
	}
	c.metrics, c.alerts = string(metrics), string(alerts)
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		for _, match := range testFunc.FindAllSubmatch(source, -1) {
			c.tests.add(string(match[1]))
		}
	}
	return c, nil
}

func (c *checker) check(file string) error {
	source, err := os.ReadFile(filepath.Join(c.root, file))
	if err != nil {
		return err
	}
	c.file, c.page, c.made = file, parse(source), set{}
	for _, b := range c.page.blocks {
		first, _, _ := strings.Cut(b.text, "\n")
		if match := madeByPage.FindStringSubmatch(first); match != nil {
			c.made.add(match[1], path.Dir(match[1]))
		}
	}
	for _, link := range c.page.links {
		c.checkLink(link)
	}
	for _, span := range c.page.spans {
		c.checkSpan(span)
	}
	for _, b := range c.page.blocks {
		if err := c.checkBlock(b); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) complain(at located, format string, args ...any) {
	c.findings = append(c.findings, fmt.Sprintf("%s:%d: ", c.file, at.line)+fmt.Sprintf(format, args...))
}

// checkLink checks links within the repository. Others are not followed.
func (c *checker) checkLink(link located) {
	if strings.Contains(link.text, ":") {
		return
	}
	file, anchor, _ := strings.Cut(link.text, "#")
	target := c.file
	if file != "" {
		target = path.Join(path.Dir(c.file), file)
	}
	if !c.exists(target) {
		c.complain(link, "the link %s leads nowhere: there is no %s", link.text, target)
		return
	}
	if anchor == "" {
		return
	}
	linked := c.page
	if target != c.file {
		source, err := os.ReadFile(filepath.Join(c.root, target))
		if err != nil {
			c.complain(link, "the link %s leads nowhere: %v", link.text, err)
			return
		}
		linked = parse(source)
	}
	if !linked.anchors.has(anchor) {
		c.complain(link, "the link %s leads nowhere: %s has no heading #%s", link.text, target, anchor)
	}
}

func (c *checker) checkSpan(span located) {
	switch words := strings.Fields(span.text); {
	case len(words) == 0:
	case strings.HasPrefix(span.text, "--"):
		for _, word := range words {
			c.checkAnyFlag(span, word)
		}
	case len(words) > 1:
		c.checkCommands(span)
	default:
		c.checkPath(span, words[0])
		c.checkName(span, words[0])
	}
}

func (c *checker) checkBlock(b block) error {
	lines := strings.Split(b.text, "\n")
	switch b.language {
	case "sh", "bash":
		bash := exec.Command("bash", "-n")
		bash.Stdin = strings.NewReader(b.text)
		bash.Env = append(os.Environ(), "LC_ALL=C")
		out, err := bash.CombinedOutput()
		if _, refused := errors.AsType[*exec.ExitError](err); refused {
			c.complain(b.located, "bash does not understand this: %s", strings.TrimSpace(string(out)))
		} else if err != nil {
			return fmt.Errorf("bash -n: %w", err)
		}
	case "", "console":
		// What is typed follows a prompt; the rest is output.
		for i, line := range lines {
			typed, ok := strings.CutPrefix(line, "$ ")
			if lines[i] = typed; !ok {
				lines[i] = ""
			}
		}
	default:
		return nil
	}
	for i := 0; i < len(lines); i++ {
		command := located{lines[i], b.line + i}
		for strings.HasSuffix(command.text, `\`) && i+1 < len(lines) {
			i++
			command.text = strings.TrimSuffix(command.text, `\`) + " " + lines[i]
		}
		c.checkCommands(command)
	}
	return nil
}

// checkPath checks words that look like a file of the repository.
func (c *checker) checkPath(at located, word string) {
	match := repoPath.FindStringSubmatch(strings.TrimSuffix(word, "/..."))
	if match == nil {
		return
	}
	if name := path.Clean(match[1]); !c.exists(name) {
		c.complain(at, "there is no %s", name)
	}
}

func (c *checker) checkName(span located, name string) {
	if c.ignores(name) {
		return
	}
	if metric := metricName.FindString(name); metric != "" {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			metric = strings.TrimSuffix(metric, suffix)
		}
		if !strings.Contains(c.metrics, `"`+metric+`"`) {
			c.complain(span, "there is no metric %s", metric)
		}
	}
	if alertName.MatchString(name) && !strings.Contains(c.alerts, "alert: "+name+"\n") {
		c.complain(span, "there is no alert %s", name)
	}
	if testName.MatchString(name) && !c.tests.has(name) {
		c.complain(span, "there is no test %s", name)
	}
}

// exists reports whether there is a file of that name or pattern, or need not be.
func (c *checker) exists(name string) bool {
	if c.made.has(name) || c.ignores(name) {
		return true
	}
	if !filepath.IsLocal(name) {
		return false
	}
	found, err := filepath.Glob(filepath.Join(c.root, name))
	return err == nil && len(found) > 0
}

func (c *checker) ignores(name string) bool { return c.page.ignored.has(name) }
