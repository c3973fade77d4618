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

package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	binDirVariable = "KUBEBUILDER_ASSETS"
	modulePath     = "pvc-protection-operator"
	kubectlBinary  = "kubectl"
	kwokStagesDir  = "kwok-stages"
)

// checkBinaries tells everything that is missing at once.
func (o *Options) checkBinaries() error {
	needed := []string{kubectlBinary}
	for _, component := range o.components() {
		needed = append(needed, string(component))
	}
	if o.Nodes > 0 {
		needed = append(needed, kwokStagesDir)
	}

	var missing []string
	for _, name := range needed {
		_, err := os.Stat(filepath.Join(o.BinDir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return err
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the test cluster needs %s in %s: build them with `make cluster-binaries`",
			strings.Join(missing, ", "), o.BinDir)
	}
	return nil
}

func defaultBinDir() (string, error) {
	if dir := os.Getenv(binDirVariable); dir != "" {
		return dir, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", fmt.Errorf("%s is not set: %w", binDirVariable, err)
	}
	version, err := goModValue(filepath.Join(root, "test", "cluster", "tools", "go.mod"), "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "bin", "k8s", version), nil
}

// moduleRoot looks for the operator's module from the working directory upwards, which in a test is the package's
// folder. The place of this source file is of no use for that: -trimpath takes it away.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		module, err := goModValue(filepath.Join(dir, "go.mod"), "module")
		switch {
		case err == nil && module == modulePath:
			return dir, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("the working directory is not inside module %s", modulePath)
		}
		dir = parent
	}
}

// goModValue returns what follows the word key at the beginning of a line of a go.mod.
func goModValue(path, key string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read from

	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == key {
			return words[1], nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return "", fmt.Errorf("%s has no line for %s", path, key)
}
