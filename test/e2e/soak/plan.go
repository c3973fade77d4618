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
	"math/rand/v2"
	"slices"
	"time"
)

const (
	nodes = 3
	// replicas is how many operators there are.
	replicas = 2

	// On average.
	trafficGap = 60 * time.Millisecond
	faultGap   = 1500 * time.Millisecond
	processGap = 7 * time.Second

	// calm is how long only traffic is played at first, so that there is something to go wrong.
	calm = 2 * time.Second
)

// Plan returns what to do in that time, in the order in which it is due. The plan of a longer time begins with the same
// steps.
func Plan(seed uint64, duration time.Duration) []Op {
	// Each has a source of its own, so that one can be changed without changing the others.
	source := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	plan := traffic(source(1), duration)
	plan = append(plan, faults(source(2), duration)...)
	plan = append(plan, processes(source(3), duration)...)
	slices.SortStableFunc(plan, func(a, b Op) int { return int(a.At - b.At) })
	return plan
}

// weighted are kinds and how often they come.
type weighted []struct {
	kind   Kind
	weight int
}

func (w weighted) pick(random *rand.Rand) Kind {
	sum := 0
	for _, entry := range w {
		sum += entry.weight
	}
	n := random.IntN(sum)
	for _, entry := range w {
		if n -= entry.weight; n < 0 {
			return entry.kind
		}
	}
	panic("unreachable")
}

// after returns a time that follows another one by the gap on average.
func after(random *rand.Rand, at, gap time.Duration) time.Duration {
	return at + time.Duration(random.ExpFloat64()*float64(gap))
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

var faultKinds = weighted{
	{HoldPods, 12}, {HoldClaims, 5}, {ExpirePods, 5}, {ExpireClaims, 3}, {EndWatches, 3},
	{FailLists, 9}, {CutLists, 6}, {SlowLists, 5}, {FailWrites, 4}, {LoseWrites, 3}, {SlowWrites, 4}, {LateWrites, 4},
	{ResetAll, 2}, {FailLeases, 1},
}

var codes = []int{409, 429, 500, 503, 504}

func faults(random *rand.Rand, duration time.Duration) []Op {
	var plan []Op
	for at := after(random, calm, faultGap); at < duration; at = after(random, at, faultGap) {
		plan = append(plan, Op{
			At: at, Kind: faultKinds.pick(random), Replica: random.IntN(replicas), LeaderFirst: random.IntN(2) == 0,
			For: between(random, 500*time.Millisecond, 8*time.Second), Times: random.IntN(6) + 1,
			Code: codes[random.IntN(len(codes))],
		})
	}
	return plan
}

var processKinds = weighted{{Kill, 5}, {Stop, 2}, {Pause, 5}}

// processes pauses replicas for up to some seconds more than it takes to lose the lease.
func processes(random *rand.Rand, duration time.Duration) []Op {
	var plan []Op
	for at := after(random, 2*calm, processGap); at < duration; at = after(random, at, processGap) {
		plan = append(plan, Op{
			At: at, Kind: processKinds.pick(random), Replica: random.IntN(replicas), LeaderFirst: random.IntN(3) > 0,
			For: between(random, 500*time.Millisecond, 22*time.Second),
		})
	}
	return plan
}
