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

package fault_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

// TestUnauthorized has an API server that does not know the operator for a while.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 2)
	b := e.backlog(100)
	e.start("--recheck-interval=1h")
	gate := e.proxy.HoldResponses(patches(""))
	e.deleteBacklog(b)
	e.waiting(gate, 1)
	rule := e.proxy.Add(faultproxy.Rule{Fault: faultproxy.Answer(http.StatusUnauthorized)})
	e.proxy.EndWatches(faultproxy.Match{})
	gate.Release()
	e.hits(rule, 30)
	rule.Remove()
	e.released(b)
}

// TestTokenRenewed has a token that becomes invalid, and is replaced in its file some time after that.
func TestTokenRenewed(t *testing.T) {
	t.Parallel()
	e := newEnv(t, 2)
	b := e.backlog(100)
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: harness.Namespace, GenerateName: "token-"}}
	e.create(secret)
	old := e.token(&authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID,
	})
	e.fatalIf(os.WriteFile(file, []byte(old), 0o600))
	kubeconfig, err := clientcmd.LoadFromFile(e.kubeconfig)
	e.fatalIf(err)
	for _, user := range kubeconfig.AuthInfos {
		user.Token, user.TokenFile = "", file
	}
	withFile := filepath.Join(dir, "kubeconfig")
	e.fatalIf(clientcmd.WriteToFile(*kubeconfig, withFile))
	e.startAs(e.proxy, withFile, "--recheck-interval=1h")

	gate := e.proxy.HoldRequests(patches(""))
	e.deleteBacklog(b)
	e.waiting(gate, 1)
	e.delete(secret)
	e.unauthorized(old)
	e.proxy.EndWatches(faultproxy.Match{})
	attempts := e.proxy.Add(faultproxy.Rule{})
	gate.Release()
	e.hits(attempts, 30)
	e.fatalIf(e.protected(t.Context(), append(b.used, b.free...)...))

	e.fatalIf(os.WriteFile(file, []byte(e.token(nil)), 0o600))
	e.released(b)
}

// token requests a token of the operator's ServiceAccount that is good for as long as the object exists.
func (e *env) token(boundTo *authenticationv1.BoundObjectReference) string {
	e.Helper()
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: harness.Namespace, Name: harness.ServiceAccount},
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: boundTo}}
	e.fatalIf(e.admin.SubResource("token").Create(e.Context(), account, request))
	return request.Status.Token
}

// unauthorized waits until the API server does not accept the token any more.
func (e *env) unauthorized(token string) {
	e.Helper()
	config := rest.AnonymousClientConfig(e.cluster.Config())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	e.fatalIf(err)
	e.eventually("the token has to become invalid", func(ctx context.Context) error {
		_, err := client.CoreV1().PersistentVolumeClaims(e.namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			return errors.New("it is valid")
		}
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		return err
	})
}
