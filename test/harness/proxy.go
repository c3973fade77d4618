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

package harness

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

// Proxy stands between a client and the API server, and lets a test hold back, change or refuse what passes. The
// client keeps its own credentials, which must be a token.
type Proxy struct {
	server   *http.Server
	listener net.Listener
	// certificate is the proxy's own, and its authority: clients send tokens by TLS only.
	certificate []byte
}

// StartProxy starts a proxy to the API server of the configuration. Every request goes through the handler that wrap
// returns; the one that it is given passes the request on.
func StartProxy(config *rest.Config, wrap func(next http.Handler) http.Handler) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	silent := log.New(io.Discard, "", 0) // clients that go away are no news
	p := &Proxy{listener: listener, certificate: certificate, server: &http.Server{
		ErrorLog:  silent,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		Handler: wrap(&httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1, // watches
			ErrorLog:      silent,
		}),
	}}
	go func() { _ = p.server.ServeTLS(listener, "", "") }() // it returns when Stop says so
	return p, nil
}

// Kubeconfig writes a copy of a kubeconfig that goes through the proxy.
func (p *Proxy) Kubeconfig(original, file string) error {
	config, err := clientcmd.LoadFromFile(original)
	if err != nil {
		return err
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return fmt.Errorf("%s has no current context", original)
	}
	cluster := config.Clusters[current.Cluster]
	cluster.Server = "https://" + p.listener.Addr().String()
	cluster.CertificateAuthorityData = p.certificate
	return clientcmd.WriteToFile(*config, file)
}

// Stop ends the proxy and every connection through it.
func (p *Proxy) Stop() error {
	if err := p.server.Close(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("stopping the proxy: %w", err)
	}
	return nil
}
