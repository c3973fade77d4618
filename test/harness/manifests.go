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
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// What config/default calls things.
const (
	// Namespace is the operator's namespace.
	Namespace = "pvc-protection-operator-system"
	// ServiceAccount is what the operator runs as.
	ServiceAccount = "pvc-protection-operator-controller-manager"
	// Username is how the API server knows that ServiceAccount.
	Username = "system:serviceaccount:" + Namespace + ":" + ServiceAccount
	// ManagerRole is the ClusterRole with which the operator does its work.
	ManagerRole = "pvc-protection-operator-manager-role"
	// UnusedConditionRole is the ClusterRole with which the operator writes the condition Unused.
	UnusedConditionRole = "pvc-protection-operator-unused-condition-role"
	// LeaderElectionRole is the Role in Namespace that leader election takes.
	LeaderElectionRole = "pvc-protection-operator-leader-election-role"
	// MetricsReaderRole is the ClusterRole of those who read the metrics.
	MetricsReaderRole = "pvc-protection-operator-metrics-reader"
	// Lease is the name of the leader election lease in Namespace.
	Lease = "pvc-protection-operator"
	// EventController is the reporting controller of the operator's events.
	EventController = "pvc-protection-operator"
)

const fieldManager = "harness"

// Manifests are objects in the order in which to apply them.
type Manifests []*unstructured.Unstructured

// Render does what "kustomize build" does in the folder.
func Render(dir string) (Manifests, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as kubectl and kustomize do: Namespace and RBAC first
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", dir, err)
	}
	manifests := make(Manifests, 0, rendered.Size())
	for _, resource := range rendered.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %s: %w", dir, resource.CurId(), err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("rendering %s: %s: %w", dir, resource.CurId(), err)
		}
		manifests = append(manifests, object)
	}
	return manifests, nil
}

// Decode converts the only object of that kind, such as the Deployment.
func (m Manifests) Decode(kind string, into any) error {
	isOfKind := func(object *unstructured.Unstructured) bool { return object.GetKind() == kind }
	first := slices.IndexFunc(m, isOfKind)
	if first < 0 || slices.ContainsFunc(m[first+1:], isOfKind) {
		return fmt.Errorf("there is not exactly one %s", kind)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(m[first].Object, into)
}

// Apply does what "kubectl apply --server-side" does, and returns the warnings of the API server, each with the
// object it is about. What exists is taken over.
func Apply(ctx context.Context, config *rest.Config, manifests Manifests) ([]string, error) {
	var warnings Warnings
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = &warnings
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}

	var all []string
	for _, object := range manifests {
		name := fmt.Sprintf("%s %s", object.GetKind(), client.ObjectKeyFromObject(object))
		// The answer is written into the object, and the manifests are the caller's.
		applied := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		if err := c.Apply(ctx, applied, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
			return all, fmt.Errorf("applying %s: %w", name, err)
		}
		for _, warning := range warnings.Take() {
			all = append(all, name+": "+warning)
		}
	}
	return all, nil
}

// Warnings collects the warnings of an API server, as a rest.Config's WarningHandlerWithContext. The zero value is
// ready to use.
type Warnings struct {
	mu    sync.Mutex
	texts []string
}

var _ rest.WarningHandlerWithContext = &Warnings{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *Warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// Take returns the warnings so far and forgets them.
func (w *Warnings) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}
