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
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestLiveListIsWholeAndLinearizable is S2.
func TestLiveListIsWholeAndLinearizable(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pages = make([][]corev1.Pod, 3)
		w.add("c1")
		if len(w.lists) != 3 {
			t.Fatalf("%d pages were listed, want 3", len(w.lists))
		}
		for i, options := range w.lists {
			token := ""
			if i > 0 {
				token = fmt.Sprint(i)
			}
			if options.Continue != token {
				t.Errorf("page %d was listed with the token %q, want %q", i, options.Continue, token)
			}
			if options.Raw != nil {
				t.Errorf("page %d was listed with %+v, want resourceVersion and its match unset", i, options.Raw)
			}
			if options.Namespace != "ns" || options.Limit == 0 {
				t.Errorf("page %d was listed with %+v, want the namespace and a limit", i, options)
			}
			if options.LabelSelector != nil {
				t.Errorf("page %d was listed with the labels %s", i, options.LabelSelector)
			}
			if got := options.FieldSelector.String(); got != "spec.nodeName!=" {
				t.Errorf("page %d was listed with the fields %q, want every scheduled pod", i, got)
			}
		}
		w.expect("gone", "c1")
	}, candidate("c1"))
}

func TestHolderOnALaterPage(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pages = [][]corev1.Pod{
			{podOf("a", "c1"), podOf("b", "other")}, {}, {podOf("c", "c3", "other"), podOf("d", "c3")},
		}
		w.add("c1", "c2", "c3", "c4")
		w.expect(testFinalizer, "c1", "c3")
		w.expect("gone", "c2", "c4")
	}, candidates("c1", "c2", "c3", "c4")...)
}

// TestListFails is S2: a list that fails, on whatever page, releases nothing. It is
// one failure of the namespace, after which the candidates wait together; their own
// back-off is left alone.
func TestListFails(t *testing.T) {
	expired := apierrors.NewResourceExpired("the continue token has expired")
	for name, test := range map[string]struct {
		page int
		err  error
	}{
		"at once": {0, errTest}, "in the middle": {1, expired}, "at the end": {2, errTest},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.pages = [][]corev1.Pod{{podOf("a", "c1")}, {}, {podOf("c", "c3")}}
				w.onList = func(_ context.Context, page int) error {
					if page == test.page {
						return test.err
					}
					return nil
				}
				w.add("c1", "c2", "c3")
				if got := w.seen("release"); got != nil {
					t.Fatalf("a failed list released %q", got)
				}
				// At 0, 50, 150, 350 and 750 ms, in a second.
				errs := w.failed()
				if len(errs) != 5 {
					t.Errorf("Reconcile() failed %d times in a second, want 5: %v", len(errs), errs)
				}
				for _, err := range errs {
					text := err.Error()
					if !errors.Is(err, test.err) || !strings.Contains(text, "namespace ns, 3 claims") || strings.Contains(text, "\n") {
						t.Errorf("Reconcile() failed with %q, want one error of the namespace", text)
					}
				}
				if len(w.backOffs) > 0 {
					t.Errorf("claims backed off on their own: %v", w.backOffs)
				}

				w.set(func() { w.onList = nil })
				w.wait(time.Minute) // longer than the longest back-off
				w.expect(testFinalizer, "c1", "c3")
				w.expect("gone", "c2")
				if got := w.failed(); len(got) > 0 {
					t.Errorf("Reconcile() still fails: %v", got)
				}
			}, candidates("c1", "c2", "c3")...)
		})
	}
}

// TestBackOffOfLists proves that it stays below a minute, is the namespace's also
// for claims that come later, leaves protection alone, and starts anew after a list
// that worked.
func TestBackOffOfLists(t *testing.T) {
	objects := append(candidates("c1", "c2", "c3"), claimWith("new"))
	inWorld(t, func(w *world) {
		w.onList = func(context.Context, int) error { return errTest }
		w.add("c1")
		w.wait(10 * time.Minute)
		if got := len(w.failed()); got < 20 || got > 40 {
			t.Errorf("%d lists failed in 10 minutes, want one every 30 seconds in the end", got)
		}

		w.set(func() { w.onList = nil })
		w.seen("")
		w.add("c2", "new")
		want := []string{"read c2", "read new", "protect new", "look up c2"}
		if got := w.seen(""); !slices.Equal(got, want) {
			t.Errorf("during the back-off, the calls were %q, want %q", got, want)
		}
		w.wait(30 * time.Second)
		want = []string{"list 0", "release c1", "release c2"}
		if got := w.seen("list", "release"); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("after the back-off, the calls were %q, want %q", got, want)
		}

		w.set(func() {
			w.onList = func(context.Context, int) error {
				w.set(func() { w.onList = nil })
				return errTest
			}
		})
		w.add("c3")
		w.expect("gone", "c3") // within a second: the first back-off is short
	}, objects...)
}

// TestBackOffOfListsOutlivesOthers proves that claims which only need protection, and
// come while the candidates wait, do not start the back-off anew.
func TestBackOffOfListsOutlivesOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.onList = func(context.Context, int) error { return errTest }
		w.feed.Add(requestOf("c1"))
		for range 100 { // 10 s
			w.feed.Add(requestOf("protected"))
			w.wait(100 * time.Millisecond)
		}
		// At 0, 0.05, 0.15, 0.35, 0.75, 1.55, 3.15 and 6.35 s.
		if got := len(w.failed()); got != 8 {
			t.Errorf("%d lists failed in 10 seconds, want 8", got)
		}
	}, candidate("c1"), claimWith("protected", testFinalizer))
}

// TestBackOffOfListsIsForgotten proves that it starts anew once no candidate waits.
func TestBackOffOfListsIsForgotten(t *testing.T) {
	c1 := candidate("c1")
	inWorld(t, func(w *world) {
		w.onList = func(context.Context, int) error { return errTest }
		w.add("c1")
		end := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := w.server.Patch(w.ctx, c1, end); err != nil { // by somebody else
			t.Fatal(err)
		}
		w.wait(time.Minute)
		w.failed()
		w.add("c2")
		// At 0, 50, 150, 350 and 750 ms.
		if got := len(w.failed()); got != 5 {
			t.Errorf("%d lists failed in a second, want 5", got)
		}
	}, c1, candidate("c2"))
}
