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

package faultproxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

// errClientCertificate says why a client with a certificate cannot use the proxy.
var errClientCertificate = errors.New("a client certificate does not go through a proxy: use a token")

// identity is what a proxy shows to its clients.
type identity struct {
	certificate tls.Certificate
	// ca is what makes clients trust it, as PEM.
	ca []byte
}

// newIdentity returns the identity of all proxies of this process.
var newIdentity = sync.OnceValues(func() (*identity, error) {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	return &identity{certificate: certificate, ca: certPEM}, err
})

// Config returns a client configuration that is equal to the given one, but leads to the proxy. Credentials have to be
// such that they travel in headers; it is an error if there is a client certificate.
func (p *Proxy) Config(base *rest.Config) (*rest.Config, error) {
	if len(base.CertData) > 0 || base.CertFile != "" {
		return nil, errClientCertificate
	}
	config := rest.CopyConfig(base)
	config.Host = p.url
	config.TLSClientConfig = rest.TLSClientConfig{CAData: p.identity.ca, NextProtos: base.NextProtos}
	return config, nil
}

// WriteKubeconfig writes a kubeconfig that is equal to another one, but whose current context leads to the proxy.
// Files that it refers to, such as that of a token, stay where they are. It is an error if there is a client
// certificate.
func (p *Proxy) WriteKubeconfig(source, target string) error {
	kubeconfig, err := clientcmd.LoadFromFile(source)
	if err != nil {
		return err
	}
	if err := clientcmd.ResolveLocalPaths(kubeconfig); err != nil {
		return err
	}
	current := kubeconfig.Contexts[kubeconfig.CurrentContext]
	if current == nil {
		return fmt.Errorf("kubeconfig %s has no current context", source)
	}
	cluster, user := kubeconfig.Clusters[current.Cluster], kubeconfig.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return fmt.Errorf("kubeconfig %s lacks the cluster or the user of context %q", source, kubeconfig.CurrentContext)
	}
	if len(user.ClientCertificateData) > 0 || user.ClientCertificate != "" {
		return errClientCertificate
	}
	cluster.Server = p.url
	cluster.CertificateAuthorityData = p.identity.ca
	cluster.CertificateAuthority = ""
	cluster.InsecureSkipTLSVerify = false
	cluster.TLSServerName = ""
	cluster.ProxyURL = ""
	return clientcmd.WriteToFile(*kubeconfig, target)
}
