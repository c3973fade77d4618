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

package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completionTimeout is how long somebody who has pressed the tab key waits.
const completionTimeout = "5s"

// completeClaims completes names of claims that are not among the arguments yet.
func (s *settings) completeClaims(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	r, err := s.connectToComplete()
	if err != nil {
		return failed(err)
	}
	var names []string
	claims, err := r.claims(cmd.Context(), func(claim *corev1.PersistentVolumeClaim) bool {
		return strings.HasPrefix(claim.Name, begun) && !slices.Contains(args, claim.Name)
	})
	if err != nil {
		return failed(err)
	}
	for _, claim := range claims {
		names = append(names, claim.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (s *settings) completeNamespaces(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	r, err := s.connectToComplete()
	if err != nil {
		return failed(err)
	}
	namespaces, err := r.client.CoreV1().Namespaces().List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return failed(err)
	}
	var names []string
	for i := range namespaces.Items {
		if name := namespaces.Items[i].Name; strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (s *settings) completeContexts(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	config, err := s.clientConfig().RawConfig()
	if err != nil {
		return failed(err)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		if strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (s *settings) connectToComplete() (*reader, error) {
	s.overrides.Timeout = completionTimeout
	return s.connect()
}

// failed is the completion of nothing. The error shows in BASH_COMP_DEBUG_FILE.
func failed(err error) ([]string, cobra.ShellCompDirective) {
	cobra.CompErrorln(err.Error())
	return nil, cobra.ShellCompDirectiveError | cobra.ShellCompDirectiveNoFileComp
}
