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

package oracle

import (
	"errors"
	"fmt"
	"strings"
)

// Report is a verdict.
type Report struct {
	// Changes, Pods and Claims are how much was recorded, Lists how many lists of pods the operator has made.
	Changes, Pods, Claims, Lists int

	// Releases is how many releases of the operator were judged. Unanswered ones are among them: whoever made them has
	// gone away before the API server's answer, and the operator is held responsible. Others were made by somebody else.
	Releases, Unanswered, Others int

	// Terminating is how many claims in deletion are left, for whatever reason.
	Terminating int

	// InUse are releases of claims that a pod held.
	InUse []Finding
	// Unfounded are releases without the list that they need, of claims that happened not to be held.
	Unfounded []Finding
	// Late are releases of claims that a pod came to hold after the list. They are no violations.
	Late []Finding
	// Stuck are claims that should be gone.
	Stuck []Finding
	// Missing is what the audit log tells and the recorder does not: the verdict rests on an incomplete record.
	Missing []string
}

// Finding is about a claim. Numbers are revisions.
type Finding struct {
	Claim    string
	Deleted  int64
	Released int64
	// Holders are the pods that held it when it was released.
	Holders []string
	// Lists are the operator's lists of pods in between.
	Lists []int64
}

// String implements fmt.Stringer.
func (f Finding) String() string {
	text := fmt.Sprintf("%s, deleted at revision %d", f.Claim, f.Deleted)
	if f.Released > 0 {
		text += fmt.Sprintf(", released at %d, lists in between at %d", f.Released, f.Lists)
	}
	if len(f.Holders) > 0 {
		text += ", held by " + strings.Join(f.Holders, " and ")
	}
	return text
}

// Err returns an error that tells of every violation, every stuck claim and everything that is missing, if there is any.
func (r *Report) Err() error {
	var errs []error
	add := func(what string, findings []Finding) {
		for _, finding := range findings {
			errs = append(errs, fmt.Errorf("%s: %s", what, finding))
		}
	}
	add("RELEASED IN USE", r.InUse)
	add("released without evidence", r.Unfounded)
	add("stuck", r.Stuck)
	for _, missing := range r.Missing {
		errs = append(errs, fmt.Errorf("in the audit log and not in the record: %s", missing))
	}
	return errors.Join(errs...)
}

// String implements fmt.Stringer.
func (r *Report) String() string {
	return fmt.Sprintf(`recorded:   %d changes of %d pods and %d claims
releases:   %d checked, %d of them unanswered; %d made by others; the operator has made %d live lists
violations: %d in use, %d without evidence; stuck claims: %d
uncertain:  %d with a holder that came after the list; claims still in deletion: %d; missing in the record: %d`,
		r.Changes, r.Pods, r.Claims, r.Releases, r.Unanswered, r.Others, r.Lists, len(r.InUse), len(r.Unfounded), len(r.Stuck),
		len(r.Late), r.Terminating, len(r.Missing))
}
