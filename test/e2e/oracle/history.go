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

package oracle

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is what a watch has told of a pod or a claim. The object's resourceVersion is the revision of the change, also
// of a deletion.
type Change struct {
	Type   watch.EventType
	Object client.Object
}

// history is the lives of all objects.
type history struct {
	// pods are by namespace.
	pods map[string]map[types.UID]*life[*corev1.Pod]
	// claims are by UID.
	claims map[types.UID]*life[*corev1.PersistentVolumeClaim]
	// known are the revisions of every object.
	known map[version]bool
}

type version struct {
	uid      types.UID
	revision int64
}

// life is the states of one object in their order.
type life[T client.Object] []state[T]

type state[T client.Object] struct {
	revision int64
	object   T
	// gone is true for the last state of an object that was deleted.
	gone bool
}

// at returns the object as it was at the revision, if it existed.
func (l life[T]) at(revision int64) (object T, exists bool) {
	next, _ := slices.BinarySearchFunc(l, revision+1, func(s state[T], revision int64) int {
		return int(s.revision - revision)
	})
	if next == 0 || l[next-1].gone {
		return object, false
	}
	return l[next-1].object, true
}

func (l life[T]) last() state[T] {
	return l[len(l)-1]
}

// newHistory puts the changes in their order.
func newHistory(changes []Change) (*history, error) {
	h := &history{
		pods:   map[string]map[types.UID]*life[*corev1.Pod]{},
		claims: map[types.UID]*life[*corev1.PersistentVolumeClaim]{},
		known:  map[version]bool{},
	}
	for _, change := range changes {
		revision, err := revisionOf(change.Object)
		if err != nil {
			return nil, err
		}
		uid, gone := change.Object.GetUID(), change.Type == watch.Deleted
		h.known[version{uid, revision}] = true
		switch object := change.Object.(type) {
		case *corev1.Pod:
			pods := entry(h.pods, object.Namespace, func() map[types.UID]*life[*corev1.Pod] {
				return map[types.UID]*life[*corev1.Pod]{}
			})
			pod := entry(pods, uid, func() *life[*corev1.Pod] { return &life[*corev1.Pod]{} })
			*pod = append(*pod, state[*corev1.Pod]{revision, object, gone})
		case *corev1.PersistentVolumeClaim:
			claim := entry(h.claims, uid, func() *life[*corev1.PersistentVolumeClaim] {
				return &life[*corev1.PersistentVolumeClaim]{}
			})
			*claim = append(*claim, state[*corev1.PersistentVolumeClaim]{revision, object, gone})
		default:
			return nil, fmt.Errorf("a change of a %T", change.Object)
		}
	}
	for _, pods := range h.pods {
		for _, pod := range pods {
			pod.order()
		}
	}
	for _, claim := range h.claims {
		claim.order()
	}
	return h, nil
}

func (l life[T]) order() {
	slices.SortStableFunc(l, func(a, b state[T]) int { return int(a.revision - b.revision) })
}

// holders returns the pods that held the claim at the revision.
func (h *history) holders(claim *corev1.PersistentVolumeClaim, revision int64) []*corev1.Pod {
	var holders []*corev1.Pod
	for _, life := range h.pods[claim.Namespace] {
		if pod, exists := life.at(revision); exists && holds(pod, claim) {
			holders = append(holders, pod)
		}
	}
	return holders
}

func revisionOf(object client.Object) (int64, error) {
	revision, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%T %s: resource version: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return revision, nil
}

func entry[K comparable, V any](m map[K]V, key K, missing func() V) V {
	value, ok := m[key]
	if !ok {
		value = missing()
		m[key] = value
	}
	return value
}
