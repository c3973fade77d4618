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

package batch

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// BenchmarkGrouping is what a request costs from the source to the end of its batch,
// without the queues that hold it in between.
func BenchmarkGrouping(b *testing.B) {
	const total = 5000
	for _, namespaces := range []int{1, 100} {
		requests := make([]reconcile.Request, 0, total)
		for i := range total {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{
				Namespace: fmt.Sprint("ns-", i%namespaces), Name: fmt.Sprint("claim-", i),
			}})
		}
		b.Run(fmt.Sprintf("5,000 requests of %d namespaces", namespaces), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := NewSource(Options{})
				s.requests = workqueue.NewTypedRateLimitingQueue(s.options.RateLimiter)
				s.namespaces = workqueue.NewTypedRateLimitingQueue(RateLimiter[Namespace]())
				for _, request := range requests {
					s.add(request)
				}
				for n := range namespaces {
					batch := s.Take(Namespace(fmt.Sprint("ns-", n)))
					for _, request := range batch.Requests() {
						batch.Done(request)
					}
					batch.Close()
				}
				s.requests.ShutDown()
				s.namespaces.ShutDown()
			}
			b.ReportMetric(float64(b.Elapsed())/float64(time.Nanosecond)/float64(b.N*total), "ns/request")
		})
	}
}
