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

// Package controller holds the reconciler of claims: it protects them with a
// finalizer, and releases those in deletion once no pod uses them.
package controller

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// DefaultFinalizer is the finalizer of the in-tree controller, which this
	// operator replaces by default.
	DefaultFinalizer = "kubernetes.io/pvc-protection"

	// writeTimeout bounds one patch. A patch in flight is finished when the
	// manager stops, so it must be shorter than GracefulShutdownTimeout.
	writeTimeout = 10 * time.Second

	// GracefulShutdownTimeout is how long the manager must wait for the
	// writes in flight when it stops. The Deployment's
	// terminationGracePeriodSeconds is longer.
	GracefulShutdownTimeout = 20 * time.Second
)

// Options configure the controllers of claims. DefaultOptions returns values to
// start from; the zero values of the numbers are not valid.
type Options struct {
	// Finalizer is what protects a claim. It must be a qualified name that
	// the API server accepts as a finalizer.
	Finalizer string

	// BatchWindow is how long a claim waits for others of its namespace, to be
	// looked at together; see batch.Options. 0 does not wait.
	BatchWindow time.Duration

	// MaxBatchSize is the largest number of claims that one live list may
	// release. It bounds how old that list can be when the last of them is
	// written.
	MaxBatchSize int

	// ConcurrentNamespaces is the number of batches in progress at once.
	ConcurrentNamespaces int

	// ConcurrentWrites is the number of patches in flight at once in each of
	// these batches. Every namespace has its own, so that one whose writes hang
	// does not hold up the others.
	ConcurrentWrites int

	// RecheckInterval is how long a blocked claim waits for an event before it
	// is looked at again by itself.
	RecheckInterval time.Duration

	// UnusedCondition is whether an UnusedReconciler keeps the Unused condition
	// of bound claims. It has no bearing on protection.
	UnusedCondition bool
}

// DefaultOptions returns the defaults of the operator's flags.
func DefaultOptions() Options {
	return Options{
		Finalizer:            DefaultFinalizer,
		BatchWindow:          10 * time.Millisecond,
		MaxBatchSize:         5000,
		ConcurrentNamespaces: 16,
		ConcurrentWrites:     16,
		RecheckInterval:      time.Minute,
		UnusedCondition:      true,
	}
}

// ValidateFinalizer returns an error unless the API server accepts name as a
// finalizer of a claim: a qualified name with a domain as its prefix.
func ValidateFinalizer(name string) error {
	if errs := validation.IsQualifiedName(name); len(errs) > 0 {
		return fmt.Errorf("not a qualified name: %s", strings.Join(errs, "; "))
	}
	if !strings.Contains(name, "/") {
		return fmt.Errorf("it has no domain, use a qualified name such as example.com/%s", name)
	}
	return nil
}
