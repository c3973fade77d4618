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

package drain

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := progress{out: &out}
		for range 3 {
			p.took()
		}
		<-time.After(progressInterval - time.Nanosecond)
		p.took()
		if out.Len() > 0 {
			t.Errorf("it says %q too early", out.String())
		}
		<-time.After(time.Nanosecond)
		p.took()
		p.took()
		if got, want := out.String(), "took the finalizer off 5 claims so far\n"; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	})
}
