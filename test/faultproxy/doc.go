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

// Package faultproxy puts a proxy between a Kubernetes client and the API server and makes things go wrong there.
//
// The proxy is a reverse proxy on a loopback port. To a client it looks like the API server: it speaks HTTPS and
// HTTP/2, and passes requests on as they are, with the client's token, so that identity and RBAC are the client's. It
// reads no bodies, except to count their bytes, so that it is indifferent to JSON, protobuf or compression.
//
//	proxy, err := faultproxy.New(ctx, cluster.Config())
//	...
//	config, err := proxy.Config(operatorConfig)                   // for a client in this process
//	err = proxy.WriteKubeconfig(operatorKubeconfig, path)         // for another one
//
// # Faults
//
// A Rule applies a Fault to the requests that a Match selects, some of them or all as long as the rule is there:
//
//	lists := faultproxy.Match{Verb: "list", Resource: "pods", Page: faultproxy.LaterPage}
//	rule := proxy.Add(faultproxy.Rule{Match: lists, Times: 3, Fault: faultproxy.Cut(1000)})
//	err = rule.Wait(ctx, 3)
//
// All rules that select a request apply to it, in the order in which they were added, until one of them answers it. A
// rule does not apply to requests that had arrived before it was added.
//
// A Gate holds requests before the server sees them, or the server's answers, until it is released:
//
//	gate := proxy.HoldResponses(faultproxy.Match{Verb: "list", Resource: "pods"})
//	err = gate.Waiting(ctx, 1) // the server has answered, and the client does not know
//	gate.Release()
//
// # Watches
//
// HoldEvents holds back what the server sends on watches, running ones and new ones. EndWatches ends running ones, with
// what is held back, and Expire moreover lets clients find that they cannot go on from where they were:
//
//	gate := proxy.HoldEvents(faultproxy.Match{Resource: "pods"})
//	... // a pod comes and goes
//	proxy.Expire(faultproxy.Match{Resource: "pods"}, 1)
//	gate.Release() // the client relists and never hears of that pod
//
// # What clients do about it
//
// Not every fault comes to the attention of the code under test. client-go itself repeats requests that are answered
// with 429 or a 5xx code and a Retry-After header, whatever the verb, and reads whose connection is reset or lost,
// up to ten times and a second or more apart; every attempt is a request to the proxy. A reflector relists when its
// watch ends within a second of its start without an event.
package faultproxy
