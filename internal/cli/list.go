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
	"context"

	"github.com/spf13/cobra"

	"pvc-protection-operator/internal/explain"
)

func newList(s *settings) *cobra.Command {
	var blocked, unused bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List claims with the pods that use them",
		Long: `List claims with the pods that use them.

States:
  Unprotected     the claim lacks the finalizer
  Protected       the claim has it
  Blocked         the claim is being deleted, and a pod holds it
  Waiting         the claim is being deleted, no pod holds it, and it waits for its finalizer
                  to be taken off
  OtherFinalizer  the claim is being deleted, and only finalizers of others keep it

The exit code is 0, or 1 after an error.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.list(cmd.Context(), func(claim *explain.Claim) bool {
				return (!blocked || claim.State == explain.Blocked) && (!unused || claim.Unused())
			})
		},
	}
	cmd.Example = s.examples(`
  # The claims of the current namespace
  %[1]s list

  # The claims that no pod uses, in all namespaces
  %[1]s list -A --unused

  # The names of the blocked claims, for a script
  %[1]s list --blocked -o json | jq -r '.items[].name'`)
	s.addListFlags(cmd, "wide", "json", "yaml")
	cmd.Flags().BoolVar(&blocked, "blocked", false, "Only claims that are being deleted and that a pod holds")
	cmd.Flags().BoolVar(&unused, "unused", false, "Only claims that no pod uses, or only pods that have ended")
	return cmd
}

func (s *settings) list(ctx context.Context, fits func(*explain.Claim) bool) error {
	r, err := s.connect()
	if err != nil {
		return err
	}
	facts := explain.Facts{Finalizer: s.finalizer, Now: s.now()}
	if facts.Claims, err = r.claims(ctx, nil); err != nil {
		return err
	}
	if facts.Pods, err = r.pods(ctx); err != nil {
		return err
	}
	report := explain.New(&facts)
	report.Keep(fits)
	s.notice(report, "claims found", r.namespace)
	table := explain.Table{Namespace: s.allNamespaces, Wide: s.output == "wide"}
	return s.print(report, func() error { return report.PrintTable(s.Out, table, facts.Now) })
}
