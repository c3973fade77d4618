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

// Package harness is what everything that runs the operator on a test cluster shares: the integration tests, the demo
// and the end-to-end tests. It renders and applies config/, builds the manager and runs it as a user would, makes
// claims and pods, and puts a proxy between the operator and the API server where a test needs to come in between.
//
//	objects, err := harness.Render(filepath.Join(root, "config", "default"))
//	warnings, err := harness.Apply(ctx, cluster.Config(), objects)
//	err = harness.Build(ctx, binary)
//	kubeconfig, err := cluster.ServiceAccountKubeconfig(ctx, harness.Namespace, harness.ServiceAccount)
//	operator, err := harness.Start(harness.Options{Binary: binary, Kubeconfig: kubeconfig})
//	err = operator.WaitReady(ctx)
//
// It knows nothing of package testing.
package harness
