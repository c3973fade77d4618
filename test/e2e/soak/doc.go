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

// Package soak plays random traffic on a whole cluster, while faults come between the operator's two replicas and the
// API server and the replicas are killed, paused and failed over, and has an oracle judge what came of it.
//
// What is done, and when, is a Plan, which is a function of a seed and nothing else. What comes of it is not: the
// scheduler, the controllers and the operator are as fast as the machine lets them.
package soak
