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

package batch

import (
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fifo is a set of requests that remembers the order in which they came. The zero
// value is ready to use.
type fifo struct {
	order []reconcile.Request
	known map[reconcile.Request]struct{}
}

func (f *fifo) len() int { return len(f.order) }

func (f *fifo) add(request reconcile.Request) {
	if _, ok := f.known[request]; ok {
		return
	}
	if f.known == nil {
		f.known = map[reconcile.Request]struct{}{}
	}
	f.known[request] = struct{}{}
	f.order = append(f.order, request)
}

// take removes and returns the oldest requests, at most limit.
func (f *fifo) take(limit int) []reconcile.Request {
	limit = min(limit, len(f.order))
	// The capacity is cut so that nobody can append over what is left.
	taken := f.order[:limit:limit]
	f.order = f.order[limit:]
	for _, request := range taken {
		delete(f.known, request)
	}
	return taken
}
