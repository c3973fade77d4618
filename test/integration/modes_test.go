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
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/harness"
)

// replaceModes and besideModes are what the tests install: every overlay, what docs/install.md shows, and every pair of
// options (TestCombinationsAreTested).
var replaceModes = []mode{
	{overlay: "replace"},
	{
		overlay: "replace",
		components: []string{
			"namespaced", "single-replica", "network-policy", "prometheus", "grafana", "metrics-certificate",
			"no-unused-condition",
		},
		namespace: "team-b",
	},
}

var besideModes = []mode{
	{overlay: "beside-without-admission", drain: drainFromHost},
	{overlay: "beside", drain: drainInCluster},
	{
		overlay: "beside", components: []string{"namespaced", "single-replica"},
		namespace: "team-a", drain: drainFromHost,
	},
	{
		overlay:    "beside",
		components: []string{"network-policy", "grafana", "metrics-certificate", "no-unused-condition"},
		drain:      drainInCluster,
	},
	{
		overlay: "beside", components: []string{"namespaced", "prometheus", "grafana", "metrics-certificate"},
		namespace: "team-b", drain: drainInCluster,
	},
	{
		overlay:    "beside-without-admission",
		components: []string{"single-replica", "prometheus", "metrics-certificate", "no-unused-condition"},
		drain:      drainFromHost,
	},
	{
		overlay: "beside-without-admission", components: []string{"namespaced", "network-policy", "prometheus", "grafana"},
		namespace: "team-a", drain: drainInCluster,
	},
	{
		overlay:    "beside-without-admission",
		components: []string{"namespaced", "single-replica", "network-policy", "no-unused-condition"},
		namespace:  "team-b", drain: drainFromHost,
	},
}

// TestReplace has clusters whose in-tree controller is switched off.
func TestReplace(t *testing.T) {
	onCluster(t, "*,-persistentvolumeclaim-protection-controller")
	for _, m := range replaceModes {
		m.finalizer, m.admission = harness.Finalizer, true
		t.Run(m.name(), func(t *testing.T) { testMode(t, &m) })
	}
}

// TestBeside has clusters with their in-tree controller at work.
func TestBeside(t *testing.T) {
	onCluster(t, "*")
	for _, m := range besideModes {
		m.finalizer, m.admission = besideFinalizer, m.overlay == "beside"
		t.Run(m.name(), func(t *testing.T) {
			if m.admission && !servesPolicies(t) {
				t.Skip("the API server has no MutatingAdmissionPolicies v1")
			}
			testMode(t, &m)
		})
	}
}

// testMode installs, protects, releases and uninstalls.
func testMode(t *testing.T, m *mode) {
	e := newEnv(t)
	for _, name := range []string{"team-a", "team-b"} {
		err := suite.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	elsewhere := e.namespace
	if m.namespace != "" {
		e.namespace = m.namespace
	}
	manifests := installMode(e, m)
	o := startMode(e, manifests)

	if m.admission {
		admits(e, m.finalizer)
	}
	if m.namespace != "" {
		for _, subresource := range []string{"", "status"} {
			if mayPatch(e, elsewhere, subresource) == nil {
				t.Errorf("the operator may patch claims everywhere, subresource %q", subresource)
			}
		}
		outside := harness.Claim(elsewhere, "outside")
		e.create(outside)
		e.fatalIf(exists(t.Context(), outside, true))
		if m.finalizer == besideFinalizer && slices.Contains(outside.Finalizers, m.finalizer) {
			t.Error("a claim that nobody serves has got the finalizer")
		}
	}
	claim, stays := harness.Claim(e.namespace, "data"), harness.Claim(e.namespace, "stays")
	e.create(claim)
	e.create(stays)
	for _, c := range []*corev1.PersistentVolumeClaim{claim, stays} {
		e.eventually("the claim has to be protected", func(ctx context.Context) error { return e.hasFinalizer(ctx, c, m.finalizer) })
	}
	e.eventually("the default ServiceAccount has to be there", func(ctx context.Context) error {
		return suite.admin.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	pod := e.pod("web", harness.OnNode(node), harness.WithClaim("data"))
	e.delete(claim)
	e.saysBlocked(claim, "web")
	e.fatalIf(e.hasFinalizer(t.Context(), claim, m.finalizer))
	e.kill(pod)
	e.gone(claim)

	if m.drain != nil {
		m.drain(e, m, manifests, o)
		noneHas(e, m.finalizer)
	}
	uninstall(e, manifests)
	nothingLeft(e)
	e.fatalIf(exists(t.Context(), stays, true))
	if len(stays.Finalizers) != 1 || stays.Finalizers[0] != harness.Finalizer {
		t.Errorf("a claim is left with the finalizers %q", stays.Finalizers)
	}
	e.fatalIf(suite.admin.DeleteAllOf(t.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(e.namespace)))
	if m.finalizer == besideFinalizer {
		e.gone(stays)
	} else {
		e.removeFinalizer(stays, harness.Finalizer) // nobody serves it here
	}
}

// TestOverlaysAreTested has a look at what else there is to install. "mine" is what docs/install.md calls a user's own.
func TestOverlaysAreTested(t *testing.T) {
	root, err := harness.ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	overlays, err := os.ReadDir(filepath.Join(root, "config", "overlays"))
	if err != nil {
		t.Fatal(err)
	}
	for _, overlay := range overlays {
		if !slices.Contains([]string{"replace", "beside", "beside-without-admission", "drain", "mine"}, overlay.Name()) {
			t.Errorf("no test installs the overlay %s", overlay.Name())
		}
	}
}

// TestAdmissionNeedsFinalizer has a user who adds the admission policy to a finalizer that is not the operator's own.
func TestAdmissionNeedsFinalizer(t *testing.T) {
	root, err := harness.ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.CopyFS(config, os.DirFS(filepath.Join(root, "config"))); err != nil {
		t.Fatal(err)
	}
	const kustomization = "resources: [../../default]\ncomponents: [../../admission]\n"
	file := filepath.Join(config, "overlays", "replace", "kustomization.yaml")
	if err := os.WriteFile(file, []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := harness.Render(filepath.Dir(file)); err == nil || !strings.Contains(err.Error(), "finalizer") {
		t.Errorf("the error is %v", err)
	}
}

// TestMetricsCertificate has a certificate as cert-manager makes it, and a scraper as the ServiceMonitor tells Prometheus
// to be one.
func TestMetricsCertificate(t *testing.T) {
	e := newEnv(t)
	manifests := renderMode(e, &mode{overlay: "replace", components: []string{"prometheus", "metrics-certificate"}})
	field := func(kind string, path ...string) string {
		t.Helper()
		var object map[string]any
		var all harness.Manifests
		for _, candidate := range manifests {
			if candidate.GetKind() == kind {
				all, object = append(all, candidate), candidate.Object
			}
		}
		value, found, err := unstructured.NestedString(object, path...)
		if len(all) != 1 || !found || err != nil {
			t.Fatalf("%s %v: %d objects, %v", kind, path, len(all), err)
		}
		return value
	}
	list := func(object map[string]any, path ...string) []any {
		t.Helper()
		value, _, err := unstructured.NestedSlice(object, path...)
		e.fatalIf(err)
		return value
	}
	var d appsv1.Deployment
	e.fatalIf(manifests.Decode("Deployment", &d))
	volumes := d.Spec.Template.Spec.Volumes
	secret := field("Certificate", "spec", "secretName")
	if len(volumes) != 1 || volumes[0].Secret == nil || volumes[0].Secret.SecretName != secret {
		t.Fatalf("the volumes are %+v, want Secret %s", volumes, secret)
	}
	if field("Certificate", "spec", "issuerRef", "name") != field("Issuer", "metadata", "name") {
		t.Error("the Certificate is not from the Issuer")
	}
	var names []string
	var tlsConfig map[string]any
	for _, object := range manifests {
		switch object.GetKind() {
		case "Certificate":
			for _, name := range list(object.Object, "spec", "dnsNames") {
				names = append(names, name.(string))
			}
		case "ServiceMonitor":
			tlsConfig = list(object.Object, "spec", "endpoints")[0].(map[string]any)["tlsConfig"].(map[string]any)
		}
	}
	if service := field("Service", "metadata", "name") + "." + harness.Namespace + ".svc"; names[0] != service {
		t.Errorf("the certificate is for %q, the Service is %s", names, service)
	}

	// The kubelet's part, and cert-manager's.
	dir := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey(names[0], nil, names)
	e.fatalIf(err)
	for _, item := range volumes[0].Secret.Items {
		content := map[string][]byte{"tls.crt": certificate, "tls.key": key}[item.Key]
		e.fatalIf(os.WriteFile(filepath.Join(dir, item.Path), content, 0o600))
	}
	container := d.Spec.Template.Spec.Containers[0]
	certPath := "--metrics-cert-path=" + container.VolumeMounts[0].MountPath
	if !slices.Contains(container.Args, certPath) {
		t.Fatalf("the arguments are %q, want %s", container.Args, certPath)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	e.fatalIf(err)
	address := listener.Addr().String()
	e.fatalIf(listener.Close())
	startOperator(t, harness.Options{Args: []string{
		"--metrics-bind-address=" + address, "--metrics-secure=true", "--metrics-cert-path=" + dir,
	}})

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	scraper := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: tlsConfig["serverName"].(string), MinVersion: tls.VersionTLS12,
	}}}
	e.eventually("the certificate has to be the right one", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
		if err != nil {
			return err
		}
		response, err := scraper.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	if tlsConfig["insecureSkipVerify"] != nil {
		t.Error("the ServiceMonitor does not verify the certificate")
	}
}
