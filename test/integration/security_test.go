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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// TestMetricsProtocols offers protocols to an operator that serves its metrics as the Deployment has it.
func TestMetricsProtocols(t *testing.T) {
	e := newEnv(t)
	http := []string{"h2", "http/1.1"}
	args := []string{"--watch-namespaces=" + e.namespace, "--metrics-secure=true"}
	asDeployed := startOperator(t, harness.Options{Args: args}).MetricsAddress()
	withHTTP2 := startOperator(t, harness.Options{Args: append(args, "--enable-http2")}).MetricsAddress()
	for name, tc := range map[string]struct {
		address string
		offer   *tls.Config
		// protocol is what both sides settle on; refused means that they do not.
		protocol string
		refused  bool
	}{
		"TLS 1.1":                   {address: asDeployed, offer: &tls.Config{MaxVersion: tls.VersionTLS11}, refused: true},
		"TLS 1.2":                   {address: asDeployed, offer: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"TLS 1.3":                   {address: asDeployed, offer: &tls.Config{MinVersion: tls.VersionTLS13}},
		"HTTP/2 or 1.1":             {address: asDeployed, offer: &tls.Config{NextProtos: http}, protocol: "http/1.1"},
		"HTTP/2 or 1.1, if enabled": {address: withHTTP2, offer: &tls.Config{NextProtos: http}, protocol: "h2"},
		"HTTP/2 alone":              {address: asDeployed, offer: &tls.Config{NextProtos: []string{"h2"}}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.offer.MinVersion == 0 {
				tc.offer.MinVersion = tls.VersionTLS10 // a client of ours would not go below 1.2
			}
			e.eventually("the answer has to come", func(ctx context.Context) error {
				state, err := handshake(ctx, tc.address, tc.offer)
				var failed *net.OpError
				refused := errors.As(err, &failed) && failed.Op == "remote error" // which is what an alert is
				if err != nil && !refused {
					return err
				}
				if refused != tc.refused {
					t.Errorf("refused: %t, want %t: %v", refused, tc.refused, err)
				}
				if state.NegotiatedProtocol != tc.protocol {
					t.Errorf("got protocol %q, want %q", state.NegotiatedProtocol, tc.protocol)
				}
				return nil
			})
		})
	}
}

// TestMetricsCertificateIsReloaded replaces the certificate of an operator that runs, the way the kubelet updates the
// files of a Secret.
func TestMetricsCertificateIsReloaded(t *testing.T) {
	e := newEnv(t)
	dir := t.TempDir()
	old := writeCertificate(e, dir, "first")
	address := startOperator(t, harness.Options{Args: []string{
		"--watch-namespaces=" + e.namespace, "--metrics-secure=true", "--metrics-cert-path=" + dir,
	}}).MetricsAddress()
	serves := func(serial *big.Int) harness.Condition {
		return func(ctx context.Context) error {
			state, err := handshake(ctx, address, &tls.Config{})
			if err != nil {
				return err
			}
			if got := state.PeerCertificates[0].SerialNumber; got.Cmp(serial) != 0 {
				return fmt.Errorf("the certificate has serial number %s, want %s", got, serial)
			}
			return nil
		}
	}
	e.eventually("the certificate has to be served", serves(old))
	e.eventually("the new certificate has to be served", serves(writeCertificate(e, dir, "second")))
}

// handshake tells what the server and a client that offers this agree on. Whose certificate it is does not matter.
func handshake(ctx context.Context, address string, offer *tls.Config) (tls.ConnectionState, error) {
	offer.InsecureSkipVerify = true
	connection, err := (&tls.Dialer{Config: offer}).DialContext(ctx, "tcp", address)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	return connection.(*tls.Conn).ConnectionState(), connection.Close()
}

// writeCertificate makes a certificate, replaces the files in the folder by it at once, and returns its serial number.
func writeCertificate(e *env, dir, version string) *big.Int {
	e.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	e.fatalIf(err)
	e.fatalIf(os.Mkdir(filepath.Join(dir, version), 0o700))
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		e.fatalIf(os.WriteFile(filepath.Join(dir, version, name), content, 0o600))
		// The files are links through a link, which alone is replaced.
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); !errors.Is(err, os.ErrExist) {
			e.fatalIf(err)
		}
	}
	data := filepath.Join(dir, "..data")
	old, err := filepath.EvalSymlinks(data)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		e.Fatal(err)
	}
	e.fatalIf(os.Symlink(version, data+"_tmp"))
	e.fatalIf(os.Rename(data+"_tmp", data))
	if old != "" {
		e.fatalIf(os.RemoveAll(old))
	}
	certificates, err := cert.ParseCertsPEM(certificate)
	e.fatalIf(err)
	return certificates[0].SerialNumber
}

// TestNamespaceIsRestricted asks the API server for pods that lack one thing of what the Deployment's have
// (TestInstallAdmitsPods), which the Pod Security Standard "restricted" asks for.
func TestNamespaceIsRestricted(t *testing.T) {
	e := newEnv(t)
	for name, loosen := range map[string]func(*corev1.PodSpec, *corev1.SecurityContext){
		"as root": func(pod *corev1.PodSpec, _ *corev1.SecurityContext) { pod.SecurityContext.RunAsUser = new(int64(0)) },
		"as root or not": func(pod *corev1.PodSpec, _ *corev1.SecurityContext) {
			pod.SecurityContext.RunAsNonRoot = nil
		},
		"without seccomp": func(pod *corev1.PodSpec, _ *corev1.SecurityContext) { pod.SecurityContext.SeccompProfile = nil },
		"with capabilities": func(_ *corev1.PodSpec, container *corev1.SecurityContext) {
			container.Capabilities = nil
		},
		"with more privileges": func(_ *corev1.PodSpec, container *corev1.SecurityContext) {
			container.AllowPrivilegeEscalation = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := deployment(t).Spec.Template
			pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			pod.Namespace, pod.GenerateName = harness.Namespace, "loose-"
			loosen(&pod.Spec, pod.Spec.Containers[0].SecurityContext)
			err := suite.admin.Create(e.Context(), pod, client.DryRunAll)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
				t.Errorf("got error %v, want the pod to be refused", err)
			}
		})
	}
	// The standard does not ask for this.
	container := deployment(t).Spec.Template.Spec.Containers[0]
	if readOnly := container.SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		t.Error("the operator may write to its root file system")
	}
}
