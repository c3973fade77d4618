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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// needed are the permissions without which the operator does nothing useful. They
// are the kubebuilder:rbac markers of PersistentVolumeClaimReconciler, less
// events: without those it works, but cannot say why.
var needed = []struct{ verb, resource string }{
	{"list", "persistentvolumeclaims"}, {"watch", "persistentvolumeclaims"}, {"patch", "persistentvolumeclaims"},
	{"list", "pods"}, {"watch", "pods"},
}

// CheckAccess asks the API server whether this process may do its work in the
// given namespaces or, if there are none, in all. The error says what is missing;
// without this check, informers would wait for the permission forever.
//
// A server that does not let the process ask (403) is not an error: then the work
// itself will show.
func CheckAccess(ctx context.Context, c client.Client, namespaces ...string) error {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var missing []string
	for _, namespace := range namespaces {
		for _, permission := range needed {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: permission.verb, Resource: permission.resource,
				},
			}}
			switch err := c.Create(ctx, review); {
			case apierrors.IsForbidden(err):
				return nil
			case apierrors.IsUnauthorized(err):
				return fmt.Errorf("the API server does not accept the credentials (401), "+
					"check the token or client certificate of the kubeconfig or ServiceAccount: %w", err)
			case err != nil:
				return fmt.Errorf("the API server does not answer, check the address of the kubeconfig and the network: %w", err)
			case !review.Status.Allowed:
				missing = append(missing, permission.verb+" "+permission.resource+where(namespace))
			}
		}
	}
	if len(missing) > 0 {
		return errors.New("RBAC permissions are missing: " + strings.Join(missing, ", ") +
			"; bind the ClusterRole of config/rbac to the ServiceAccount, or name the permitted namespaces in --watch-namespaces")
	}
	return nil
}

func where(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return " in all namespaces"
	}
	return " in namespace " + namespace
}
