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

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is how long a claim that nothing keeps may take to go. It takes
// seconds.
const patience = time.Minute

// nextStep says in one sentence what to do about the claim.
func (c *Claim) nextStep(finalizer string, now time.Time) string {
	switch c.State {
	case Unprotected:
		return "If it is deleted now, it goes at once, whoever uses it: " + c.getProtection(finalizer) + "."
	case Protected:
		if len(c.holders()) > 0 {
			return "Nothing to do: if it is deleted, it stays until no pod holds it."
		}
		return "Nothing to do: if it is deleted, it goes, as no pod holds it."
	case Blocked:
		return c.freeHolders(now)
	case Waiting:
		return c.getReleased(finalizer, now)
	default:
		return sentence(c.otherFinalizers())
	}
}

func (c *Claim) getProtection(finalizer string) string {
	switch c.ServedBy.By {
	case ByOperator:
		return "the operator protects claims when it sees them, look at its log if this takes more than seconds"
	case ByInTree:
		return "kube-controller-manager protects claims when it sees them, look at its log if this takes more than seconds"
	default:
		return "see to it that the operator runs with --finalizer=" + finalizer + ", or else the in-tree controller"
	}
}

func (c *Claim) getReleased(finalizer string, now time.Time) string {
	late := now.Sub(c.Deleted.Time) > patience
	switch {
	case c.ServedBy.By == ByNobody && finalizer == InTreeFinalizer:
		return "Start the operator, or switch the in-tree controller on: nobody takes the finalizer off."
	case c.ServedBy.By == ByNobody:
		return "Start the operator with --finalizer=" + finalizer + ": nobody takes the finalizer off."
	case late && c.ServedBy.By == ByOperator:
		return "It should have gone within seconds: look at the operator's log."
	case late && c.ServedBy.By == ByInTree:
		return "It should have gone within seconds: see to it that the in-tree controller is not switched off, or start the operator."
	case late:
		return "It should have gone within seconds: see to it that the operator runs, or else the in-tree controller."
	case len(c.OtherFinalizers) > 0:
		return sentence(c.otherFinalizers())
	case c.ServedBy.By == ByUnknown:
		return "It should go within seconds: if it does not, see to it that the operator runs, or else the in-tree controller."
	default:
		return "Nothing to do: it goes within seconds, as no pod holds it."
	}
}

// removers are who takes off well-known finalizers, and when.
var removers = map[string]string{
	InTreeFinalizer: "the in-tree controller takes it off when no pod holds the claim",
	"snapshot.storage.kubernetes.io/pvc-as-source-protection": "the snapshot controller takes it off " +
		"when no snapshot is being made of the claim",
	metav1.FinalizerDeleteDependents: "the garbage collector takes it off when what the claim owns has gone",
}

func (c *Claim) otherFinalizers() string {
	phrases := make([]string, 0, len(c.OtherFinalizers))
	for _, name := range c.OtherFinalizers {
		phrases = append(phrases, "finalizer "+name+" keeps it until "+cmp.Or(removers[name], "whoever put it there takes it off"))
	}
	return enumerate(phrases)
}

// freeHolders says what to do about the holders. What has to be done comes before
// what happens by itself.
func (c *Claim) freeHolders(now time.Time) string {
	var act, wait []string
	for _, pod := range c.holders() {
		phrase := pod.free(now)
		switch {
		case pod.endsByItself():
			wait = append(wait, phrase)
		case !slices.Contains(act, phrase): // pods may have the same owner
			act = append(act, phrase)
		}
	}
	rest := ": the claim goes when no pod holds it"
	if len(c.OtherFinalizers) > 0 {
		rest = ": then there are still the finalizers of others"
	}
	return sentence(enumerate(append(act, wait...)) + rest)
}

func (p *Pod) endsByItself() bool { return p.deleted && !p.shutDown && p.Overdue == nil }

// free says what to do so that the pod, which is a holder, does not hold its
// claim any more.
func (p *Pod) free(now time.Time) string {
	switch {
	case p.shutDown:
		return fmt.Sprintf("see who has to take %s off pod %s", strings.Join(p.Finalizers, " and "), p.Name)
	case p.Overdue != nil:
		return fmt.Sprintf("look at node %s (pod %s should have ended %s ago)", p.Node, p.Name, ago(p.Overdue.Time, now))
	case p.deleted:
		return fmt.Sprintf("wait until pod %s has gone", p.Name)
	case p.ended:
		return fmt.Sprintf("delete pod %s (it has ended)", p.Name)
	}
	if len(p.Owners) > 0 && p.Owners[0].scales() {
		last := p.Owners[len(p.Owners)-1] // what scales a ReplicaSet is its Deployment
		return fmt.Sprintf("scale down %s %s", last.Kind, last.Name)
	}
	if len(p.Owners) > 0 && p.Owners[0].Kind == "Job" {
		return fmt.Sprintf("delete Job %s, or pod %s once it has ended", p.Owners[0].Name, p.Name)
	}
	return fmt.Sprintf("delete pod %s", p.Name)
}

func (o Owner) scales() bool {
	switch o.Kind {
	case "StatefulSet", "Deployment", "ReplicaSet", "ReplicationController":
		return true
	default:
		return false
	}
}

// maxPhrases is how many things a sentence says.
const maxPhrases = 3

func enumerate(phrases []string) string {
	if more := len(phrases) - maxPhrases; more > 0 {
		phrases = append(slices.Clone(phrases[:maxPhrases]), fmt.Sprintf("%d more like that", more))
	}
	if last := len(phrases) - 1; last > 0 {
		return strings.Join(phrases[:last], ", ") + " and " + phrases[last]
	}
	return strings.Join(phrases, "")
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
