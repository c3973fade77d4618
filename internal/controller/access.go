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

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// claimsResource is what the API server calls claims.
const claimsResource = "persistentvolumeclaims"

// Permission is an action that an operator must be allowed to do.
type Permission = authorizationv1.ResourceAttributes

// Permissions returns what the operator needs to do its work in the given
// namespaces or, if there are none, in all. They are the kubebuilder:rbac markers
// of PersistentVolumeClaimReconciler, less events: without those it works, but
// cannot say why.
func Permissions(namespaces ...string) []Permission {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	needed := make([]Permission, 0, 5*len(namespaces))
	for _, namespace := range namespaces {
		needed = append(needed,
			Permission{Namespace: namespace, Verb: "list", Resource: claimsResource},
			Permission{Namespace: namespace, Verb: "watch", Resource: claimsResource},
			Permission{Namespace: namespace, Verb: "patch", Resource: claimsResource},
			Permission{Namespace: namespace, Verb: "list", Resource: "pods"},
			Permission{Namespace: namespace, Verb: "watch", Resource: "pods"},
		)
	}
	return needed
}

// LeasePermissions returns what leader election needs for the lease.
func LeasePermissions(namespace, name string) []Permission {
	const group, resource = "coordination.k8s.io", "leases"
	return []Permission{
		{Namespace: namespace, Verb: "create", Group: group, Resource: resource},
		{Namespace: namespace, Verb: "get", Group: group, Resource: resource, Name: name},
		{Namespace: namespace, Verb: "update", Group: group, Resource: resource, Name: name},
	}
}

// CheckAccess asks the API server whether this process has the permissions. The
// error says which are missing; without this check, informers and leader election
// would wait for them forever.
//
// A server that does not let the process ask (403), which the default RBAC does, is
// an error only if it does not let it list claims either.
func CheckAccess(ctx context.Context, c kubernetes.Interface, permissions []Permission) error {
	var missing []string
	for _, permission := range permissions {
		review, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &permission},
		}, metav1.CreateOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return checkList(ctx, c, permissions[0].Namespace)
		case apierrors.IsUnauthorized(err):
			return fmt.Errorf("the API server does not accept the credentials (401), "+
				"check the token or client certificate of the kubeconfig or ServiceAccount: %w", err)
		case err != nil:
			return fmt.Errorf("the API server does not answer, check the address of the kubeconfig and the network: %w", err)
		case !review.Status.Allowed:
			missing = append(missing, describePermission(permission))
		}
	}
	if len(missing) > 0 {
		return errors.New("RBAC permissions are missing: " + strings.Join(missing, ", ") +
			"; bind the roles of config/rbac to the ServiceAccount, or name the permitted namespaces in --watch-namespaces")
	}
	return nil
}

func checkList(ctx context.Context, c kubernetes.Interface, namespace string) error {
	_, err := c.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("the API server refuses the operator (403), check its identity and the roles of config/rbac: %w", err)
	}
	return nil
}

func describePermission(p Permission) string {
	where := " in namespace " + p.Namespace
	if p.Namespace == metav1.NamespaceAll {
		where = " in all namespaces"
	}
	what := p.Resource
	if p.Subresource != "" {
		what += "/" + p.Subresource
	}
	if p.Group != "" {
		what += "." + p.Group
	}
	if p.Name != "" {
		what += " " + p.Name
	}
	return p.Verb + " " + what + where
}
