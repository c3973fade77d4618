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

// Command minimal shows that the roles of config/ allow nothing that is not needed: it takes each verb of them away in
// turn, runs the integration tests, and tells what breaks. It fails if nothing does.
//
// The operator, which asks at its start whether it has its permissions, is not told in these runs: what breaks is the
// work and not the question.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"pvc-protection-operator/test/harness"
	"pvc-protection-operator/test/rbac"
)

// first are the tests that are closest to a role, by its name. They are run before the others, as one that fails is
// enough.
var first = map[string]string{
	"manager-role":          "^TestBlockedClaims$",
	"unused-condition-role": "^TestUnusedConditionAtStart$",
	"leader-election-role":  "^TestLeaderElection$|^TestHandoverBetweenVersions$",
	"metrics-auth-role":     "^TestMetricsAreForReaders$",
	"metrics-reader":        "^TestMetricsAreForReaders$",
	"drain":                 "^TestBeside$",
}

// asking are the tests of what the operator asks at its start.
const asking = "^TestStartupErrors$|^TestNoLeaseAccess$|^TestUnusedConditionOff$"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	all := flag.Bool("all", false, "go on after a test has failed, and show everything that breaks: this takes hours")
	only := flag.String("only", "", `take away no more than what matches this regular expression, such as "manager-role: watch"`)
	flag.Parse()
	matching, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}

	root, err := harness.ModuleDir(ctx)
	if err != nil {
		return err
	}
	permissions, err := shipped(root)
	if err != nil {
		return err
	}
	permissions = slices.DeleteFunc(permissions, func(p rbac.Permission) bool { return !matching.MatchString(p.String()) })
	if len(permissions) == 0 {
		return fmt.Errorf("no role has a permission that matches %q", *only)
	}
	dir, err := os.MkdirTemp("", "rbac-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder for temporary files
	s := &suite{binary: filepath.Join(dir, "integration.test"), dir: filepath.Join(root, "test", "integration"), all: *all}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.binary, ".")
	build.Dir = s.dir
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the tests: %w\n%s", err, output)
	}

	if *only == "" {
		fmt.Println("with all permissions")
		broken, err := s.run(ctx, "nothing", "")
		if err != nil {
			return err
		}
		if len(broken) > 0 {
			return fmt.Errorf("it has to work with all permissions:\n%s", strings.Join(broken, "\n"))
		}
	}
	var unneeded []string
	for _, permission := range permissions {
		fmt.Println("without", permission)
		broken, err := s.breaks(ctx, permission)
		if err != nil {
			return fmt.Errorf("without %s: %w", permission, err)
		}
		if len(broken) == 0 {
			unneeded = append(unneeded, permission.String())
		}
		for _, line := range broken {
			fmt.Println("  ", line)
		}
	}
	if len(unneeded) > 0 {
		return fmt.Errorf("nothing breaks without %s", strings.Join(unneeded, ", "))
	}
	fmt.Printf("all %d permissions are needed\n", len(permissions))
	return nil
}

// shipped returns what the roles of every overlay allow.
func shipped(root string) ([]rbac.Permission, error) {
	var all []rbac.Permission
	for _, overlay := range []string{"replace", "drain"} { // beside and its variants have the roles of replace
		manifests, err := harness.Render(filepath.Join(root, "config", "overlays", overlay))
		if err != nil {
			return nil, err
		}
		permissions, err := rbac.Of(manifests)
		if err != nil {
			return nil, err
		}
		for _, permission := range permissions {
			if !slices.Contains(all, permission) {
				all = append(all, permission)
			}
		}
	}
	return all, nil
}

// suite is the integration tests, built.
type suite struct {
	binary, dir string
	// all tests are run, also after one has failed.
	all bool
}

// breaks returns what fails without the permission.
func (s *suite) breaks(ctx context.Context, permission rbac.Permission) ([]string, error) {
	if tests := first[permission.Role]; tests != "" && !s.all {
		if broken, err := s.run(ctx, permission.String(), tests); err != nil || len(broken) > 0 {
			return broken, err
		}
	}
	return s.run(ctx, permission.String(), "")
}

// failure is a test that has failed, and its first words.
var failure = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+).*\n +(\S+_test\.go:.*)`)

// run runs the tests without the permission, all if tests is empty, and returns which of them fail. It is an error if
// none does and yet they have not passed, because there is no cluster for instance.
func (s *suite) run(ctx context.Context, without, tests string) ([]string, error) {
	cmd := exec.CommandContext(ctx, s.binary, "-test.timeout=6h", "-test.failfast="+fmt.Sprint(!s.all),
		"-test.run="+tests, "-test.skip="+asking)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "RBAC_WITHOUT="+without)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if err == nil || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var broken []string
	for _, match := range failure.FindAllStringSubmatch(output.String(), -1) {
		broken = append(broken, match[1]+": "+match[2])
	}
	if len(broken) == 0 {
		return nil, fmt.Errorf("no test failed, and yet they have not passed: %w\n%s", err, output.String())
	}
	return broken, nil
}
