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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is what the pages of the test are about.
var repository = map[string]string{
	"Makefile":                                   "VERSION := 1\nOVERLAY ?= a\n.PHONY: build\nbuild: generate ## Build.\ndeploy:\n",
	"internal/metrics/metrics.go":                "var a = \"pvc_protection_claims\"\n",
	"internal/controller/a_test.go":              "func TestOne(t *testing.T) {}\n",
	"config/overlays/replace/kustomization.yaml": "",
	"config/prometheus/prometheus_rule.yaml":     "- alert: PVCProtectionNoLeader\n",
	"docs/other.md":                              "# Words, and `code`!\n\n## Twice\n\n## Twice\n",
}

var flags = map[string]set{
	"":                 {"help": {}, "finalizer": {}, "version": {}},
	"drain-finalizers": {"help": {}, "finalizer": {}, "stop": {}},
	"explain":          {"help": {}, "namespace": {}},
	"list":             {"help": {}},
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		page string
		// want are the findings, without the name of the page.
		want []string
	}{
		"links": {
			page: "# Here\n\n[a](other.md) [b](other.md#twice-1) [c](#here) [d](../config) [e](https://example.com/no)\n" +
				"[f](other.md#words-and-code)",
		},
		"a link to a page that is not there": {
			page: "\n\n[a](missing.md)", want: []string{"3: the link missing.md leads nowhere: there is no docs/missing.md"},
		},
		"a link out of the repository": {
			page: "[a](../../x.md)", want: []string{"1: the link ../../x.md leads nowhere: there is no ../x.md"},
		},
		"a link to an image that is not there": {
			page: "![a](images/a.svg)", want: []string{"1: the link images/a.svg leads nowhere: there is no docs/images/a.svg"},
		},
		"a link to a heading that is not there": {
			page: "| a |\n|---|\n| [a](other.md#thrice) |",
			want: []string{"3: the link other.md#thrice leads nowhere: docs/other.md has no heading #thrice"},
		},
		"targets": {
			page: "`make build IMG=x` and `make`\n\n```sh\nsudo make build && make -j2 deploy # make nothing\n```",
		},
		"a target that is not there": {
			page: "`make biuld`", want: []string{"1: make has no target biuld"},
		},
		"a target that is not there, behind another command": {
			page: "```sh\n\nA=1 make \\\n  build; make deploi\n```", want: []string{"3: make has no target deploi"},
		},
		"a variable is no target": {
			page: "`make VERSION`", want: []string{"1: make has no target VERSION"},
		},
		"an overlay that is not there": {
			page: "`make deploy OVERLAY=beside`", want: []string{"1: there is no kustomization in config/overlays/beside"},
		},
		"flags": {
			page: "`--finalizer=a/b --stop` `--force` `--`\n\n```sh\nbin/manager explain --namespace=a\n```\n\n" +
				"```\n$ kubectl pvc-protection list\nfoo --bar\n```\n",
		},
		"a flag that is not there": {
			page: "`--finaliser`", want: []string{"1: no command of the manager has a flag --finaliser"},
		},
		"a flag of another command": {
			page: "```sh\nbin/manager --finalizer=a/b --stop\nbin/manager drain-finalizers --version\n```",
			want: []string{"2: manager has no flag --stop", "3: manager drain-finalizers has no flag --version"},
		},
		"a flag of the plugin that is not there": {
			page: "```\n$ kubectl pvc-protection list --namespace a\n```",
			want: []string{"2: manager list has no flag --namespace"},
		},
		"files": {page: "`internal/metrics` `./internal/...` `config/*/prometheus_rule.yaml` `config`"},
		"a file that is not there": {
			page: "`internal/metrics/metric.go`", want: []string{"1: there is no internal/metrics/metric.go"},
		},
		"a file that is not there, in a command": {
			page: "```sh\ngo run ./test/demo\n```", want: []string{"2: there is no test/demo"},
		},
		"kustomizations": {page: "`kubectl apply -k config/overlays/replace/`"},
		"a folder without a kustomization": {
			page: "`kubectl apply -k config/overlays`", want: []string{"1: there is no kustomization in config/overlays"},
		},
		"another folder without a kustomization": {
			page: "`kustomize build config/prometheus`", want: []string{"1: there is no kustomization in config/prometheus"},
		},
		"what the page has its reader make": {
			page: "```yaml\n# config/overlays/mine/kustomization.yaml\na: b\n```\n\n`kubectl apply -k config/overlays/mine`",
		},
		"what is ignored": {
			page: "<!-- check-docs: ignore internal/new --new -->\n\n`internal/new` `--new` `internal/old`",
			want: []string{"3: there is no internal/old"},
		},
		"a command that bash does not understand": {
			page: "```sh\nif true\n```",
			want: []string{"2: bash does not understand this: bash: line 2: syntax error: unexpected end of file"},
		},
		"names": {page: "`pvc_protection_claims{state=\"a\"}` `PVCProtectionNoLeader` `TestOne`"},
		"names of what is not there": {
			page: "`pvc_protection_claim`\n`PVCProtectionLeader`\n`TestTwo`",
			want: []string{
				"1: there is no metric pvc_protection_claim",
				"2: there is no alert PVCProtectionLeader",
				"3: there is no test TestTwo",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestChecker(t)
			const page = "docs/page.md"
			write(t, c.root, page, tc.page)
			if err := c.check(page); err != nil {
				t.Fatal(err)
			}
			want := slices.Clone(tc.want)
			for i := range want {
				want[i] = page + ":" + want[i]
			}
			if len(c.findings) != len(want) {
				t.Fatalf("got %q, want %q", c.findings, want)
			}
			for i, finding := range c.findings { // bash goes on about where its input ended
				if !strings.HasPrefix(finding, want[i]) {
					t.Errorf("got %q, want %q", finding, want[i])
				}
			}
		})
	}
}

func TestHelpFlag(t *testing.T) {
	const help = "Flags:\n  -batch-window value\n    \tHow long -- or not.\n" +
		"  -h, --help   help\n      --finalizer string   The --one\n"
	var got []string
	for _, match := range helpFlag.FindAllStringSubmatch(help, -1) {
		got = append(got, match[1])
	}
	if want := []string{"batch-window", "help", "finalizer"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func newTestChecker(t *testing.T) *checker {
	t.Helper()
	root := t.TempDir()
	var files []string
	for file, content := range repository {
		write(t, root, file, content)
		files = append(files, file)
	}
	c, err := newChecker(root, files)
	if err != nil {
		t.Fatal(err)
	}
	c.flags = flags
	return c
}

func write(t *testing.T, root, file, content string) {
	t.Helper()
	name := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
