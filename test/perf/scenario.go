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

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/cluster"
)

// scenario is work for the contenders, each in turn in the same cluster.
type scenario struct {
	Name, Title string
	// Size is how many claims or pods there are, for scenarios of a family that
	// differ in that only: the name before the dash.
	Size int
	work
	// withoutUpstream says why upstream does not take part.
	withoutUpstream string
}

// work is a kind of scenario.
type work interface {
	// load makes what all contenders meet, once in a cluster.
	load(context.Context, *env) error
	// prepare makes what one contender works on, before it starts.
	prepare(context.Context, *env) error
	// measure lets the contender work and checks that the outcome is right.
	measure(context.Context, *env, contender, *result) error
	// clean removes what prepare made, as far as it is still there.
	clean(context.Context, *env) error
	// hasFloor is set if there is a floor to compare with.
	hasFloor() bool
}

// env is what a scenario works with.
type env struct {
	cluster *cluster.Cluster
	client  client.WithWatch
}

var scenarios = []scenario{
	{Name: "backlog-1000", Size: 1000, Title: "backlog, 1 namespace: 1,000 claims, 1,000 other pods",
		work: backlog{namespaces: 1, claims: 1000, pods: 1000}},
	{Name: "backlog-5000", Size: 5000, Title: "backlog, 1 namespace: 5,000 claims, 5,000 other pods",
		work: backlog{namespaces: 1, claims: 5000, pods: 5000}},
	{Name: "backlog-20000", Size: 20000, Title: "backlog, 1 namespace: 20,000 claims, 20,000 other pods",
		work: backlog{namespaces: 1, claims: 20_000, pods: 20_000}, withoutUpstream: "its time grows with claims × pods"},
	{Name: "backlog-100x50", Title: "backlog, 100 namespaces: 50 claims, 50 other pods each",
		work: backlog{namespaces: 100, claims: 50, pods: 50}},
	{Name: "burst-2000", Title: "burst, 1 namespace: the pods of 2,000 claims in deletion go; 2,000 other pods",
		work: burst{claims: 2000, pods: 2000}},
	{Name: "adopt-10x200", Title: "adopt, 10 namespaces: 200 claims without finalizer each",
		work: backlog{namespaces: 10, claims: 200, adopt: true}},
	{Name: "steady", Title: "steady, one claim at a time, 200 other pods",
		work: steady{claims: 100, pods: 200}},
	{Name: "hold-1000", Title: "hold, the pods of 1,000 claims in deletion change 5 times each",
		work: hold{claims: 1000, rounds: 5}},
	{Name: "hold-5000", Title: "hold, the pods of 5,000 claims in deletion change once each",
		work: hold{claims: 5000, rounds: 1}},
	{Name: "idle-1k", Size: 1000, Title: "idle, 1,000 pods of 4 KB", work: idle{namespaces: 50, pods: 1000}},
	{Name: "idle-20k", Size: 20000, Title: "idle, 20,000 pods of 4 KB", work: idle{namespaces: 50, pods: 20_000}},
	{Name: "idle-50k", Size: 50000, Title: "idle, 50,000 pods of 4 KB", work: idle{namespaces: 50, pods: 50_000}},
	{Name: "idle-100k", Size: 100000, Title: "idle, 100,000 pods of 4 KB", work: idle{namespaces: 50, pods: 100_000}},
	{Name: "start-20k", Title: "start-up, 20,000 bound claims, 50,000 pods of 4 KB",
		work: idle{namespaces: 50, pods: 50_000, claims: 20_000}},
}

// run lets the contenders work on the scenario in turn, in a fresh cluster. A cluster
// becomes slower with what it has done, so the order turns around with n.
func (s scenario) run(ctx context.Context, contenders []contender, n int, patience time.Duration) (results []result, err error) {
	options := cluster.Options{}
	if b, ok := s.work.(backlog); ok && b.adopt {
		options.DisableAdmissionPlugins = []string{"StorageObjectInUseProtection"}
	}
	c, err := cluster.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	cl, err := client.NewWithWatch(c.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	e := &env{cluster: c, client: cl}
	if err := s.load(ctx, e); err != nil {
		return nil, err
	}
	order := slices.Concat(contenders[n/2%len(contenders):], contenders[:n/2%len(contenders)])
	if n%2 == 1 {
		slices.Reverse(order)
	}
	for _, ct := range order {
		if ct.isFloor() && !s.hasFloor() || ct.name == upstream && s.withoutUpstream != "" {
			continue
		}
		if err := s.prepare(ctx, e); err != nil {
			return nil, err
		}
		r := result{Scenario: s.Name, Size: s.Size, Contender: ct.name, Values: map[measure]float64{}}
		if err := s.observe(ctx, e, ct, &r, patience); err != nil {
			return nil, fmt.Errorf("%s: %w", ct.name, err)
		}
		if err := s.clean(ctx, e); err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// observe measures, and adds what the API server did for it.
func (s scenario) observe(ctx context.Context, e *env, ct contender, r *result, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it did not finish within %s", patience))
	defer cancel()
	server, err := e.serverUse(ctx)
	if err != nil {
		return err
	}
	if err := s.measure(ctx, e, ct, r); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	after, err := e.serverUse(ctx)
	if err != nil {
		return err
	}
	r.set(serverCPU, (after.cpu - server.cpu).Seconds())
	r.set(listMiB, (after.listBytes-server.listBytes)/(1<<20))
	return nil
}
