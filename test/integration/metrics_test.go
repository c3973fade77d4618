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
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pvc-protection-operator/test/harness"
)

// TestMetricsAreForReaders asks for the metrics as different callers, of an operator that serves them as the Deployment
// has it.
func TestMetricsAreForReaders(t *testing.T) {
	e := newEnv(t)
	o := startOperator(t, harness.Options{Args: []string{"--metrics-secure=true"}})
	reader, stranger := e.serviceAccount("reader"), e.serviceAccount("stranger")
	e.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "metrics-reader-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: harness.MetricsReaderRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.namespace, Name: reader.Name}},
	})

	for name, tc := range map[string]struct {
		token string
		want  []int
	}{
		"anonymous": {"", []int{http.StatusUnauthorized}},
		// controller-runtime takes the API server's reason for a failure of its own.
		"an invented token":  {"invented", []int{http.StatusUnauthorized, http.StatusInternalServerError}},
		"without permission": {e.token(stranger), []int{http.StatusForbidden}},
		"with permission":    {e.token(reader), []int{http.StatusOK}},
	} {
		t.Run(name, func(t *testing.T) {
			var code int
			var body string
			e.eventually("the operator has to serve metrics", func(ctx context.Context) (err error) {
				code, body, err = getMetrics(ctx, o.MetricsAddress(), tc.token)
				return err
			})
			if !slices.Contains(tc.want, code) {
				t.Errorf("got code %d, want %d: %s", code, tc.want, body)
			}
			if has := strings.Contains(body, "\npvc_protection_live_lists_total"); has != (code == http.StatusOK) {
				t.Errorf("the answer has the operator's metrics: %t", has)
			}
		})
	}
}

// TestProfiles asks for a profile of an operator that offers them, which none does unless it is told to.
func TestProfiles(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	e := newEnv(t)
	startOperator(t, harness.Options{Args: []string{"--watch-namespaces=" + e.namespace, "--pprof-bind-address=" + address}})
	e.eventually("the operator has to serve profiles", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/heap", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("the answer has code %d", response.StatusCode)
		}
		return errors.Join(err, response.Body.Close())
	})
}

func getMetrics(ctx context.Context, address, token string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		// The operator makes its certificate itself.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), errors.Join(err, response.Body.Close())
}

// serviceAccount creates a ServiceAccount that may do nothing.
func (e *env) serviceAccount(name string) *corev1.ServiceAccount {
	e.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}}
	e.create(account)
	return account
}

// token returns a token of the ServiceAccount.
func (e *env) token(account *corev1.ServiceAccount) string {
	e.Helper()
	config, err := suite.cluster.ServiceAccountConfig(e.Context(), account.Namespace, account.Name)
	e.fatalIf(err)
	return config.BearerToken
}

// bind lets the ServiceAccount do in the test's namespace what a ClusterRole allows.
func (e *env) bind(account *corev1.ServiceAccount, clusterRole string) {
	e.Helper()
	e.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: fmt.Sprintf("%s-%s", account.Name, clusterRole)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	})
}
