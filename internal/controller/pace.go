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

package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// pace remembers for each namespace how long its next live list must wait: after
// a failed list for a back-off, which all candidates of the namespace share, and
// in a burst until enough of it has come to be worth another list.
//
// Only candidates wait. Claims that need protection never do.
type pace struct {
	clock    clock.PassiveClock
	failures workqueue.TypedRateLimiter[string]

	mu        sync.Mutex
	notBefore map[string]time.Time
}

func newPace(clock clock.PassiveClock, failures workqueue.TypedRateLimiter[string]) *pace {
	return &pace{clock: clock, failures: failures, notBefore: map[string]time.Time{}}
}

// delay returns how long the namespace's next list must wait; 0 if it may start.
func (p *pace) delay(namespace string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.notBefore[namespace].Sub(p.clock.Now()), 0)
}

// failed makes the namespace's next list wait, the longer the more lists have
// failed in a row.
func (p *pace) failed(namespace string) {
	p.hold(namespace, p.failures.When(namespace))
}

// succeeded ends the back-off of the namespace; its next list waits for the
// given time.
func (p *pace) succeeded(namespace string, delay time.Duration) {
	p.failures.Forget(namespace)
	p.hold(namespace, delay)
}

func (p *pace) hold(namespace string, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	// What is over says nothing any more. Dropping it here bounds the map by
	// the namespaces that wait now.
	maps.DeleteFunc(p.notBefore, func(_ string, until time.Time) bool { return !until.After(now) })
	if delay > 0 {
		p.notBefore[namespace] = now.Add(delay)
	}
}
