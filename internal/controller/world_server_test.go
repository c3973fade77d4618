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

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/internal/usage"
)

func (w *world) get(
	ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if err := w.note(ctx, "read", key.Name, &w.onRead); err != nil {
		return err
	}
	if err := w.server.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	w.remember(obj)
	return nil
}

func (w *world) lookUp(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	claim := strings.TrimPrefix(options.FieldSelector.String(), usage.PodClaimIndex+"=")
	if err := w.note(ctx, "look up", claim, &w.onLookUp); err != nil {
		return err
	}
	if err := w.server.List(ctx, list, opts...); err != nil {
		return err
	}
	for i := range list.(*corev1.PodList).Items {
		w.remember(&list.(*corev1.PodList).Items[i])
	}
	return nil
}

// list is the live list, of the test's pages. Their tokens are their numbers.
func (w *world) list(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	page := 0
	if options.Continue != "" {
		page = int(options.Continue[0] - '0')
	}
	w.mu.Lock()
	w.calls = append(w.calls, fmt.Sprint("list ", page))
	w.lists = append(w.lists, options)
	pages, run, runIn := w.pages, w.onList, w.onListIn
	w.mu.Unlock()
	if runIn != nil {
		if err := runIn(options.Namespace); err != nil {
			return err
		}
	}
	if run != nil {
		if err := run(ctx, page); err != nil {
			return err
		}
	}
	pods := list.(*corev1.PodList)
	if page < len(pages) {
		pods.Items = slices.Clone(pages[page])
	}
	if page+1 < len(pages) {
		pods.Continue = fmt.Sprint(page + 1)
	}
	return ctx.Err()
}

// patch does what the API server does with the two patches of this program.
func (w *world) patch(ctx context.Context, _ client.WithWatch, obj client.Object, p client.Patch, _ ...client.PatchOption) error {
	data, err := p.Data(obj)
	if err != nil {
		return err
	}
	var parsed struct {
		Metadata struct {
			UID    types.UID `json:"uid"`
			Add    []string  `json:"finalizers"`
			Remove []string  `json:"$deleteFromPrimitiveList/finalizers"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &parsed); err != nil {
		return err
	}
	operation := "protect"
	if len(parsed.Metadata.Remove) > 0 {
		operation = "release"
	}
	if err := w.note(ctx, operation, obj.GetName(), &w.onPatch); err != nil {
		return err
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := w.server.Get(ctx, client.ObjectKeyFromObject(obj), claim); err != nil {
		return err
	}
	if claim.UID != parsed.Metadata.UID {
		return invalid("metadata", "uid")
	}
	remove := func(f string) bool { return slices.Contains(parsed.Metadata.Remove, f) }
	claim.Finalizers = append(slices.DeleteFunc(claim.Finalizers, remove), parsed.Metadata.Add...)
	if claim.DeletionTimestamp != nil && len(parsed.Metadata.Add) > 0 {
		return invalid("metadata", "finalizers")
	}
	return w.server.Update(ctx, claim)
}

func invalid(path ...string) error {
	return apierrors.NewInvalid(schemaKind, "c", field.ErrorList{
		field.Invalid(field.NewPath(path[0], path[1:]...), "x", "no"),
	})
}

var schemaKind = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind()
