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

package faultproxy_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestConfig(t *testing.T) {
	f := newFixture(t)
	base := f.backend.config()
	base.QPS, base.Burst = 7, 11
	base.ContentType = "application/vnd.kubernetes.protobuf"
	base.ServerName = "something else"

	config, err := f.proxy.Config(base)
	must(t, err)
	if config.QPS != 7 || config.Burst != 11 || config.ContentType != base.ContentType || config.BearerToken != token {
		t.Errorf("not equal to its base: %v", config)
	}
	if base.Host != f.backend.URL || base.ServerName == "" {
		t.Errorf("the base has changed: %v", base)
	}
	f.use(config)
	f.wantBody(f.get(podsOfA))
	if f.proxy.Count(pods) != 1 {
		t.Error("the request has not gone through the proxy")
	}
}

func TestWriteKubeconfig(t *testing.T) {
	f := newFixture(t)
	dir, otherDir := t.TempDir(), t.TempDir()
	source, target := filepath.Join(dir, "kubeconfig"), filepath.Join(otherDir, "kubeconfig")
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("first"), 0o600))
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			"used": {
				Server: f.backend.URL, CertificateAuthority: "nothing", InsecureSkipTLSVerify: true,
				TLSServerName: "something else", ProxyURL: "http://127.0.0.1:1",
			},
			"unused": {Server: "https://elsewhere"},
		},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"user": {TokenFile: "token"}},
		Contexts:       map[string]*clientcmdapi.Context{"context": {Cluster: "used", AuthInfo: "user", Namespace: "a"}},
		CurrentContext: "context",
	}, source))

	must(t, f.proxy.WriteKubeconfig(source, target))
	config, err := clientcmd.BuildConfigFromFlags("", target)
	must(t, err)
	f.use(config)
	f.wantBody(f.get(podsOfA))
	if got := f.backend.seen()[0].Header.Get("Authorization"); got != "Bearer first" {
		t.Errorf("the server got credentials %q", got)
	}
	if f.proxy.Count(pods) != 1 {
		t.Error("the request has not gone through the proxy")
	}
	// The file of the token is still the one that somebody renews.
	if want := filepath.Join(dir, "token"); config.BearerTokenFile != want {
		t.Errorf("token file %s, want %s", config.BearerTokenFile, want)
	}
	kubeconfig, err := clientcmd.LoadFromFile(target)
	must(t, err)
	if server := kubeconfig.Clusters["unused"].Server; server != "https://elsewhere" {
		t.Errorf("the other cluster's server is %s", server)
	}
	if namespace := kubeconfig.Contexts["context"].Namespace; namespace != "a" {
		t.Errorf("the namespace is %q", namespace)
	}
}

func TestClientCertificatesAreRefused(t *testing.T) {
	f := newFixture(t)
	for _, certificate := range []rest.TLSClientConfig{{CertFile: "certificate"}, {CertData: []byte("certificate")}} {
		if _, err := f.proxy.Config(&rest.Config{TLSClientConfig: certificate}); err == nil {
			t.Errorf("no error for %v", certificate)
		}
		source := filepath.Join(t.TempDir(), "kubeconfig")
		must(t, clientcmd.WriteToFile(clientcmdapi.Config{
			Clusters: map[string]*clientcmdapi.Cluster{"cluster": {}},
			AuthInfos: map[string]*clientcmdapi.AuthInfo{"user": {
				ClientCertificate: certificate.CertFile, ClientCertificateData: certificate.CertData,
			}},
			Contexts:       map[string]*clientcmdapi.Context{"context": {Cluster: "cluster", AuthInfo: "user"}},
			CurrentContext: "context",
		}, source))
		if err := f.proxy.WriteKubeconfig(source, source+"-target"); err == nil {
			t.Errorf("no error for a kubeconfig with %v", certificate)
		}
	}
}

func TestKubeconfigsThatLeadNowhere(t *testing.T) {
	f := newFixture(t)
	source := filepath.Join(t.TempDir(), "kubeconfig")
	for name, kubeconfig := range map[string]*clientcmdapi.Config{
		"no file":    nil,
		"no context": {CurrentContext: "context"},
		"no cluster": {
			AuthInfos:      map[string]*clientcmdapi.AuthInfo{"user": {}},
			Contexts:       map[string]*clientcmdapi.Context{"context": {Cluster: "cluster", AuthInfo: "user"}},
			CurrentContext: "context",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if kubeconfig != nil {
				must(t, clientcmd.WriteToFile(*kubeconfig, source))
				defer func() { must(t, os.Remove(source)) }()
			}
			if err := f.proxy.WriteKubeconfig(source, source+"-target"); err == nil {
				t.Error("no error")
			}
		})
	}
}

// An HTTP/1.1 client, such as kubectl exec, is served as well.
func TestHTTP1(t *testing.T) {
	f := newFixture(t)
	f.useHTTP1()
	got := f.do(f.ctx, http.MethodPost, podsOfA, "content")
	f.wantBody(got)
	if got.proto != 1 {
		t.Errorf("HTTP/%d, want HTTP/1.1", got.proto)
	}

	// While a request of HTTP/1.1 is not read to its end, nobody notices that the connection is closed.
	gate := f.proxy.HoldRequests(pods)
	answers := make(chan answer, 1)
	go func() { answers <- f.do(f.ctx, http.MethodPost, podsOfA, "content") }()
	must(t, gate.Waiting(f.ctx, 1))
	must(t, f.proxy.Close())
	if got := <-answers; got.err == nil {
		t.Errorf("got an answer: %v", got)
	}
}
