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

// Package oracle judges what the operator has done on a cluster, from what was seen of it from outside: was a claim
// released while a pod held it, or without the evidence that the operator must have, and is a claim left that should
// have gone?
//
//	recorder, err := oracle.Record(ctx, clientset)
//	... // pods and claims come and go
//	err = recorder.CatchUp(ctx)
//	audit, err := oracle.ReadAudit(harness.Username, harness.Finalizer, cluster.AuditEvents)
//	report := oracle.Judge(recorder.Changes(), audit, harness.Finalizer)
//	err = report.Err()
//
// It shares no code with the operator. The rules of use are stated once more, from design.md §4.
//
// # Two witnesses
//
// What happened, and in which order, is told by a Recorder: plain watches of pods and claims, straight from the API
// server, which deliver every change with the revision of etcd at which it was made, and revisions are one global order.
// The audit log cannot tell that alone. The answer to a deletion, to a binding or to an eviction does not say at which
// revision it took effect, nor does the answer to a patch that takes off the last finalizer and with it deletes; and the
// events of the log are in the order in which requests ended.
//
// The audit log tells who did it: which releases are the operator's, and which lists of pods it has made, each with the
// revision that the list shows. It also checks the recorder: whatever the API server has answered to a writer, an object
// at a revision, must be among what was recorded, and every release in the log must be one in the record. A watch that
// loses something is found out by that.
//
// # The verdict
//
// A claim is deleted at a revision D and released at W. The operator must have listed the pods at some L with
// D <= L < W, and that list must have shown no holder. So there are
//
//   - releases in use: a pod held the claim at W, and there is no such list. Whether the pod held it before it was
//     deleted or came later makes no difference: the operator was bound to see it.
//   - unfounded releases: nobody held the claim at W, but there is no such list either. It was good luck.
//   - late holders: a pod held the claim at W, and there is such a list: the pod came in the moment between list and
//     write. No controller can prevent that, see docs/safety.md. These are counted, and no violations.
//
// Releases of which nobody was told, because the writer had gone away, count as the operator's, as nobody else takes the
// finalizer off.
//
// A list in the audit log is taken for the operator's evidence even if its answer got lost on the way. That makes a
// verdict milder, and never wrong about a release in use: such a list would have shown no holder.
package oracle
