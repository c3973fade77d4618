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
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

const (
	namespace    = "demo"
	claimName    = "data-db-1"
	podName      = "db-1"
	unusedClaims = 200

	// patience bounds every wait, so that a demo that fails also ends.
	patience = 2 * time.Minute
)

// claimInUse deletes a claim that a pod uses, and then the pod.
func (d *demo) claimInUse(ctx context.Context) error {
	heading("A database of three pods, each with a claim of its own.")
	for _, args := range [][]string{
		{"create", "namespace", namespace},
		{"apply", "-n", namespace, "-f", "test/demo/statefulset.yaml"},
		{"rollout", "status", "-n", namespace, "statefulset/db", "--timeout=2m"},
		{"get", "pods,pvc", "-n", namespace, "-o", "wide"},
	} {
		if _, err := d.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	claim, err := d.claim(ctx)
	if err != nil {
		return err
	}

	heading("Somebody deletes a claim that is in use.")
	if _, err := d.kubectl(ctx, "delete", "pvc", claimName, "-n", namespace, "--wait=false"); err != nil {
		return err
	}
	if err := d.waitForEvent(ctx, "DeletionBlocked", podName); err != nil {
		return err
	}
	if err := d.staysTerminating(ctx, claim.UID, 3*time.Second); err != nil {
		return err
	}
	if _, err := d.kubectl(ctx, "get", "pvc", claimName, "-n", namespace); err != nil {
		return err
	}
	fmt.Println("\nIt is Terminating, and it stays: the data is safe.")

	heading("Why is it still there? The claim's events say who holds it, and where.")
	events, err := d.kubectl(ctx, "events", "-n", namespace, "--for", "pvc/"+claimName)
	if err != nil {
		return err
	}
	if !strings.Contains(events, "pod "+podName) {
		return fmt.Errorf("expected an event that names pod %s, saw:\n%s", podName, events)
	}
	blocked, err := d.operator.Metric(ctx, "pvc_protection_claims", `state="blocked"`)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe operator's metrics say how many there are: pvc_protection_claims{state=\"blocked\"} %g\n", blocked)
	if blocked != 1 {
		return fmt.Errorf("expected 1 blocked claim in the metrics, saw %g", blocked)
	}

	heading("And what is to be done about it? The kubectl plugin, which is the same binary, knows.")
	const blockedClaims = 3 // the exit code if a claim cannot go by itself
	explained, err := d.kubectlExits(ctx, blockedClaims, "pvc-protection", "explain", claimName, "-n", namespace)
	if err != nil {
		return err
	}
	if !strings.Contains(explained, podName) {
		return fmt.Errorf("expected an explanation that names pod %s, saw:\n%s", podName, explained)
	}

	heading("The pod goes, and then the claim may go.")
	started := time.Now()
	if _, err := d.kubectl(ctx, "delete", "pod", podName, "-n", namespace); err != nil {
		return err
	}
	if err := d.gone(ctx, claim.UID); err != nil {
		return err
	}
	fmt.Printf("\nClaim %s is gone %s after the pod's deletion was asked for.\n", claimName, since(started))
	if err := d.waitForEvent(ctx, "Released", "after its deletion"); err != nil {
		return err
	}
	if _, err := d.kubectl(ctx, "get", "events", "-n", namespace, "--field-selector",
		"involvedObject.name="+claimName+",reason=Released"); err != nil {
		return err
	}
	return nil
}

// unusedClaims deletes many claims at once.
func (d *demo) unusedClaims(ctx context.Context) error {
	heading("%d claims that nobody uses, deleted at once.", unusedClaims)
	const claims = "unused-claims"
	if _, err := d.kubectl(ctx, "create", "namespace", claims); err != nil {
		return err
	}
	fmt.Printf("(creating %d claims)\n", unusedClaims)
	for i := range unusedClaims {
		claim := harness.Claim(claims, fmt.Sprintf("scratch-%d", i))
		claim.Spec.StorageClassName = new("") // no volumes: they would only be made and deleted
		if err := d.client.Create(ctx, claim); err != nil {
			return fmt.Errorf("creating claim %s: %w", claim.Name, err)
		}
	}
	before, err := d.liveLists(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("$ # DELETE /api/v1/namespaces/%s/persistentvolumeclaims, which is one request for all of them\n", claims)
	started := time.Now()
	if err := d.client.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(claims)); err != nil {
		return fmt.Errorf("deleting the claims: %w", err)
	}
	if err := harness.Eventually(ctx, patience, func(ctx context.Context) error {
		var left corev1.PersistentVolumeClaimList
		if err := d.client.List(ctx, &left, client.InNamespace(claims)); err != nil {
			return err
		}
		if n := len(left.Items); n > 0 {
			return fmt.Errorf("expected no claim to be left, saw %d", n)
		}
		return nil
	}); err != nil {
		return err
	}
	took := since(started)
	after, err := d.liveLists(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\nAll %d claims are gone after %s, and it took %g uncached lists of pods.\n", unusedClaims, took, after-before)
	if after-before > 4 {
		return fmt.Errorf("expected at most 4 live lists, saw %g", after-before)
	}
	return nil
}

func (d *demo) claim(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := d.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: claimName}, claim)
	return claim, err
}

// waitForEvent waits for an event about the claim with the reason and the text.
func (d *demo) waitForEvent(ctx context.Context, reason, text string) error {
	return harness.Eventually(ctx, patience, func(ctx context.Context) error {
		var events corev1.EventList
		if err := d.client.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.InvolvedObject.Name == claimName && event.Reason == reason && strings.Contains(event.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("expected an event %s about claim %s that names %s, saw none such among %d events",
			reason, claimName, text, len(events.Items))
	})
}

// staysTerminating checks for a while that the claim is there and being deleted.
func (d *demo) staysTerminating(ctx context.Context, uid types.UID, duration time.Duration) error {
	return harness.Consistently(ctx, duration, func(ctx context.Context) error {
		claim, err := d.claim(ctx)
		if err != nil {
			return fmt.Errorf("expected claim %s to stay: %w", claimName, err)
		}
		if claim.UID != uid || claim.DeletionTimestamp == nil {
			return fmt.Errorf("expected claim %s to be the same one and Terminating, saw UID %s, deletionTimestamp %v",
				claimName, claim.UID, claim.DeletionTimestamp)
		}
		return nil
	})
}

// gone waits until the claim with the UID does not exist. The StatefulSet may have
// made another one of the same name by then.
func (d *demo) gone(ctx context.Context, uid types.UID) error {
	return harness.Eventually(ctx, patience, func(ctx context.Context) error {
		claim, err := d.claim(ctx)
		if apierrors.IsNotFound(err) || err == nil && claim.UID != uid {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("expected claim %s to be gone, it has the finalizers %v", claimName, claim.Finalizers)
	})
}

func (d *demo) liveLists(ctx context.Context) (float64, error) {
	return d.operator.Metric(ctx, "pvc_protection_live_lists_total", `result="success"`)
}

// portableArgs returns the arguments of the container, less those that name ports
// and files of its own.
func portableArgs(args []string) []string {
	var portable []string
	for _, arg := range args {
		if !strings.Contains(arg, "-bind-address=") && !strings.HasPrefix(arg, "--metrics-cert-path=") {
			portable = append(portable, arg)
		}
	}
	return portable
}

func since(start time.Time) time.Duration {
	return time.Since(start).Round(10 * time.Millisecond)
}
