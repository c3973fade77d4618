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

package model

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

func document(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/safety.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestDocumentShowsUpstreamsTrace(t *testing.T) {
	model := Safety{Rule: Rule{OneByOne: true}, Pods: 1, Operators: 1, Forward: true}
	graph, _ := Explore(model, broken, limit)
	if trace := graph.Trace(graph.Last()).String(); !strings.Contains(document(t), trace) {
		t.Errorf("docs/safety.md lacks:\n%s", trace)
	}
}

// The document says which test shows which promise.
func TestDocumentNamesTestsThatExist(t *testing.T) {
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	exist := map[string]bool{}
	for _, dir := range []string{"internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, match := range function.FindAllSubmatch(source, -1) {
				exist[string(match[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(document(t), -1)
	if len(named) == 0 {
		t.Fatal("docs/safety.md names no test")
	}
	for _, match := range named {
		if !exist[match[1]] {
			t.Errorf("docs/safety.md names %s, which does not exist", match[1])
		}
	}
}
