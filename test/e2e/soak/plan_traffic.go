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
	"math/rand/v2"
	"slices"
	"time"
)

const (
	lanes  = 4
	claims = 10 // of a namespace, at most
	pods   = 10

	// namespaceLife is how many steps a namespace lives for, on average.
	namespaceLife = 150

	// lostNode is a node that does not exist. Nobody ends its pods but the garbage collector.
	lostNode = "lost"
)

var trafficKinds = weighted{
	{CreateClaim, 18}, {DeleteClaim, 8}, {RecreateClaim, 10}, {DeleteClaims, 1}, {LabelClaim, 4},
	{AddClaimFinalizer, 2}, {RemoveClaimFinalizer, 4},
	{CreatePod, 12}, {BindPod, 8}, {FinishPod, 5}, {DeletePod, 10}, {ForceDeletePod, 10}, {ReplacePod, 4}, {EvictPod, 2},
	{AddPodFinalizer, 2}, {RemovePodFinalizer, 6}, {BindAndDelete, 10},
}

// world is what a plan takes for granted of a namespace. What there really is depends on how fast the cluster is, so
// that some steps find nothing to do.
type world struct {
	lane, generation int
	claims           [claims]bool
	pods             [pods]bool
}

func (w *world) namespace() string {
	return fmt.Sprintf("soak-%d-%d", w.lane, w.generation)
}

func traffic(random *rand.Rand, duration time.Duration) []Op {
	var plan []Op
	worlds := make([]world, lanes)
	for lane := range worlds {
		worlds[lane].lane = lane
		plan = append(plan, worlds[lane].begin(0)...)
	}
	for at := after(random, 0, trafficGap); at < duration; at = after(random, at, trafficGap) {
		w := &worlds[random.IntN(lanes)]
		if random.IntN(namespaceLife) == 0 {
			plan = append(plan, Op{At: at, Kind: DeleteNamespace, Namespace: w.namespace(), Lane: w.lane})
			*w = world{lane: w.lane, generation: w.generation + 1}
			plan = append(plan, w.begin(at)...)
			continue
		}
		plan = append(plan, w.step(random, at))
	}
	return plan
}

// begin makes a namespace with every claim.
func (w *world) begin(at time.Duration) []Op {
	plan := make([]Op, 0, claims+1)
	plan = append(plan, Op{At: at, Kind: CreateNamespace, Namespace: w.namespace(), Lane: w.lane})
	for i := range w.claims {
		w.claims[i] = true
		plan = append(plan, Op{At: at, Kind: CreateClaim, Namespace: w.namespace(), Lane: w.lane, Claim: claimName(i)})
	}
	return plan
}

func (w *world) step(random *rand.Rand, at time.Duration) Op {
	op := Op{At: at, Kind: trafficKinds.pick(random), Namespace: w.namespace(), Lane: w.lane}
	switch op.Kind {
	case CreateClaim:
		op.Claim = claimName(pick(random, w.claims[:], false))
	case DeleteClaim, RecreateClaim, LabelClaim, AddClaimFinalizer, RemoveClaimFinalizer:
		claim := pick(random, w.claims[:], true)
		op.Claim = claimName(claim)
		w.claims[claim] = op.Kind != DeleteClaim
	case DeleteClaims:
		w.claims = [claims]bool{}
	case CreatePod, ReplacePod, BindAndDelete:
		pod := pick(random, w.pods[:], op.Kind == ReplacePod)
		op.Pod = podName(pod)
		w.pods[pod] = true
		w.shape(random, &op)
	case BindPod:
		op.Pod = podName(pick(random, w.pods[:], true))
		op.Node = nodeName(random)
	case DeletePod, ForceDeletePod, EvictPod:
		pod := pick(random, w.pods[:], true)
		op.Pod = podName(pod)
		w.pods[pod] = false
	default:
		op.Pod = podName(pick(random, w.pods[:], true))
	}
	return op
}

// shape says what a new pod looks like.
func (w *world) shape(random *rand.Rand, op *Op) {
	for range random.IntN(3) + 1 {
		claim := pick(random, w.claims[:], true)
		if name := claimName(claim); !slices.Contains(op.Claims, name) {
			op.Claims = append(op.Claims, name)
		}
		if op.Kind == BindAndDelete {
			w.claims[claim] = false
		}
	}
	op.Ephemeral = random.IntN(4) == 0
	op.Finalizer = random.IntN(6) == 0
	switch n := random.IntN(10); {
	case op.Kind == BindAndDelete || n < 4:
		op.Node = nodeName(random)
	case n < 7:
		op.Scheduler = true
	}
}

// pick returns one of those that exist or do not, as wanted, most of the time.
func pick(random *rand.Rand, exists []bool, wanted bool) int {
	n := 0
	for range 5 {
		if n = random.IntN(len(exists)); exists[n] == wanted {
			break
		}
	}
	return n
}

func claimName(n int) string { return fmt.Sprintf("claim-%d", n) }

func podName(n int) string { return fmt.Sprintf("pod-%d", n) }

func nodeName(random *rand.Rand) string {
	if random.IntN(12) == 0 {
		return lostNode
	}
	return fmt.Sprintf("node-%d", random.IntN(nodes))
}
