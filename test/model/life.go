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

// Package model holds two small models of the operator and of the cluster around
// it, and an explorer that visits every state that they can reach.
//
// [Safety] asks whether a claim in use can be released (docs/safety.md, S1 to S4).
// [Recheck] asks whether a claim can be left waiting for nothing (L1, L2). Both
// are the rules, not the code: time, the network and the API server's inner life
// are reduced to the order in which things may happen. What the code does beyond
// that is the business of the other tests.
package model

// life is where the name of a claim is in its life. A name may be used again, by
// another claim with another UID:
//
//	0 exists, 1 being deleted, 2 gone,   the claim with UID 1
//	3 exists, 4 being deleted, 5 gone,   the claim with UID 2
//
// It only ever goes up. A cache that lags shows a smaller number.
//
// An existing claim always has our finalizer, and no other: protecting claims is
// not modelled. So a release makes a claim go.
type life int8

func (l life) uid() int8          { return int8(l)/3 + 1 }
func (l life) exists() bool       { return l%3 == 0 }
func (l life) beingDeleted() bool { return l%3 == 1 }
func (l life) gone() bool         { return l%3 == 2 }

// candidate is the UID of the claim if it is being deleted, otherwise 0.
func (l life) candidate() int8 {
	if l.beingDeleted() {
		return l.uid()
	}
	return 0
}

// stage is where a pod is in its life. It only ever goes up, too, and a pod goes
// through every stage: one that is deleted while it is pending does no harm and is
// left out.
//
// A pod that is bound holds its claim whether it runs or has ended. Its volume names
// the claim; generic ephemeral volumes are not modelled.
type stage int8

const (
	absent  stage = iota // not yet created
	pending              // created, not bound to a node: holds nothing
	bound                // bound to a node: holds its claim
	gone                 // the pod object is gone
	reused               // another pod has its name, and no claim; in Recheck only
)
