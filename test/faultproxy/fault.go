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

package faultproxy

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

var errCut = errors.New("cut by a fault")

// Fault is what happens to a request. The zero value is no fault.
type Fault struct {
	// before is called before the server sees the request, and returns true if that is the end of it.
	before func(http.ResponseWriter, *http.Request, Request) bool
	// after is called when the server has answered.
	after func(*http.Response, Request) error
}

// Answer returns a fault that answers with an error status, as the API server would word it, in place of the API
// server, which does not see the request.
func Answer(code int) Fault {
	return AnswerRetryAfter(code, 0)
}

// AnswerRetryAfter returns a fault as Answer does, whose answer has a Retry-After header of so many seconds, rounded up.
func AnswerRetryAfter(code int, retryAfter time.Duration) Fault {
	seconds := int(math.Ceil(retryAfter.Seconds()))
	return Fault{before: func(w http.ResponseWriter, r *http.Request, request Request) bool {
		resource := schema.GroupResource{Group: request.Group, Resource: request.Resource}
		err := apierrors.NewGenericServerResponse(
			code, r.Method, resource, request.Name, "answered by a fault", seconds, false)
		if code == http.StatusGone {
			err = errExpired()
		}
		if seconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
		}
		writeStatus(w, err)
		return true
	}}
}

// Expired returns a fault that tells clients that the resource version from which they want to go on is too old: on a
// watch in an event, as the API server does, and in the status code of other requests.
func Expired() Fault {
	return Fault{before: func(w http.ResponseWriter, r *http.Request, request Request) bool {
		if request.Verb == verbWatch {
			writeErrorEvent(w, r.Header.Get("Accept"), errExpired())
		} else {
			writeStatus(w, errExpired())
		}
		return true
	}}
}

// Reset returns a fault that resets the connection. The server does not see the request.
//
// With HTTP/2, a client has one connection for many requests: all that are in progress on it end, watches included. A
// client that was about to write on it may see an unexpected EOF instead of the reset.
func Reset() Fault {
	return Fault{before: func(_ http.ResponseWriter, r *http.Request, _ Request) bool {
		resetConnection(r.Context())
		return true
	}}
}

// Cut returns a fault that breaks the server's answer off after so many bytes of its body, or at its end if it is
// shorter. The server has seen the request, and has done what it asks for. For 0 bytes, nothing of the answer reaches
// the client, not even its status code.
//
// The bytes are those on the wire: lists of some size are compressed, unless the client is configured not to ask for
// it. With HTTP/2, other requests on the same connection go on.
func Cut(bytes int64) Fault {
	return Fault{after: func(response *http.Response, _ Request) error {
		if bytes == 0 {
			return errCut
		}
		response.Body = replaceBody(response.Body, io.MultiReader(io.LimitReader(response.Body, bytes), brokenReader{errCut}))
		return nil
	}}
}

func errExpired() *apierrors.StatusError {
	return apierrors.NewResourceExpired("too old resource version: expired by a fault")
}

func writeStatus(w http.ResponseWriter, err *apierrors.StatusError) {
	status := asObject(err)
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(int(status.Code))
	// The client may have gone, which is no matter.
	_ = json.NewEncoder(w).Encode(status)
}

// writeErrorEvent writes a watch that consists of an error, in the first format of the Accept header that is known.
func writeErrorEvent(w http.ResponseWriter, accept string, err *apierrors.StatusError) {
	known := scheme.Codecs.SupportedMediaTypes()
	info, _ := runtime.SerializerInfoForMediaType(known, runtime.ContentTypeJSON)
	contentType := runtime.ContentTypeJSON
	for accepted := range strings.SplitSeq(accept, ",") {
		mediaType, _, _ := mime.ParseMediaType(accepted)
		if found, ok := runtime.SerializerInfoForMediaType(known, mediaType); ok && found.StreamSerializer != nil {
			info = found
			if contentType = mediaType; mediaType != runtime.ContentTypeJSON {
				contentType += ";stream=watch"
			}
			break
		}
	}

	w.Header().Set("Content-Type", contentType)
	version := schema.GroupVersion{Version: "v1"}
	encoder := restwatch.NewEncoder(
		streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(w),
			scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, version)),
		scheme.Codecs.EncoderForVersion(info.Serializer, version))
	// The client may have gone, which is no matter.
	_ = encoder.Encode(&watch.Event{Type: watch.Error, Object: asObject(err)})
}

func asObject(err *apierrors.StatusError) *metav1.Status {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}

// brokenReader fails.
type brokenReader struct {
	err error
}

func (r brokenReader) Read([]byte) (int, error) {
	return 0, r.err
}
