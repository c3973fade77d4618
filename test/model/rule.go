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

package model

// Rule is how an operator comes to its decisions. The zero value is ours:
//
//	read every claim of the batch from the cache · keep those with a holder in
//	the cache · one live list, started now · a patch, bound to the UID, for each
//	claim that the list shows no holder of
//
// Every field takes away one part of it.
type Rule struct {
	// OneByOne is upstream's rule: each claim is read when its turn comes, and
	// the batch's first live list serves all that come after it.
	OneByOne bool
	// ListFirst starts the live list before the claims are read.
	ListFirst bool
	// KeepsList uses the live list of one batch for the next ones as well.
	KeepsList bool
	// CacheOnly makes no live list: that the cache knows no holder is enough.
	CacheOnly bool
	// StaleList asks for whatever state the API server has at hand
	// (resourceVersion=0), however old.
	StaleList bool
	// FirstPage takes the first page of the live list for all of it.
	FirstPage bool
	// NoUID sends patches that name the claim only, not its UID.
	NoUID bool
}

// keepsAnswer reports whether a live list decides about more than the claims that
// were waiting for it. Ours does not.
func (r Rule) keepsAnswer() bool { return r.OneByOne || r.ListFirst || r.KeepsList }
