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

package cluster

import (
	"slices"
	"strings"
	"testing"
)

func TestReadAuditEvents(t *testing.T) {
	const log = `{"verb":"get","objectRef":{"resource":"pods","name":"a"},"responseStatus":{"code":200}}
{"verb":"list","annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"pa`

	for name, tc := range map[string]struct {
		log       string
		limit     int
		wantVerbs []string
		wantErr   string
	}{
		"an unfinished line is left for later": {log: log, limit: 9, wantVerbs: []string{"get", "list"}},
		"the reader has had enough":            {log: log, limit: 1, wantVerbs: []string{"get"}},
		"nothing yet":                          {log: "", limit: 9},
		"not an event":                         {log: "hello\n", limit: 9, wantErr: `audit event "hello\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			var verbs []string
			err := readAuditEvents(strings.NewReader(tc.log), func(event AuditEvent) bool {
				verbs = append(verbs, event.Verb)
				return len(verbs) < tc.limit
			})
			if !slices.Equal(verbs, tc.wantVerbs) {
				t.Errorf("got %v, want %v", verbs, tc.wantVerbs)
			}
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got error %v, want %q", err, tc.wantErr)
			}
		})
	}
}
