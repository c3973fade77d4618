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

package soak

import (
	"fmt"
	"strings"
	"time"
)

// Op is one step of a plan. Which fields count depends on the kind.
type Op struct {
	// At is when the step is due, from the start of the run.
	At   time.Duration
	Kind Kind

	// Namespace is the namespace of traffic.
	Namespace string
	// Lane numbers the namespaces. What happens in one lane happens in the order of the plan.
	Lane int
	// Claim and Pod are names.
	Claim, Pod string
	// Claims and Ephemeral are the volumes of a new pod.
	Claims    []string
	Ephemeral bool
	// Node is where a new pod is bound. It is empty for pods that are not.
	Node string
	// Scheduler leaves a new pod to the scheduler.
	Scheduler bool
	// Finalizer is whether a new pod has one.
	Finalizer bool

	// Replica is whom a fault is for. LeaderFirst makes it the leader, if there is one.
	Replica     int
	LeaderFirst bool
	// For is how long a fault lasts, Times how many requests it is for, and Code the answer of the API server's stand-in.
	For   time.Duration
	Times int
	Code  int
}

// Kind is a kind of step.
type Kind string

// Traffic.
const (
	CreateNamespace      Kind = "create namespace"
	DeleteNamespace      Kind = "delete namespace"
	CreateClaim          Kind = "create claim"
	DeleteClaim          Kind = "delete claim"
	RecreateClaim        Kind = "recreate claim"
	DeleteClaims         Kind = "delete all claims"
	LabelClaim           Kind = "label claim"
	AddClaimFinalizer    Kind = "add finalizer to claim"
	RemoveClaimFinalizer Kind = "remove finalizer from claim"
	CreatePod            Kind = "create pod"
	BindPod              Kind = "bind pod"
	FinishPod            Kind = "finish pod"
	DeletePod            Kind = "delete pod"
	ForceDeletePod       Kind = "delete pod by force"
	ReplacePod           Kind = "replace pod"
	EvictPod             Kind = "evict pod"
	AddPodFinalizer      Kind = "add finalizer to pod"
	RemovePodFinalizer   Kind = "remove finalizer from pod"
	// BindAndDelete binds a pod and deletes its claims at the same time.
	BindAndDelete Kind = "bind pod while its claims are deleted"
)

// Faults between a replica and the API server.
const (
	HoldPods     Kind = "hold back events of pods"
	HoldClaims   Kind = "hold back events of claims"
	ExpirePods   Kind = "end watch of pods, relist"
	ExpireClaims Kind = "end watch of claims, relist"
	EndWatches   Kind = "end watches"
	FailLists    Kind = "fail lists of pods"
	CutLists     Kind = "cut lists of pods"
	SlowLists    Kind = "delay answers to lists of pods"
	FailWrites   Kind = "fail patches"
	LoseWrites   Kind = "lose answers to patches"
	SlowWrites   Kind = "delay answers to patches"
	LateWrites   Kind = "delay patches"
	ResetAll     Kind = "reset connections"
	FailLeases   Kind = "fail leases"
)

// Faults of the replicas themselves.
const (
	Kill  Kind = "kill replica"
	Stop  Kind = "stop replica"
	Pause Kind = "pause replica"
)

// String implements fmt.Stringer.
func (o Op) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%7.3fs %s", o.At.Seconds(), o.Kind)
	if o.Namespace == "" {
		fmt.Fprintf(&text, ": replica %d", o.Replica)
		if o.LeaderFirst {
			text.WriteString(" or the leader")
		}
	} else {
		fmt.Fprintf(&text, ": %s", o.Namespace)
	}
	for _, detail := range []struct {
		name  string
		value any
		there bool
	}{
		{"claim", o.Claim, o.Claim != ""},
		{"pod", o.Pod, o.Pod != ""},
		{"with claims", o.Claims, len(o.Claims) > 0},
		{"ephemeral", o.Ephemeral, o.Ephemeral},
		{"node", o.Node, o.Node != ""},
		{"scheduler", o.Scheduler, o.Scheduler},
		{"finalizer", o.Finalizer, o.Finalizer},
		{"for", o.For, o.For > 0},
		{"times", o.Times, o.Times > 0},
		{"code", o.Code, o.Code > 0},
	} {
		if detail.there {
			fmt.Fprintf(&text, ", %s %v", detail.name, detail.value)
		}
	}
	return text.String()
}

// isTraffic tells traffic from faults.
func (o Op) isTraffic() bool {
	return o.Namespace != ""
}
