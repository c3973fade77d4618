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

// Package cluster runs a real Kubernetes control plane on the loopback interface, for tests.
//
// It starts etcd and kube-apiserver through controller-runtime's envtest and, on request, kube-controller-manager,
// kube-scheduler and kwok, which plays nodes and the kubelets' part in the life of pods. With all of them, a
// StatefulSet with claims and ephemeral volumes comes to Running and Bound within seconds, with no container runtime
// and no storage behind it. The in-tree controller that the operator replaces is off unless asked for.
//
// # Two modules
//
// This package belongs to the module of the operator, so that every test can import it, and is built from what the
// operator depends on anyway. The binaries come from a module of their own, in the folder tools: it lists them as
// `tool` lines, and with them the dependencies of half of Kubernetes, of which nothing may reach the operator's
// go.mod. Nothing in tools is imported by anybody; build-binaries.sh builds the binaries from it, with the Go module
// proxy as the only source, into bin/k8s/<version>, where the version is the one of k8s.io/kubernetes in tools/go.mod.
// `make cluster-binaries` calls it.
//
// A second version of Kubernetes takes a second folder with a go.mod of the same shape:
//
//	test/cluster/build-binaries.sh --tools test/cluster/<folder>
//	KUBEBUILDER_ASSETS="$PWD/bin/k8s/<version>" go test ./test/integration
//
// `make test-compat` does that for each folder tools-*. They list only what those tests need, and with it a cluster has
// neither controllers nor nodes.
//
// # In a test
//
//	c, err := cluster.Start(ctx, cluster.Options{ControllerManager: true, Scheduler: true, Nodes: 2})
//	if err != nil {
//		t.Fatal(err)
//	}
//	t.Cleanup(func() {
//		if err := c.Stop(); err != nil {
//			t.Error(err)
//		}
//	})
//
// # By hand
//
//	go run ./test/cluster/up --nodes 3
//
// # Nothing is left behind
//
// Everything a cluster writes lies in one temporary folder, with two exceptions: the empty folders that
// kube-controller-manager makes in /tmp/hostpath_pv for the volumes it provisions, which Stop removes, and the files
// with which envtest reserves ports. Stop ends the processes and removes the folder. When the process that started
// the cluster dies without a call to Stop, killed or by a panic or by the timeout of go test, a watchdog does both.
package cluster
