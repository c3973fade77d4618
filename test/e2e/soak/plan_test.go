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

package soak_test

import (
	"reflect"
	"testing"
	"time"

	"pvc-protection-operator/test/e2e/soak"
)

// TestPlan makes sure that a seed is enough to replay a plan.
func TestPlan(t *testing.T) {
	long := soak.Plan(1, time.Hour)
	if again := soak.Plan(1, time.Hour); !reflect.DeepEqual(long, again) {
		t.Error("the same seed makes another plan")
	}
	short := soak.Plan(1, time.Minute)
	if len(short) == 0 || len(short) >= len(long) || !reflect.DeepEqual(short, long[:len(short)]) {
		t.Errorf("the %d steps of a minute are not the first ones of an hour", len(short))
	}
	if other := soak.Plan(2, time.Minute); reflect.DeepEqual(short, other) {
		t.Error("another seed makes the same plan")
	}

	kinds := map[soak.Kind]int{}
	at := time.Duration(0)
	for _, op := range long {
		if op.At < at {
			t.Fatalf("%s is not in order", op)
		}
		at = op.At
		kinds[op.Kind]++
	}
	// An hour has something of everything.
	if want := 36; len(kinds) != want {
		t.Errorf("got %d kinds of steps, want %d: %v", len(kinds), want, kinds)
	}
}
