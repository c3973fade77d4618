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

// Command check-docs checks that what the repository's Markdown pages name exists:
// the targets of links, files and folders, targets of make, the operator's flags,
// metrics and alerts, and tests. It also has bash parse the commands.
//
//	go run . -root ../../.. -manager ../../../bin/manager
//
// What a page has its reader make is taken from code blocks that begin with a comment
// that is the name of the file. What else is not to be found is named in a comment:
//
//	<!-- check-docs: ignore internal/webhook/v1 -->
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", ".", "the repository")
	manager := flag.String("manager", "", "the manager's binary, for its flags (default: bin/manager in the repository)")
	flag.Parse()
	if *manager == "" {
		*manager = filepath.Join(*root, "bin/manager")
	}
	if err := run(*root, *manager); err != nil {
		fmt.Fprintf(os.Stderr, "check-docs: %v\n", err)
		os.Exit(1)
	}
}

func run(root, manager string) error {
	files, err := trackedFiles(root)
	if err != nil {
		return err
	}
	c, err := newChecker(root, files)
	if err != nil {
		return err
	}
	if c.flags, err = managerFlags(manager); err != nil {
		return err
	}
	pages := slices.DeleteFunc(files, func(file string) bool { return !strings.HasSuffix(file, ".md") })
	for _, page := range pages {
		if err := c.check(page); err != nil {
			return err
		}
	}
	for _, f := range c.findings {
		fmt.Println(f)
	}
	if len(c.findings) > 0 {
		return fmt.Errorf("%d findings in %d pages", len(c.findings), len(pages))
	}
	fmt.Printf("%d pages are in order\n", len(pages))
	return nil
}

// trackedFiles returns the files that belong to the repository, or are about to.
func trackedFiles(root string) ([]string, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Stat(filepath.Join(root, file))
		return err != nil // deleted, but not yet in git
	}), nil
}

// managerFlags returns the flags of each of the manager's commands. Its own have no
// command.
func managerFlags(manager string) (map[string]set, error) {
	flags := map[string]set{}
	for _, command := range []string{"", "drain-finalizers", "explain", "list"} {
		out, err := exec.Command(manager, append(strings.Fields(command), "--help")...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s %s --help: %w", manager, command, err)
		}
		flags[command] = set{"help": {}}
		for _, match := range helpFlag.FindAllStringSubmatch(string(out), -1) {
			flags[command][match[1]] = struct{}{}
		}
	}
	return flags, nil
}
