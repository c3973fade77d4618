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

package integration_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

func testEphemeral(e *env) {
	pod := e.pod("web", harness.OnNode(node), harness.WithEphemeral("scratch"))
	claim := e.ephemeralClaim(pod, "scratch")
	e.delete(claim)
	e.held(claim)
	e.kill(pod)
	e.gone(claim)
}

func testEphemeralUnscheduled(e *env) {
	pod := e.pod("web", harness.WithEphemeral("scratch"))
	claim := e.ephemeralClaim(pod, "scratch")
	e.delete(claim)
	e.gone(claim)
}

// testEphemeralNotOwned has claims that are named like the one of a pod's ephemeral volume, but are not it.
func testEphemeralNotOwned(e *env) {
	noOwner := e.pod("no-owner", harness.OnNode(node), harness.WithEphemeral("scratch"))
	otherUID := e.pod("other-uid", harness.OnNode(node), harness.WithEphemeral("scratch"))
	noController := e.pod("no-controller", harness.OnNode(node), harness.WithEphemeral("scratch"))
	owned := e.pod("owned", harness.OnNode(node), harness.WithEphemeral("scratch"))

	free := []*corev1.PersistentVolumeClaim{
		e.ephemeralClaim(noOwner, "scratch", func(claim *corev1.PersistentVolumeClaim) { claim.OwnerReferences = nil }),
		// Of an earlier pod of the same name, for instance.
		e.ephemeralClaim(otherUID, "scratch", func(claim *corev1.PersistentVolumeClaim) {
			claim.OwnerReferences[0].UID = types.UID("00000000-0000-0000-0000-000000000000")
		}),
		e.ephemeralClaim(noController, "scratch", func(claim *corev1.PersistentVolumeClaim) {
			claim.OwnerReferences[0].Controller = new(false)
		}),
	}
	held := e.ephemeralClaim(owned, "scratch")
	e.delete(asObjects(append(free, held))...)
	e.gone(free...)
	e.held(held)
	e.kill(owned)
	e.gone(held)
}

// testEphemeralNamed has another pod that names the claim of an ephemeral volume as its own.
func testEphemeralNamed(e *env) {
	owner := e.pod("web", harness.OnNode(node), harness.WithEphemeral("scratch"))
	claim := e.ephemeralClaim(owner, "scratch")
	other := e.pod("other", harness.OnNode(node), harness.WithClaim("web-scratch"))
	e.delete(claim)
	e.kill(owner)
	e.held(claim)
	e.kill(other)
	e.gone(claim)
}

// testShutDownEphemeral has a pod that waits for its claim: it is shut down, and stays until the claim is gone. As on a
// lost node, its containers are still reported as running.
func testShutDownEphemeral(e *env) {
	pod := e.pod("web", harness.OnNode(node), harness.WithEphemeral("scratch"), harness.WithFinalizer(foreignFinalizer))
	e.setPhase(pod, corev1.PodRunning)
	claim := e.ephemeralClaim(pod, "scratch")
	e.delete(claim)
	e.fatalIf(suite.admin.Delete(e.Context(), pod, client.GracePeriodSeconds(600)))
	e.held(claim) // it is shutting down, and not yet shut down
	e.kill(pod)
	e.gone(claim)
	e.removeFinalizer(pod, foreignFinalizer)
}

func testShutDownNamed(e *env) {
	pod := e.pod("web", harness.OnNode(node),
		harness.WithClaim("data"), harness.WithEphemeral("scratch"), harness.WithFinalizer(foreignFinalizer))
	named, ephemeral := e.claim("data"), e.ephemeralClaim(pod, "scratch")
	e.kill(pod)
	e.delete(named, ephemeral)
	e.gone(ephemeral)
	e.held(named)
	e.removeFinalizer(pod, foreignFinalizer)
	e.gone(named)
}
