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

package oracle_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"pvc-protection-operator/test/harness"
)

const somebody = "somebody"

// verdict is the numbers of a report.
type verdict struct {
	Releases, Others, InUse, Unfounded, Late, Stuck, Missing int
}

func TestJudge(t *testing.T) {
	operator := harness.Username
	onNode, uses, scratch := harness.OnNode("node"), harness.WithClaim("data"), harness.WithEphemeral("data")

	for name, tc := range map[string]struct {
		tell func(*story)
		want verdict
	}{
		"nothing": {func(*story) {}, verdict{}},
		"unused": {func(s *story) {
			claim := s.claim("c")
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1}},
		"released after its holder": {func(s *story) {
			claim, pod := s.claim("c"), s.pod("p", onNode, uses)
			s.mark(claim, 0)
			s.list()
			s.gone(pod)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1}},
		"held, without a list": {func(s *story) {
			claim := s.claim("c")
			s.pod("p", onNode, uses)
			s.mark(claim, 0)
			s.release(claim, operator)
		}, verdict{Releases: 1, InUse: 1}},
		"held, and the list shows it": {func(s *story) {
			claim := s.claim("c")
			s.pod("p", onNode, uses)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1, InUse: 1}},
		"held, while another finalizer keeps it": {func(s *story) {
			claim := s.claim("c", foreign)
			s.pod("p", onNode, uses)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
			claim.Finalizers = nil
			s.gone(claim)
		}, verdict{Releases: 1, InUse: 1}},
		"S1: the list is from before the deletion": {func(s *story) {
			claim, pod := s.claim("c"), s.pod("p", uses)
			s.list()
			s.bind(pod)
			s.mark(claim, 0)
			s.release(claim, operator)
		}, verdict{Releases: 1, InUse: 1}},
		"S1, and by luck nobody held it": {func(s *story) {
			claim := s.claim("c")
			s.pod("p", uses)
			s.list()
			s.mark(claim, 0)
			s.release(claim, operator)
		}, verdict{Releases: 1, Unfounded: 1}},
		"no list but one after the release": {func(s *story) {
			claim := s.claim("c")
			s.mark(claim, 0)
			s.release(claim, operator)
			s.list()
		}, verdict{Releases: 1, Unfounded: 1}},
		"bound after the list": {func(s *story) {
			claim, pod := s.claim("c"), s.pod("p", uses)
			s.mark(claim, 0)
			s.list()
			s.bind(pod)
			s.release(claim, operator)
		}, verdict{Releases: 1, Late: 1}},
		"bound after the deletion and before the only list": {func(s *story) {
			claim, pod := s.claim("c"), s.pod("p", uses)
			s.mark(claim, 0)
			s.bind(pod)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1, InUse: 1}},
		"not in deletion": {func(s *story) {
			claim := s.claim("c", foreign)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1, Unfounded: 1}},
		"unscheduled": {func(s *story) {
			claim := s.claim("c")
			s.pod("p", uses)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1}},
		"shut down, and it names the claim": {func(s *story) {
			claim, pod := s.claim("c"), s.pod("p", onNode, uses, harness.WithFinalizer(foreign))
			s.mark(pod, 0)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1, InUse: 1}},
		"ephemeral of its owner": {func(s *story) {
			pod := s.pod("p", onNode, scratch)
			claim := s.claimOf(pod)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1, InUse: 1}},
		"ephemeral of an owner with grace": {func(s *story) {
			pod := s.pod("p", onNode, scratch)
			claim := s.claimOf(pod)
			s.mark(pod, 30)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1, InUse: 1}},
		"ephemeral of an owner that is shut down": {func(s *story) {
			pod := s.pod("p", onNode, scratch, harness.WithFinalizer(foreign))
			claim := s.claimOf(pod)
			s.mark(pod, 0)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1}},
		"ephemeral of an earlier pod of that name": {func(s *story) {
			pod := s.pod("p1", onNode, scratch)
			claim := s.claimOf(pod)
			s.gone(pod)
			s.pod("p2", onNode, scratch)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1}},
		"recreated": {func(s *story) {
			first := s.claim("c1")
			s.mark(first, 0)
			s.list()
			s.release(first, operator)
			second := s.claim("c2")
			s.pod("p", onNode, uses)
			s.mark(second, 0)
			s.release(second, operator)
		}, verdict{Releases: 2, InUse: 1}},
		"recreated, and still there": {func(s *story) {
			first := s.claim("c1")
			s.mark(first, 0)
			s.list()
			s.release(first, operator)
			s.claim("c2")
			s.pod("p", onNode, uses)
		}, verdict{Releases: 1}},
		"replaced pod": {func(s *story) {
			claim, first := s.claim("c"), s.pod("p1", onNode, uses)
			s.mark(claim, 0)
			s.gone(first)
			s.pod("p2", onNode, uses)
			s.list()
			s.release(claim, operator)
		}, verdict{Releases: 1, InUse: 1}},
		"released by somebody else": {func(s *story) {
			claim := s.claim("c")
			s.pod("p", onNode, uses)
			s.mark(claim, 0)
			s.release(claim, somebody)
		}, verdict{Others: 1}},
		"released by a writer that got no answer": {func(s *story) {
			claim := s.claim("c")
			s.pod("p", onNode, uses)
			s.mark(claim, 0)
			s.list()
			s.gone(claim)
		}, verdict{Releases: 1, InUse: 1}},
		"released by both replicas": {func(s *story) {
			claim := s.claim("c", foreign)
			s.pod("p", onNode, uses)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
			claim.Labels = map[string]string{"key": "value"}
			s.tell(watch.Modified, claim)
			s.audit("patch", operator, "persistentvolumeclaims", "/data", claim)
		}, verdict{Releases: 1, InUse: 1}},
		"deleted before it was known to be protected": {func(s *story) {
			s.gone(s.claim("c"))
		}, verdict{Others: 1}},
		"stuck": {func(s *story) {
			s.mark(s.claim("c"), 0)
		}, verdict{Stuck: 1}},
		"blocked": {func(s *story) {
			s.pod("p", onNode, uses)
			s.mark(s.claim("c"), 0)
		}, verdict{}},
		"kept by another finalizer": {func(s *story) {
			s.mark(s.claim("c", foreign), 0)
		}, verdict{}},
		"a record with a gap": {func(s *story) {
			claim := s.claim("c", foreign)
			s.mark(claim, 0)
			s.list()
			s.release(claim, operator)
			s.changes = s.changes[:len(s.changes)-1]
		}, verdict{Missing: 2}}, // the write, and the release
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			tc.tell(s)
			report := s.judge()
			got := verdict{
				report.Releases, report.Others, len(report.InUse), len(report.Unfounded), len(report.Late),
				len(report.Stuck), len(report.Missing),
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v\n%s\n%v", got, tc.want, report, report.Err())
			}
			bad := got.InUse + got.Unfounded + got.Stuck + got.Missing
			if err := report.Err(); (err != nil) != (bad > 0) {
				t.Errorf("got error %v", err)
			}
		})
	}
}
