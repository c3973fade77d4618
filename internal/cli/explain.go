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
	"errors"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/internal/explain"
)

func newExplain(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [CLAIM...]",
		Short: "Explain why claims are still there, and what to do",
		Long: `Explain why claims are still there, and what to do: the named ones, or all that are being
deleted.

Exit codes:
  0  every claim can go by itself, or is not being deleted
  1  an error, also if a named claim does not exist
  3  a claim that is being deleted cannot go by itself: a pod holds it, it has a
     finalizer of others, or nobody serves its finalizer`,
		ValidArgsFunction: s.completeClaims,
		RunE: func(cmd *cobra.Command, names []string) error {
			return s.explain(cmd.Context(), names)
		},
	}
	cmd.Example = s.examples(`
  # All claims of the current namespace that are being deleted
  %[1]s explain

  # One claim, for a script
  %[1]s explain data-db-0 -n shop -o json

  # Every claim of the cluster that is being deleted
  %[1]s explain -A`)
	s.addListFlags(cmd, "json", "yaml")
	return cmd
}

func (s *settings) explain(ctx context.Context, names []string) error {
	if len(names) > 0 && (s.allNamespaces || s.selector != "") {
		return errors.New("claims are either named, or selected by --all-namespaces or --selector")
	}
	r, err := s.connect()
	if err != nil {
		return err
	}
	var claims []*corev1.PersistentVolumeClaim
	var missing error
	if len(names) > 0 {
		claims, missing = r.namedClaims(ctx, names)
	} else if claims, err = r.claims(ctx, beingDeleted); err != nil {
		return err
	}
	facts := explain.Facts{Finalizer: s.finalizer, Claims: claims, Now: s.now()}
	if len(claims) > 0 {
		if facts.Pods, err = r.pods(ctx); err != nil {
			return errors.Join(missing, err)
		}
		facts.ControllerOf = r.controllerOf(ctx)
		facts.Serving = r.serving(ctx)
	}
	report := explain.New(&facts)
	err = s.print(report, func() error { return report.PrintText(s.Out, facts.Now) })
	if err != nil || missing != nil {
		return errors.Join(missing, err)
	}
	s.notice(report, "claim is being deleted", r.namespace)
	if report.Held() {
		return errHeld
	}
	return nil
}

func beingDeleted(claim *corev1.PersistentVolumeClaim) bool { return claim.DeletionTimestamp != nil }
