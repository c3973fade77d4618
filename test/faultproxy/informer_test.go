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

package faultproxy_test

import (
	"context"
	"slices"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// informer is an informer that writes down what it is told.
type informer struct {
	env    *env
	events chan string
	synced func() bool
}

func (e *env) newInformer(client kubernetes.Interface) *informer {
	e.t.Helper()
	i := &informer{env: e, events: make(chan string, 100)}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(e.namespace))
	shared := factory.Core().V1().ConfigMaps().Informer()
	tell := func(verb string, object any) {
		key, err := cache.DeletionHandlingObjectToName(object)
		if err != nil {
			verb = err.Error()
		}
		i.events <- verb + " " + key.Name
	}
	registration, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("add", object) },
		UpdateFunc: func(_, object any) { tell("update", object) },
		DeleteFunc: func(object any) { tell("delete", object) },
	})
	must(e.t, err)
	i.synced = registration.HasSynced
	ctx, cancel := context.WithCancel(e.ctx)
	factory.StartWithContext(ctx)
	e.t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	return i
}

// want checks what the informer is told next.
func (i *informer) want(events ...string) {
	i.env.t.Helper()
	for _, event := range events {
		select {
		case got := <-i.events:
			if got != event {
				i.env.t.Fatalf("got %q, want %q", got, event)
			}
		case <-i.env.ctx.Done():
			i.env.t.Fatalf("%q has not come", event)
		}
	}
}

// until returns what the informer is told up to the given event.
func (i *informer) until(event string) []string {
	i.env.t.Helper()
	var events []string
	for !slices.Contains(events, event) {
		select {
		case got := <-i.events:
			events = append(events, got)
		case <-i.env.ctx.Done():
			i.env.t.Fatalf("%q has not come, but %q", event, events)
		}
	}
	return events
}

// wantInitially checks what the informer is told of the objects that exist when it starts, which have no order.
func (i *informer) wantInitially(events ...string) {
	i.env.t.Helper()
	var got []string
	for range events {
		select {
		case event := <-i.events:
			got = append(got, event)
		case <-i.env.ctx.Done():
			i.env.t.Fatalf("got %q, want %q", got, events)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, events) {
		i.env.t.Fatalf("got %q, want %q", got, events)
	}
}

func (i *informer) wantNothing() {
	i.env.t.Helper()
	select {
	case got := <-i.events:
		i.env.t.Fatalf("got %q, want nothing", got)
	default:
	}
}

func (i *informer) wantSync() {
	i.env.t.Helper()
	if !cache.WaitForCacheSync(i.env.ctx.Done(), i.synced) {
		i.env.t.Fatal("the informer has not synced")
	}
}

// watchesFrom creates an object that the informer gets to know by its watch. A reflector whose watch ends soon, and
// without an event, does not try to go on from there.
func (i *informer) watchesFrom(name string) {
	i.env.t.Helper()
	i.wantSync()
	i.env.create(name)
	i.want("add " + name)
}
