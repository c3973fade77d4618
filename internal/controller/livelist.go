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
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pvc-protection-operator/internal/metrics"
	"pvc-protection-operator/internal/usage"
)

const (
	// livePageSize is the number of pods in a page of a live list. A page is
	// reduced to the holders in it before the next one is fetched, so it bounds
	// the memory that ConcurrentNamespaces of them take.
	livePageSize = 250

	// pageTimeout bounds a page, and so how long a namespace whose lists hang
	// keeps others from their turn; listTimeout all pages together, and with it
	// the age of what they say.
	pageTimeout = 15 * time.Second
	listTimeout = time.Minute
)

// liveHolders makes the live list of the namespace and returns the holders of
// the candidates by the name of the claim. Only on an answer without an error
// may a candidate that it lacks be released.
//
// The list is uncached and leaves resourceVersion unset, so it is linearizable:
// it has seen every pod that existed when it started. All pages show the state
// of the first one. The candidates must have been read before the call.
func (r *PersistentVolumeClaimReconciler) liveHolders(
	ctx context.Context, namespace string, candidates map[string]*corev1.PersistentVolumeClaim,
) (map[string][]holder, error) {
	start := r.Clock.Now()
	holders, err := r.listHolders(ctx, namespace, candidates)
	metrics.LiveListDuration.Observe(r.Clock.Since(start).Seconds())
	if err != nil {
		metrics.LiveLists.WithLabelValues(metrics.Failure).Inc()
		return nil, fmt.Errorf("live list of the pods of namespace %s, %d claims wait for it: %w",
			namespace, len(candidates), err)
	}
	metrics.LiveLists.WithLabelValues(metrics.Success).Inc()
	return holders, nil
}

func (r *PersistentVolumeClaimReconciler) listHolders(
	ctx context.Context, namespace string, candidates map[string]*corev1.PersistentVolumeClaim,
) (map[string][]holder, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, liveList{}, true), listTimeout)
	defer cancel()
	holders := map[string][]holder{}
	options := &client.ListOptions{
		Namespace: namespace,
		Limit:     livePageSize,
		// Pods that were never scheduled do not hold.
		FieldSelector: fields.OneTermNotEqualSelector("spec.nodeName", ""),
	}
	for {
		var page corev1.PodList
		if err := r.listPage(ctx, &page, options); err != nil {
			return nil, err
		}
		metrics.LiveListPods.Add(float64(len(page.Items)))
		for i := range page.Items {
			pod := &page.Items[i]
			for name := range usage.ClaimNames(pod) {
				if claim := candidates[name]; claim != nil && usage.Holds(pod, claim) {
					holders[name] = appendHolder(holders[name], pod, claim)
				}
			}
		}
		if page.Continue == "" {
			return holders, nil
		}
		options.Continue = page.Continue
	}
}

func (r *PersistentVolumeClaimReconciler) listPage(
	ctx context.Context, page *corev1.PodList, options *client.ListOptions,
) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return r.APIReader.List(ctx, page, options)
}

// liveList is the key by which the context of a live list's requests is known.
type liveList struct{}

// CountLiveListBytes wraps the transport of the client that makes the live lists, to
// measure their answers. It is a rest.Config's WrapTransport.
func CountLiveListBytes(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && request.Context().Value(liveList{}) != nil {
			response.Body = countingBody{response.Body}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

type countingBody struct{ io.ReadCloser }

// Read implements io.Reader.
func (b countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	metrics.LiveListBytes.Add(float64(n))
	return n, err
}

// cachedHolders returns the claim's holders among the pods in the cache. The
// cache may lag: that a holder is missing proves nothing.
func (r *PersistentVolumeClaimReconciler) cachedHolders(
	ctx context.Context, claim *corev1.PersistentVolumeClaim,
) ([]holder, error) {
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(claim.Namespace),
		client.MatchingFields{usage.PodClaimIndex: claim.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("looking up the pods that name claim %s/%s in the cache: %w",
			claim.Namespace, claim.Name, err)
	}
	var holders []holder
	for i := range pods.Items {
		if usage.Holds(&pods.Items[i], claim) {
			holders = appendHolder(holders, &pods.Items[i], claim)
		}
	}
	return holders, nil
}
