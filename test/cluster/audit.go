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
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuditEvent is the part of an audit.k8s.io/v1 Event that tests look at. The type itself is in k8s.io/apiserver,
// which the operator does not depend on.
type AuditEvent struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`

	User struct {
		Username string `json:"username"`
	} `json:"user"`

	// ObjectRef is nil for requests that are not for a resource.
	ObjectRef *struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		UID         string `json:"uid"`
	} `json:"objectRef"`

	// ResponseStatus is nil in stages before the response.
	ResponseStatus *struct {
		Code   int32  `json:"code"`
		Reason string `json:"reason"`
	} `json:"responseStatus"`

	// RequestObject and ResponseObject are recorded by AuditRequestResponse.
	RequestObject  json.RawMessage `json:"requestObject"`
	ResponseObject json.RawMessage `json:"responseObject"`

	// RequestReceivedTimestamp is when the request came in, StageTimestamp when it reached the stage.
	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"`
	StageTimestamp           metav1.MicroTime `json:"stageTimestamp"`

	// Annotations tell among other things the authorizer's decision.
	Annotations map[string]string `json:"annotations"`
}

// Allowed tells whether the authorizer let the request pass.
func (e *AuditEvent) Allowed() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "allow"
}

// AuditLog returns the path of the audit log, one JSON object a line.
func (c *Cluster) AuditLog() string {
	return c.path("audit.log")
}

// AuditEvents calls yield with the events recorded so far, the oldest first, until it returns false. The API server
// records a request when it has answered it, so that the last one may be missing for a moment.
func (c *Cluster) AuditEvents(yield func(AuditEvent) bool) error {
	file, err := os.Open(c.AuditLog())
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read from
	return readAuditEvents(file, yield)
}

func readAuditEvents(log io.Reader, yield func(AuditEvent) bool) error {
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // a line without its end is still being written
		}
		if err != nil {
			return err
		}
		var event AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("audit event %q: %w", line, err)
		}
		if !yield(event) {
			return nil
		}
	}
}
