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

package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/e2e/oracle"
	"pvc-protection-operator/test/faultproxy"
	"pvc-protection-operator/test/harness"
)

// auditPolicy has the API server record what the oracle wants to know, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  users: ["` + harness.Username + `"]
  verbs: [list]
  resources: [{group: "", resources: [pods]}]
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources: [{group: "", resources: [pods, pods/*, persistentvolumeclaims, persistentvolumeclaims/*]}]
- level: None
`

// Stage is a cluster on which the operator is installed and everything is recorded.
type Stage struct {
	Cluster  *cluster.Cluster
	Admin    client.Client
	Recorder *oracle.Recorder
	// Manifests are what was installed.
	Manifests harness.Manifests

	dir        string
	kubeconfig string
	proxies    []*faultproxy.Proxy
	cancel     context.CancelFunc
}

// NewStage starts a cluster in the folder and installs the operator, without starting it. The context is for the start
// only.
func NewStage(ctx context.Context, dir string, options cluster.Options) (_ *Stage, err error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	flags := cluster.Flags{}
	maps.Copy(flags, options.APIServerFlags)
	flags["audit-policy-file"] = policy
	options.Dir, options.APIServerFlags = dir, flags

	s := &Stage{dir: dir}
	if s.Cluster, err = cluster.Start(ctx, options); err != nil {
		return nil, err
	}
	recording, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	if err := s.setUp(ctx, recording); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stage) setUp(ctx, recording context.Context) error {
	var err error
	if s.Admin, err = client.New(s.Cluster.Config(), client.Options{}); err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(s.Cluster.Config())
	if err != nil {
		return err
	}
	if s.Recorder, err = oracle.Record(recording, clientset); err != nil {
		return err
	}
	root, err := harness.ModuleDir(ctx)
	if err != nil {
		return err
	}
	if s.Manifests, err = harness.Render(filepath.Join(root, "config", "default")); err != nil {
		return err
	}
	if _, err := harness.Apply(ctx, s.Cluster.Config(), s.Manifests); err != nil {
		return err
	}
	s.kubeconfig, err = s.Cluster.ServiceAccountKubeconfig(ctx, harness.Namespace, harness.ServiceAccount)
	return err
}

// Proxy returns a new proxy to the API server, and the operator's kubeconfig that leads there. It runs until the stage
// is closed.
func (s *Stage) Proxy() (*faultproxy.Proxy, string, error) {
	proxy, err := faultproxy.New(context.Background(), s.Cluster.Config())
	if err != nil {
		return nil, "", err
	}
	s.proxies = append(s.proxies, proxy)
	kubeconfig := filepath.Join(s.dir, fmt.Sprintf("proxy-%d.kubeconfig", len(s.proxies)))
	return proxy, kubeconfig, proxy.WriteKubeconfig(s.kubeconfig, kubeconfig)
}

// Judge has the oracle judge, at a time when nothing changes any more.
func (s *Stage) Judge(ctx context.Context) (*oracle.Report, error) {
	if err := s.Recorder.CatchUp(ctx); err != nil {
		return nil, err
	}
	audit, err := oracle.ReadAudit(harness.Username, harness.Finalizer, s.Cluster.AuditEvents)
	if err != nil {
		return nil, err
	}
	return oracle.Judge(s.Recorder.Changes(), audit, harness.Finalizer)
}

// Close ends everything.
func (s *Stage) Close() error {
	s.cancel()
	for _, proxy := range s.proxies {
		_ = proxy.Close() // its connections end, which is all there is to it
	}
	return s.Cluster.Stop()
}
