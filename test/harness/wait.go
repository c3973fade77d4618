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

package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const pollInterval = 50 * time.Millisecond

// Condition returns nil if it holds, and otherwise an error that says what there is instead.
type Condition func(context.Context) error

// Eventually waits until the condition holds. If it does not within the timeout, the error is the condition's last.
func Eventually(ctx context.Context, timeout time.Duration, condition Condition) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		// What fails because the time is over says less than what failed before.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after waiting up to %s: %w", timeout, errors.Join(last, context.Cause(ctx)))
	}
	return nil
}

// Consistently checks again and again for the given time, and returns the error of the first check that fails.
func Consistently(ctx context.Context, duration time.Duration, condition Condition) error {
	var failed error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, duration, true, func(context.Context) (bool, error) {
		// The last check may take its time: it gets the context of the caller.
		failed = condition(ctx)
		return failed != nil, nil
	})
	if failed == nil && ctx.Err() != nil {
		return err
	}
	return failed
}
