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

// Package rbac takes permissions out of the roles that the operator is installed with, to see what needs them. The
// command beside it, minimal, does so with each of them.
package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"pvc-protection-operator/test/harness"
)

// prefix is what config/default puts before the name of every role.
const prefix = "pvc-protection-operator-"

// Permission is one verb that a role allows for one thing.
type Permission struct {
	// Role is the name of the ClusterRole or Role in config/.
	Role string
	Verb string
	// Object is a resource, such as persistentvolumeclaims/status or events.events.k8s.io, or the path of a URL.
	Object string
}

// String is how Without and the command's arguments call the permission.
func (p Permission) String() string { return p.Role + ": " + p.Action() }

// Action is the permission without its role.
func (p Permission) Action() string { return p.Verb + " " + p.Object }

// Resource returns how a Permission calls a resource of an API group.
func Resource(group, resource string) string {
	return strings.TrimSuffix(resource+"."+group, ".")
}

// Of returns the permissions that the roles among the manifests allow.
func Of(manifests harness.Manifests) ([]Permission, error) {
	var permissions []Permission
	for _, object := range manifests {
		rules, err := rulesOf(object)
		if err != nil {
			return nil, err
		}
		for _, rule := range rules {
			permissions = append(permissions, rule.Permission)
		}
	}
	return permissions, nil
}

// Without returns the manifests with roles that lack the permission of that name.
func Without(manifests harness.Manifests, permission string) (harness.Manifests, error) {
	without := slices.Clone(manifests)
	for i, object := range manifests {
		rules, err := rulesOf(object)
		if err != nil {
			return nil, err
		}
		var left []any
		for _, rule := range rules {
			if rule.String() == permission {
				continue
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rule.policy)
			if err != nil {
				return nil, err
			}
			left = append(left, content)
		}
		if len(left) == len(rules) {
			continue
		}
		without[i] = object.DeepCopy()
		if err := unstructured.SetNestedSlice(without[i].Object, left, "rules"); err != nil {
			return nil, err
		}
	}
	return without, nil
}

// rule allows one permission. The objects it is limited to are those of the rule that it comes from.
type rule struct {
	Permission
	policy rbacv1.PolicyRule
}

// rulesOf takes the rules of a role apart. Other objects have none.
func rulesOf(object *unstructured.Unstructured) ([]rule, error) {
	if object.GroupVersionKind().Group != rbacv1.GroupName || !strings.HasSuffix(object.GetKind(), "Role") {
		return nil, nil
	}
	var role rbacv1.ClusterRole // a Role has the same rules
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	var rules []rule
	for _, whole := range role.Rules {
		for _, verb := range whole.Verbs {
			add := func(object string, part rbacv1.PolicyRule) {
				part.Verbs = []string{verb}
				permission := Permission{Role: strings.TrimPrefix(role.Name, prefix), Verb: verb, Object: object}
				rules = append(rules, rule{permission, part})
			}
			for _, group := range whole.APIGroups {
				for _, resource := range whole.Resources {
					add(Resource(group, resource), rbacv1.PolicyRule{
						APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: whole.ResourceNames,
					})
				}
			}
			for _, url := range whole.NonResourceURLs {
				add(url, rbacv1.PolicyRule{NonResourceURLs: []string{url}})
			}
		}
	}
	return rules, nil
}
