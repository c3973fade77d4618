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

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// InTreeFinalizer is the finalizer that the in-tree controller serves.
const InTreeFinalizer = "kubernetes.io/pvc-protection"

// Server takes a finalizer off the claims that no pod holds.
type Server string

const (
	// ByOperator is this operator.
	ByOperator Server = "Operator"
	// ByInTree is the controller in kube-controller-manager.
	ByInTree Server = "InTree"
	// ByNobody is said if the operator does not run, or neither of them does.
	ByNobody Server = "Nobody"
	// ByUnknown is said if not enough could be read to know.
	ByUnknown Server = "Unknown"
)

// Service says who serves a finalizer.
type Service struct {
	By Server `json:"by"`
	// Evidence says how that is known.
	Evidence string `json:"evidence"`
}

// Serving is what could be read about who serves finalizers.
type Serving struct {
	Operators []Operator
	// Leases are those of the operator's leader elections.
	Leases []coordinationv1.Lease
	// Incomplete says why there may be further operators. Empty means that there
	// are none.
	Incomplete string
	// InTreeOff says how it is known that the in-tree controller is switched off.
	// Empty means that it is not known to be.
	InTreeOff string
}

// Operator is an installation of this operator.
type Operator struct {
	// Namespace and Name are those of its Deployment.
	Namespace, Name string
	// Finalizer is what it serves. Empty means that its flags are not understood.
	Finalizer string
	// WatchNamespaces are those it works in. Empty means all.
	WatchNamespaces     []string
	Replicas, Available int32
}

func (o *Operator) String() string { return "Deployment " + o.Namespace + "/" + o.Name }

func (o *Operator) serves(finalizer, namespace string) bool {
	return (o.Finalizer == finalizer || o.Finalizer == "") &&
		(len(o.WatchNamespaces) == 0 || slices.Contains(o.WatchNamespaces, namespace))
}

// service says who serves the finalizer of the namespace's claims. What is there
// counts more than what is missing.
func (s *Serving) service(finalizer, namespace string, now time.Time) Service {
	deployed := map[string]bool{}
	var down []string
	for i := range s.Operators {
		o := &s.Operators[i]
		deployed[o.Namespace] = true
		if !o.serves(finalizer, namespace) {
			continue
		}
		if lease := s.freshLease(o.Namespace, now); lease != nil {
			return Service{ByOperator, fmt.Sprintf("%s, its Lease was renewed %s ago", o, renewed(lease, now))}
		}
		if o.Available > 0 {
			return Service{ByOperator, fmt.Sprintf("%s has %d of %d replicas available", o, o.Available, o.Replicas)}
		}
		down = append(down, fmt.Sprintf("%s has no replica available", o))
	}
	for i := range s.Leases {
		// Its Deployment cannot be read, and so neither can its finalizer.
		if lease := &s.Leases[i]; !deployed[lease.Namespace] && fresh(lease, now) {
			return Service{ByOperator, fmt.Sprintf("Lease %s/%s was renewed %s ago", lease.Namespace, lease.Name, renewed(lease, now))}
		}
	}
	inTree := finalizer == InTreeFinalizer && s.InTreeOff == ""
	switch {
	case len(down) > 0 && inTree:
		return Service{ByUnknown, strings.Join(down, ", ") + "; the in-tree controller may run or not"}
	case len(down) > 0:
		return Service{ByNobody, strings.Join(append(down, s.inTreeOff(finalizer)...), "; ")}
	case s.Incomplete != "":
		return Service{ByUnknown, s.Incomplete}
	case inTree:
		return Service{ByInTree, "no operator serves this finalizer, it is the in-tree controller's"}
	default:
		return Service{ByNobody, strings.Join(append([]string{"no operator serves this finalizer"}, s.inTreeOff(finalizer)...), "; ")}
	}
}

// inTreeOff returns what to add if the finalizer is the in-tree controller's.
func (s *Serving) inTreeOff(finalizer string) []string {
	if finalizer != InTreeFinalizer {
		return nil
	}
	return []string{s.InTreeOff}
}

func (s *Serving) freshLease(namespace string, now time.Time) *coordinationv1.Lease {
	for i := range s.Leases {
		if lease := &s.Leases[i]; lease.Namespace == namespace && fresh(lease, now) {
			return lease
		}
	}
	return nil
}

// fresh reports whether somebody holds the lease.
func fresh(lease *coordinationv1.Lease, now time.Time) bool {
	spec := &lease.Spec
	return spec.HolderIdentity != nil && *spec.HolderIdentity != "" &&
		spec.RenewTime != nil && spec.LeaseDurationSeconds != nil &&
		now.Sub(spec.RenewTime.Time) <= time.Duration(*spec.LeaseDurationSeconds)*time.Second
}

func renewed(lease *coordinationv1.Lease, now time.Time) string {
	return ago(lease.Spec.RenewTime.Time, now)
}
