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
	"path"
	"regexp"
	"slices"
	"strings"
)

// foreignFlags are flags that pages name without the command they belong to, and that
// are not the operator's.
var foreignFlags = map[string]string{
	"controllers":    "kube-controller-manager",
	"feature-gates":  "kube-apiserver",
	"runtime-config": "kube-apiserver",
	"force":          "kubectl delete",
	"grace-period":   "kubectl delete",
}

var (
	// helpFlag is a flag in the output of --help, as the flag package or cobra prints it.
	helpFlag = regexp.MustCompile(`(?m)^ +(?:-\w, +)?--?([a-z][a-z0-9-]*)`)

	assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)
)

// checkCommands checks a line of a shell, word by word: it is no shell, and need not be.
func (c *checker) checkCommands(line located) {
	words := strings.Fields(line.text)
	command := make([]string, 0, len(words))
	for _, word := range words {
		if strings.HasPrefix(word, "#") {
			break
		}
		word, ends := strings.CutSuffix(strings.Trim(word, `"'()`), ";")
		switch {
		case word == "&&", word == "||", word == "|":
			ends = true
		case word == "", len(command) == 0 && (word == "sudo" || word == "$" || assignment.MatchString(word)):
		default:
			command = append(command, word)
		}
		if ends {
			c.checkCommand(line, command)
			command = command[:0]
		}
	}
	c.checkCommand(line, command)
}

func (c *checker) checkCommand(line located, words []string) {
	if len(words) == 0 {
		return
	}
	for _, word := range words {
		c.checkPath(line, word)
	}
	args := words[1:]
	switch program := path.Base(words[0]); {
	case program == "make":
		c.checkMake(line, args)
	case program == "manager", program == "kubectl-pvc_protection":
		c.checkFlags(line, args)
	case program == "kubectl" && len(args) > 0 && args[0] == "pvc-protection":
		c.checkFlags(line, args[1:])
	case program == "kubectl" && slices.Contains(args, "-k"):
		c.checkKustomization(line, args[slices.Index(args, "-k")+1:])
	case (program == "kubectl" || program == "kustomize") && len(args) > 0 && (args[0] == "kustomize" || args[0] == "build"):
		c.checkKustomization(line, args[1:])
	}
}

func (c *checker) checkMake(line located, args []string) {
	for _, arg := range args {
		if overlay, ok := strings.CutPrefix(arg, "OVERLAY="); ok {
			c.checkKustomization(line, []string{"config/overlays/" + overlay})
		}
		if placeholder(arg) || strings.HasPrefix(arg, "-") || assignment.MatchString(arg) || c.ignores(arg) {
			continue
		}
		if !c.targets.has(arg) {
			c.complain(line, "make has no target %s", arg)
		}
	}
}

func (c *checker) checkKustomization(line located, args []string) {
	if len(args) == 0 || placeholder(args[0]) || strings.HasPrefix(args[0], "-") {
		return
	}
	if folder := path.Clean(args[0]); !c.exists(path.Join(folder, "kustomization.yaml")) {
		c.complain(line, "there is no kustomization in %s", folder)
	}
}

// checkFlags checks the arguments of one of the manager's commands.
func (c *checker) checkFlags(line located, args []string) {
	command := ""
	if len(args) > 0 && c.flags[args[0]] != nil {
		command = args[0]
	}
	for _, arg := range args {
		if name, ok := flagName(arg); ok && !c.flags[command].has(name) && !c.ignores("--"+name) {
			c.complain(line, "%s has no flag --%s", strings.TrimSpace("manager "+command), name)
		}
	}
}

// checkAnyFlag checks a flag that stands for itself.
func (c *checker) checkAnyFlag(line located, word string) {
	name, ok := flagName(word)
	if !ok || c.ignores("--"+name) {
		return
	}
	if _, foreign := foreignFlags[name]; foreign {
		return
	}
	for _, flags := range c.flags {
		if flags.has(name) {
			return
		}
	}
	c.complain(line, "no command of the manager has a flag --%s", name)
}

func flagName(word string) (string, bool) {
	name, ok := strings.CutPrefix(word, "--")
	name, _, _ = strings.Cut(name, "=")
	return name, ok && name != ""
}

// placeholder reports whether the word stands for one that the reader knows.
func placeholder(word string) bool { return strings.ContainsAny(word, "…<$") }
