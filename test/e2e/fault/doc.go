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

// Package fault holds the fault tests: the operator as it is built and as it is installed, on a real API server, with
// something going wrong between or in the two. Whatever goes wrong, a claim in use has to stay, and once it goes right
// again every other deleted claim has to go, by itself.
//
// Every test has an operator of its own that works in the test's namespaces, through a proxy of package faultproxy.
package fault
