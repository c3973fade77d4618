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
	"hash/fnv"
	"time"
)

// recheckIn returns when the blocked claims of the namespace are looked at again
// by themselves. It is the same moment for all claims of a namespace, so that they
// make one batch and take at most one live list, and another one for each
// namespace, so that not all come at once.
func (r *PersistentVolumeClaimReconciler) recheckIn(namespace string) time.Duration {
	interval := r.Options.RecheckInterval
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(namespace)) // never fails
	phase := time.Duration(int64(hash.Sum32())) * time.Microsecond
	delay := interval - (time.Duration(r.Clock.Now().UnixNano())+phase)%interval
	if delay < interval/10 {
		// It was looked at just now.
		delay += interval
	}
	return delay
}

// confirmAfter returns how long a holder in the cache is believed without a live
// list. It is more than one interval and less than two, so that a live list
// confirms it at every second recheck.
func (r *PersistentVolumeClaimReconciler) confirmAfter() time.Duration {
	return r.Options.RecheckInterval + r.Options.RecheckInterval/10
}
