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

package drain

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"pvc-protection-operator/internal/controller"
)

// options are the values of the flags.
type options struct {
	finalizer string
	// namespace is the operator's.
	namespace            string
	stop, inTree, dryRun bool
}

// parse parses the arguments. The error is of one line and names the flag, its value
// and what is allowed. If help is asked for, parse prints the usage to standard
// output and returns flag.ErrHelp.
func parse(args []string) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet(Command, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // The error says it all; the usage would hide it.
	config.RegisterFlags(fs)
	fs.Func("finalizer", "The finalizer to take off the claims. Required.", func(value string) error {
		o.finalizer = value
		return controller.ValidateFinalizer(value)
	})
	o.namespace = operatorName + "-system"
	fs.Func("operator-namespace", fmt.Sprintf("The namespace that the operator is, or was, installed in. (default %q)", o.namespace),
		func(value string) error {
			if errs := validation.IsDNS1123Label(value); len(errs) > 0 {
				return fmt.Errorf("not the name of a namespace: %s", strings.Join(errs, "; "))
			}
			o.namespace = value
			return nil
		})
	fs.BoolVar(&o.stop, "stop", false,
		"Stop what puts the finalizer on claims: scale the operator down and delete its MutatingAdmissionPolicy. "+
			"Without it, nothing is done as long as there is any of them.")
	fs.BoolVar(&o.inTree, "leave-claims-unprotected", false,
		"Needed to take off "+controller.DefaultFinalizer+", which the in-tree controller serves as well.")
	fs.BoolVar(&o.dryRun, "dry-run", false, "Say what would be done, and change nothing.")

	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Printf("%s takes a finalizer of the operator's own off all claims, so that none is stranded when the operator is gone.\n"+
			"Claims in deletion that a pod uses keep it. It can be run again at any time.\n\nFlags:\n", Command)
		fs.SetOutput(os.Stdout)
		fs.PrintDefaults()
		return nil, err
	case err != nil:
		// The flag package does not say what a boolean may be.
		return nil, errors.New(strings.Replace(err.Error(), "parse error", "must be true or false", 1) + seeHelp)
	case fs.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q, only flags are allowed"+seeHelp, fs.Arg(0))
	case o.finalizer == "":
		return nil, errors.New("flag -finalizer is required, such as --finalizer=example.com/in-use" + seeHelp)
	case o.finalizer == controller.DefaultFinalizer && !o.inTree:
		return nil, fmt.Errorf("invalid value %q for flag -finalizer: claims need not lose it before the operator goes, since "+
			"the in-tree controller serves it as soon as it is switched on; "+
			"set --leave-claims-unprotected to take it off all the same", o.finalizer)
	}
	return o, nil
}

const seeHelp = " (see " + Command + " --help)"
