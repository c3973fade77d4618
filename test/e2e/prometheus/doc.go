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

// Package prometheus tests what the operator tells those who watch it: the alerts of config/prometheus and the dashboard
// of config/grafana.
//
// The rules are tested by themselves with promtool, and then live: a real Prometheus scrapes operators as the
// ServiceMonitor says, HTTPS with a token, while something goes wrong with each of them, and every alert has to fire
// and to resolve. Every test has a job of its own, of two replicas that work in the test's namespaces, through a proxy
// of package faultproxy.
//
// Prometheus and promtool are built by `make prometheus`, from the module in the folder tools.
package prometheus
