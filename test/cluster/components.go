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

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	defaultStorageClass = "standard"
	defaultAccount      = "default"

	enabled = "true"

	kwokNodeKey   = "kwok.x-k8s.io/node"
	kwokNodeValue = "fake"

	// hostPathRoot is where kube-controller-manager makes the folders of provisioned volumes. It is not configurable.
	hostPathRoot = "/tmp/hostpath_pv/"
)

// startComponents starts everything that is a client of the API server, all at once.
func (c *Cluster) startComponents(context.Context) error {
	if err := os.WriteFile(c.cert("ca.crt"), c.config.CAData, 0o600); err != nil {
		return err
	}
	for _, component := range c.options.components() {
		var err error
		switch component {
		case ControllerManager:
			err = c.startKubeComponent(component, c.options.ControllerManagerFlags.over(Flags{
				"controllers":                      "*,-persistentvolumeclaim-protection-controller",
				"enable-hostpath-provisioner":      enabled,
				"flex-volume-plugin-dir":           c.path("flexvolume"), // by default it makes one in /usr
				"kube-api-burst":                   "2000",
				"kube-api-qps":                     "1000",
				"root-ca-file":                     c.cert("ca.crt"),
				"service-account-private-key-file": c.cert("sa-signer.key"),
				"use-service-account-credentials":  enabled,
			}))
		case Scheduler:
			err = c.startKubeComponent(component, c.options.SchedulerFlags.over(Flags{
				"kube-api-burst": "2000",
				"kube-api-qps":   "1000",
			}))
		case Kwok:
			err = c.startKwok()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// startKubeComponent starts a component of Kubernetes under the user that it has in a real cluster.
func (c *Cluster) startKubeComponent(component Component, flags Flags) error {
	user := "system:" + string(component)
	if _, err := c.addUser(user); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	healthy, err := c.healthCheck("https://127.0.0.1:" + port + "/healthz")
	if err != nil {
		return err
	}
	return c.start(component, flags.over(Flags{
		"authentication-kubeconfig": c.kubeconfigPath(user),
		"authorization-kubeconfig":  c.kubeconfigPath(user),
		"bind-address":              "127.0.0.1",
		"kubeconfig":                c.kubeconfigPath(user),
		"leader-elect":              "false",
		"secure-port":               port,
		"tls-cert-file":             c.cert("apiserver.crt"),
		"tls-private-key-file":      c.cert("apiserver.key"),
	}), healthy)
}

func (c *Cluster) startKwok() error {
	user := string(Kwok)
	if _, err := c.addUser(user, "system:masters"); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	healthy, err := c.healthCheck("http://127.0.0.1:" + port + "/healthz")
	if err != nil {
		return err
	}
	stages, err := filepath.Glob(filepath.Join(c.options.BinDir, kwokStagesDir, "*.yaml"))
	if err != nil {
		return err
	}
	return c.start(Kwok, c.options.KwokFlags.over(Flags{
		"config":                                strings.Join(stages, ","),
		"kubeconfig":                            c.kubeconfigPath(user),
		"manage-nodes-with-annotation-selector": kwokNodeKey + "=" + kwokNodeValue,
		"node-lease-duration-seconds":           "40",
		"server-address":                        "127.0.0.1:" + port,
	}), healthy, "KWOK_WORKDIR="+c.dir) // or else a configuration in the home directory counts as well
}

// createObjects creates what the components need to be of use.
func (c *Cluster) createObjects(ctx context.Context) error {
	for i := range c.options.Nodes {
		name := fmt.Sprintf("node-%d", i)
		_, err := c.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{kwokNodeKey: kwokNodeValue},
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", "type": string(Kwok),
			},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	if !c.options.ControllerManager {
		return nil
	}
	_, err := c.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        defaultStorageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": enabled},
		},
		Provisioner: "kubernetes.io/host-path",
	}, metav1.CreateOptions{})
	return err
}

func (c *Cluster) waitUntilReady(ctx context.Context) error {
	if err := c.waitForAPIServer(ctx); err != nil {
		return err
	}
	for _, p := range c.processes {
		if err := c.waitUntilHealthy(ctx, p); err != nil {
			return err
		}
	}
	if err := poll(ctx, c.nodesReady); err != nil {
		return fmt.Errorf("the nodes did not become ready: %w%s", err, c.logTail(Kwok))
	}
	if c.options.ControllerManager {
		if err := poll(ctx, c.defaultAccountExists); err != nil {
			return fmt.Errorf("there is no default ServiceAccount: %w%s", err, c.logTail(ControllerManager))
		}
	}
	return nil
}

// nodesReady tells whether every node is ready and has lost the taint that says it is not, as pods would wait for it.
func (c *Cluster) nodesReady(ctx context.Context) (bool, error) {
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	ready := 0
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
				ready++
			}
		}
	}
	return ready == c.options.Nodes, nil
}

func (c *Cluster) defaultAccountExists(ctx context.Context) (bool, error) {
	_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, defaultAccount, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// healthCheck returns a function that asks a component, which serves with the API server's certificate.
func (c *Cluster) healthCheck(url string) (func(context.Context) bool, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.config.CAData) {
		return nil, errors.New("the API server's CA is not a certificate")
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
		Timeout:   5 * time.Second,
	}
	return func(ctx context.Context) bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, nil
}

// removeHostPathVolumes removes the folders of the volumes, which neither lie in the cluster's folder nor can be told
// from those of other clusters without the API server.
func (c *Cluster) removeHostPathVolumes(ctx context.Context) error {
	if !c.options.ControllerManager || !c.planeUp {
		return nil
	}
	for _, component := range []Component{Etcd, APIServer} {
		if err := c.Resume(component); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	volumes, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing volumes to remove their folders: %w", err)
	}
	var errs []error
	for _, volume := range volumes.Items {
		if source := volume.Spec.HostPath; source != nil && strings.HasPrefix(source.Path, hostPathRoot) {
			errs = append(errs, os.RemoveAll(source.Path))
		}
	}
	return errors.Join(errs...)
}

// freePort returns a port of the loopback interface that nobody listens on.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
