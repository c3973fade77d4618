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
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// catchUpTimeout bounds how far the watches may lag behind.
const catchUpTimeout = time.Minute

// Recorder records every change of every pod and claim. Its methods may be called concurrently.
type Recorder struct {
	sources []recorded

	mu      sync.Mutex
	changes []Change
	live    map[types.UID]client.Object
	err     error
}

// recorded is a kind of objects.
type recorded struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Record records what exists, and from there on every change until the context ends. The client should be an
// administrator's, and lead straight to the API server.
func Record(ctx context.Context, c kubernetes.Interface) (*Recorder, error) {
	pods, claims := c.CoreV1().Pods(""), c.CoreV1().PersistentVolumeClaims("")
	r := &Recorder{live: map[types.UID]client.Object{}, sources: []recorded{
		{
			list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
			watch: pods.Watch,
		},
		{
			list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return claims.List(ctx, o) },
			watch: claims.Watch,
		},
	}}
	for _, source := range r.sources {
		revision, objects, err := source.current(ctx)
		if err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
		for _, object := range objects {
			r.add(watch.Added, object)
		}
		go r.follow(ctx, source, revision)
	}
	return r, nil
}

// Changes returns what was recorded so far.
func (r *Recorder) Changes() []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.changes)
}

// Stuck returns how many claims should be gone by now.
func (r *Recorder) Stuck(finalizer string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	stuck := 0
next:
	for _, object := range r.live {
		claim, ok := object.(*corev1.PersistentVolumeClaim)
		if !ok || !IsStuck(claim, finalizer) {
			continue
		}
		for _, other := range r.live {
			if pod, ok := other.(*corev1.Pod); ok && holds(pod, claim) {
				continue next
			}
		}
		stuck++
	}
	return stuck
}

// CatchUp returns when what was recorded leads to what there is, at a time when nothing changes.
func (r *Recorder) CatchUp(ctx context.Context) error {
	return harness.Eventually(ctx, catchUpTimeout, func(ctx context.Context) error {
		var all []client.Object
		for _, source := range r.sources {
			_, objects, err := source.current(ctx)
			if err != nil {
				return err
			}
			all = append(all, objects...)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err != nil {
			return r.err
		}
		for _, object := range all {
			if live := r.live[object.GetUID()]; live == nil || live.GetResourceVersion() != object.GetResourceVersion() {
				return fmt.Errorf("the record lacks a change of %T %s", object, client.ObjectKeyFromObject(object))
			}
		}
		if len(all) != len(r.live) {
			return fmt.Errorf("by the record there are %d objects, on the API server %d", len(r.live), len(all))
		}
		return nil
	})
}

func (s recorded) current(ctx context.Context) (revision string, objects []client.Object, err error) {
	list, err := s.list(ctx, metav1.ListOptions{})
	if err != nil {
		return "", nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return "", nil, err
	}
	for _, item := range items {
		objects = append(objects, item.(client.Object))
	}
	return list.(metav1.ListInterface).GetResourceVersion(), objects, nil
}

// follow records until the context ends or the API server does not know any more how to go on.
func (r *Recorder) follow(ctx context.Context, source recorded, revision string) {
	for ctx.Err() == nil {
		next, err := r.followOnce(ctx, source, revision)
		if next == revision {
			select { // the API server may be away
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		revision = next
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			r.mu.Lock()
			r.err = errors.Join(r.err, fmt.Errorf("the record has a gap after revision %s: %w", revision, err))
			r.mu.Unlock()
			return
		}
	}
}

// followOnce follows one watch until it ends, and returns from where to go on.
func (r *Recorder) followOnce(ctx context.Context, source recorded, revision string) (string, error) {
	events, err := source.watch(ctx, metav1.ListOptions{ResourceVersion: revision, AllowWatchBookmarks: true})
	if err != nil {
		return revision, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return revision, apierrors.FromObject(event.Object)
		}
		object := event.Object.(client.Object)
		revision = object.GetResourceVersion()
		if event.Type != watch.Bookmark {
			r.add(event.Type, object)
		}
	}
	return revision, nil
}

func (r *Recorder) add(event watch.EventType, object client.Object) {
	object = trim(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, Change{Type: event, Object: object})
	if event == watch.Deleted {
		delete(r.live, object.GetUID())
	} else {
		r.live[object.GetUID()] = object
	}
}

// trim returns what counts of an object, as a long record is a matter of memory.
func trim(object client.Object) client.Object {
	identity := metav1.ObjectMeta{
		Namespace:                  object.GetNamespace(),
		Name:                       object.GetName(),
		UID:                        object.GetUID(),
		ResourceVersion:            object.GetResourceVersion(),
		DeletionTimestamp:          object.GetDeletionTimestamp(),
		DeletionGracePeriodSeconds: object.GetDeletionGracePeriodSeconds(),
		Finalizers:                 object.GetFinalizers(),
		OwnerReferences:            object.GetOwnerReferences(),
	}
	switch object := object.(type) {
	case *corev1.Pod:
		pod := &corev1.Pod{ObjectMeta: identity, Spec: corev1.PodSpec{NodeName: object.Spec.NodeName}}
		for _, volume := range object.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil || volume.Ephemeral != nil {
				pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
			}
		}
		return pod
	default:
		return &corev1.PersistentVolumeClaim{ObjectMeta: identity}
	}
}
