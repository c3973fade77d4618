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

// Package explain says of claims who uses them, why a deleted one is still there
// and what to do about it. Reports are made of objects that somebody else has
// read; what counts as use are the rules of package usage.
package explain

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pvc-protection-operator/internal/usage"
)

// Report is about several claims. Its JSON and YAML forms are for scripts: fields
// may be added, but none is renamed, removed or given another meaning.
type Report struct {
	// Finalizer is what protects the claims.
	Finalizer string `json:"finalizer"`
	// Items are sorted by namespace and name.
	Items []Claim `json:"items"`
}

// State is where a claim is on its way.
type State string

const (
	// Unprotected is not being deleted and lacks the finalizer.
	Unprotected State = "Unprotected"
	// Protected is not being deleted and has the finalizer.
	Protected State = "Protected"
	// Blocked is being deleted, and kept because a pod holds it.
	Blocked State = "Blocked"
	// Waiting is being deleted, and waits for the finalizer to be taken off: no
	// pod holds it.
	Waiting State = "Waiting"
	// OtherFinalizer is being deleted, and kept by finalizers of others only.
	OtherFinalizer State = "OtherFinalizer"
)

// Claim is what there is to say about a claim.
type Claim struct {
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	State     State        `json:"state"`
	Created   metav1.Time  `json:"created"`
	Deleted   *metav1.Time `json:"deleted,omitempty"`
	// Finalizers are all of the claim's, OtherFinalizers those without the one of
	// the report.
	Finalizers      []string `json:"finalizers"`
	OtherFinalizers []string `json:"otherFinalizers"`
	// Pods are those that name the claim, by name.
	Pods []Pod `json:"pods"`
	// ServedBy and NextStep are there if the report explains.
	ServedBy *Service `json:"servedBy,omitempty"`
	NextStep string   `json:"nextStep,omitempty"`
}

// Pod is a pod that names a claim.
type Pod struct {
	Name  string          `json:"name"`
	Node  string          `json:"node,omitempty"`
	Phase corev1.PodPhase `json:"phase"`
	// Holds says whether the claim must stay because of this pod.
	Holds bool `json:"holds"`
	// State says why it holds the claim or does not, in words, and Since when
	// that began, if it can be seen.
	State string       `json:"state"`
	Since *metav1.Time `json:"since,omitempty"`
	// Overdue is when a pod that is being deleted should have ended, if that is
	// over.
	Overdue *metav1.Time `json:"overdue,omitempty"`
	// Finalizers keep the pod once it is deleted.
	Finalizers []string `json:"finalizers,omitempty"`
	// Owners are the controller of the pod, the controller of that, and so on.
	Owners []Owner `json:"owners"`

	ended, deleted, shutDown, refers bool
}

// Owner is the controller of an object.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Facts are what a report is made of.
type Facts struct {
	Finalizer string
	Now       time.Time
	Claims    []*corev1.PersistentVolumeClaim
	// Pods are those of the claims' namespaces. Ones that name no claim may be
	// left out.
	Pods []*corev1.Pod
	// ControllerOf returns the controller of an object of the namespace, or nil if
	// it has none or cannot be read. Without it, owners end with the pod's.
	ControllerOf func(namespace string, of *metav1.OwnerReference) *metav1.OwnerReference
	// Serving is what is known about who serves finalizers. With it, the report
	// explains.
	Serving *Serving
}

// New returns the report on the claims.
func New(f *Facts) *Report {
	users := map[types.NamespacedName][]*corev1.Pod{}
	for _, pod := range f.Pods {
		for _, claim := range usage.IndexPodByClaim(pod) {
			key := types.NamespacedName{Namespace: pod.Namespace, Name: claim}
			users[key] = append(users[key], pod)
		}
	}
	r := &Report{Finalizer: f.Finalizer, Items: make([]Claim, 0, len(f.Claims))}
	for _, claim := range f.Claims {
		r.Items = append(r.Items, f.claim(claim, users[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}]))
	}
	slices.SortFunc(r.Items, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return r
}

// Keep drops the claims that do not fit.
func (r *Report) Keep(fits func(*Claim) bool) {
	r.Items = slices.DeleteFunc(r.Items, func(c Claim) bool { return !fits(&c) })
}

// Held reports whether a claim that is being deleted cannot go by itself: a pod
// holds it, it has a finalizer of others, or nobody serves the finalizer.
func (r *Report) Held() bool {
	return slices.ContainsFunc(r.Items, func(c Claim) bool {
		return c.Deleted != nil && (c.State == Blocked || len(c.OtherFinalizers) > 0 ||
			c.ServedBy != nil && c.ServedBy.By == ByNobody)
	})
}

// Unused reports whether no pod uses the claim in the sense of the claim's Unused
// condition: pods that have ended do not count, ones that are not scheduled do.
func (c *Claim) Unused() bool {
	return !slices.ContainsFunc(c.Pods, func(p Pod) bool { return p.refers })
}

func (f *Facts) claim(claim *corev1.PersistentVolumeClaim, users []*corev1.Pod) Claim {
	c := Claim{
		Namespace:       claim.Namespace,
		Name:            claim.Name,
		Created:         claim.CreationTimestamp,
		Deleted:         claim.DeletionTimestamp,
		Finalizers:      append([]string{}, claim.Finalizers...),
		OtherFinalizers: append([]string{}, claim.Finalizers...),
		Pods:            make([]Pod, 0, len(users)),
	}
	c.OtherFinalizers = slices.DeleteFunc(c.OtherFinalizers, func(name string) bool { return name == f.Finalizer })
	for _, pod := range users {
		c.Pods = append(c.Pods, f.pod(pod, claim))
	}
	slices.SortFunc(c.Pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	c.State = stateOf(claim, f.Finalizer, len(c.holders()) > 0)
	if f.Serving != nil {
		c.ServedBy = new(f.Serving.service(f.Finalizer, claim.Namespace, f.Now))
		c.NextStep = c.nextStep(f.Finalizer, f.Now)
	}
	return c
}

func stateOf(claim *corev1.PersistentVolumeClaim, finalizer string, held bool) State {
	switch {
	case usage.NeedsProtection(claim, finalizer):
		return Unprotected
	case claim.DeletionTimestamp == nil:
		return Protected
	case !usage.IsCandidate(claim, finalizer):
		return OtherFinalizer
	case held:
		return Blocked
	default:
		return Waiting
	}
}

func (c *Claim) holders() []Pod {
	var holders []Pod
	for _, pod := range c.Pods {
		if pod.Holds {
			holders = append(holders, pod)
		}
	}
	return holders
}
