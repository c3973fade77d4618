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

package usage_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"pvc-protection-operator/internal/usage"
)

func TestMayHoldLess(t *testing.T) {
	held := claims("claim")
	tests := map[string]struct {
		old, updated *corev1.Pod
		want         bool
	}{
		"nothing changed":              {newPod(held), newPod(held), false},
		"scheduled":                    {newPod(held, unscheduled, pending), newPod(held, pending), false},
		"started":                      {newPod(held, pending), newPod(held), false},
		"moved to another node":        {newPod(held), newPod(held, onNode("other")), false},
		"unscheduled":                  {newPod(held), newPod(held, unscheduled), true},
		"succeeded":                    {newPod(held), newPod(held, succeeded), true},
		"failed":                       {newPod(held), newPod(held, failed), true},
		"failed before it started":     {newPod(held, pending), newPod(held, failed), true},
		"ended before":                 {newPod(held, succeeded), newPod(held, succeeded), false},
		"ended differently":            {newPod(held, succeeded), newPod(held, failed), false},
		"deleted with grace":           {newPod(held), newPod(held, deleted(30)), false},
		"shut down at once":            {newPod(held), newPod(held, shutDown), true},
		"shut down after grace":        {newPod(held, deleted(30)), newPod(held, shutDown), true},
		"shut down before":             {newPod(held, shutDown), newPod(held, shutDown), false},
		"ended, then shut down":        {newPod(held, succeeded), newPod(held, succeeded, shutDown), true},
		"shut down, then ended":        {newPod(held, shutDown), newPod(held, failed, shutDown), true},
		"grace made shorter":           {newPod(held, deleted(30)), newPod(held, deleted(1)), false},
		"ephemeral, shut down":         {newPod(ephemeralVolume("v"), deleted(1)), newPod(ephemeralVolume("v"), shutDown), true},
		"ephemeral, nothing changed":   {newPod(ephemeralVolume("v")), newPod(ephemeralVolume("v")), false},
		"no claims, unscheduled":       {newPod(), newPod(unscheduled), false},
		"no claims, shut down":         {newPod(otherVolumes), newPod(otherVolumes, shutDown), false},
		"no claims, ended":             {newPod(otherVolumes), newPod(otherVolumes, succeeded), false},
		"a claim without name, ended":  {newPod(claims("")), newPod(claims(""), succeeded), false},
		"another pod, the same claims": {newPod(held), newPod(held, withUID("new")), true},
		"another pod, other claims":    {newPod(held), newPod(claims("other"), withUID("new")), true},
		"another pod without claims":   {newPod(held), newPod(withUID("new")), true},
		"another pod, new claims":      {newPod(), newPod(held, withUID("new")), true},
		"another pod, never any claim": {newPod(otherVolumes), newPod(withUID("new")), false},
		"another pod after one ended":  {newPod(held, succeeded), newPod(held, succeeded, withUID("new")), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usage.MayHoldLess(test.old, test.updated); got != test.want {
				t.Errorf("MayHoldLess() = %v, want %v", got, test.want)
			}
		})
	}
}

func TestMayNotHold(t *testing.T) {
	held := claims("claim")
	tests := map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"running":                      {newPod(held), false},
		"scheduled, pending":           {newPod(held, pending), false},
		"being deleted":                {newPod(held, deleted(30)), false},
		"not scheduled":                {newPod(held, unscheduled), true},
		"succeeded":                    {newPod(held, succeeded), true},
		"failed":                       {newPod(held, failed), true},
		"shut down":                    {newPod(held, shutDown), true},
		"ephemeral, running":           {newPod(ephemeralVolume("v")), false},
		"ephemeral, shut down":         {newPod(ephemeralVolume("v"), shutDown), true},
		"no claims, not scheduled":     {newPod(otherVolumes, unscheduled), false},
		"no claims, ended":             {newPod(succeeded), false},
		"no claims, shut down":         {newPod(shutDown), false},
		"a claim without a name, gone": {newPod(claims(""), shutDown), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usage.MayNotHold(test.pod); got != test.want {
				t.Errorf("MayNotHold() = %v, want %v", got, test.want)
			}
		})
	}
}
