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

package integration_test

import (
	"context"
	"flag"
	"net/http"
	"os"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
	"pvc-protection-operator/test/rbac"
)

// withoutVariable is set by test/rbac/minimal. It names the permission that the installation lacks in this run, or none
// that there is.
const withoutVariable = "RBAC_WITHOUT"

func withoutPermission() bool { return os.Getenv(withoutVariable) != "" }

// render is harness.Render without that permission.
func render(dir string) (harness.Manifests, error) {
	manifests, err := harness.Render(dir)
	if err != nil {
		return nil, err
	}
	return rbac.Without(manifests, os.Getenv(withoutVariable))
}

// dontTell keeps the operator from asking the API server which permissions it lacks: it would not even start without
// those that it asks for, whether it uses them or not.
func dontTell(ctx context.Context) error {
	if !withoutPermission() {
		return nil
	}
	var binding rbacv1.ClusterRoleBinding
	if err := suite.admin.Get(ctx, client.ObjectKey{Name: "system:basic-user"}, &binding); err != nil {
		return err
	}
	binding.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false" // or an API server that restarts puts it right
	binding.Subjects = nil
	return suite.admin.Update(ctx, &binding)
}

// allTests tells whether no test was left out, but for those that test/rbac/minimal cannot use.
func allTests() bool {
	isSet := func(name string) bool { return flag.Lookup(name).Value.String() != "" }
	return !isSet("test.run") && (!isSet("test.skip") || withoutPermission())
}

// TestServerWithoutWatchLists has an API server that does not know watch lists, or has them switched off: informers have
// to list what there is.
func TestServerWithoutWatchLists(t *testing.T) {
	e := newEnv(t)
	old := harness.Claim(e.namespace, "old")
	e.create(old)
	behindProxy(e, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isFirstWatch(r) {
				refuse(w, http.StatusUnprocessableEntity, "Invalid")
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	e.protected(old)
	claim := e.claim("data")
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim, old)
	e.gone(old)
	e.held(claim)
	e.kill(pod)
	e.gone(claim)
}
