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
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

const (
	verbList  = "list"
	verbWatch = "watch"
)

// resolver understands requests as the API server does.
var resolver = &apirequest.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// Page says which part of a list a request asks for.
type Page int

const (
	// AnyPage selects all requests, also those that are no lists.
	AnyPage Page = iota
	// Unpaged is a list without a limit.
	Unpaged
	// FirstPage is a list with a limit, from its beginning.
	FirstPage
	// LaterPage is a list that goes on from an earlier page.
	LaterPage
)

// Request is what the proxy knows of a request.
type Request struct {
	// Verb is the verb as in RBAC, such as "list" or "deletecollection". It is empty for requests that are not for
	// resources, such as discovery.
	Verb string

	// Group is the API group.
	Group string

	// Resource is the resource as in RBAC, with its subresource if there is one, such as "pods/eviction".
	Resource string

	// Namespace is empty for resources without one and for requests across all of them.
	Namespace string

	// Name is empty for lists and watches, unless they select it by field, and for most creations.
	Name string

	// Path is the path of requests that are not for resources, and empty for others.
	Path string

	// Page says which part of a list is asked for. It is AnyPage for requests that are no lists.
	Page Page

	// Resumed is true for a watch that goes on from a resource version, and false for one that begins with what exists.
	Resumed bool

	UserAgent string
}

// Match selects requests. Fields that are left empty select all. Requests that are not for resources are selected by
// UserAgent and Where only.
type Match struct {
	// Verb, Resource, Namespace and Name are as in Request. A Resource does not select its subresources, and a Namespace
	// does not select requests across all of them.
	Verb      string
	Resource  string
	Namespace string
	Name      string

	Page Page

	// UserAgent is a part of the user agent.
	UserAgent string

	// Where selects by anything else. It is called with locks held and must not call the Proxy.
	Where func(Request) bool
}

func (m Match) matches(r Request) bool {
	return isOrAny(m.Verb, r.Verb) &&
		isOrAny(m.Resource, r.Resource) &&
		isOrAny(m.Namespace, r.Namespace) &&
		isOrAny(m.Name, r.Name) &&
		isOrAny(m.Page, r.Page) &&
		strings.Contains(r.UserAgent, m.UserAgent) &&
		(m.Where == nil || m.Where(r))
}

// isOrAny returns whether the value is the wanted one, if there is one.
func isOrAny[T comparable](wanted, value T) bool {
	var anything T
	return wanted == anything || wanted == value
}

func parse(r *http.Request) Request {
	request := Request{UserAgent: r.UserAgent()}
	// In the face of an error, which is the server's to report, this is what is known.
	info, _ := resolver.NewRequestInfo(r)
	if !info.IsResourceRequest {
		request.Path = info.Path
		return request
	}
	request.Verb, request.Group, request.Resource = info.Verb, info.APIGroup, info.Resource
	request.Namespace, request.Name = info.Namespace, info.Name
	if info.Subresource != "" {
		request.Resource += "/" + info.Subresource
	}

	query := r.URL.Query()
	switch request.Verb {
	case verbList:
		switch {
		case query.Get("continue") != "":
			request.Page = LaterPage
		case query.Get("limit") != "" && query.Get("limit") != "0":
			request.Page = FirstPage
		default:
			request.Page = Unpaged
		}
	case verbWatch:
		version := query.Get("resourceVersion")
		request.Resumed = version != "" && version != "0" && query.Get("sendInitialEvents") != "true"
	}
	return request
}
