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

// Package options holds the flags of the manager.
package options

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"pvc-protection-operator/internal/controller"
)

// Options are the values of the flags. The groups are those of kubebuilder's
// scaffold, and the controller's.
type Options struct {
	Version bool

	LeaderElect          bool
	LeaderElectNamespace string
	ProbeAddress         string
	PprofAddress         string

	MetricsAddress                                   string
	MetricsSecure                                    bool
	MetricsCertPath, MetricsCertName, MetricsCertKey string
	EnableHTTP2                                      bool

	Zap zap.Options

	// WatchNamespaces are the namespaces to work in. Empty means all.
	WatchNamespaces []string
	Controller      controller.Options
}

// Parse parses the arguments of the program of that name. The error is of one
// line and names the flag, its value and what is allowed. If help is asked for,
// Parse prints the usage to standard output and returns flag.ErrHelp.
func Parse(program string, args []string) (*Options, error) {
	o := &Options{Controller: controller.DefaultOptions()}
	fs := flag.NewFlagSet(program, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // The error says it all; the usage would hide it.
	config.RegisterFlags(fs)
	o.bindStandard(fs)
	o.bindController(fs)

	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Printf("%s keeps claims that are deleted while pods use them until no pod does.\n\nFlags:\n", program)
		fs.SetOutput(os.Stdout)
		fs.PrintDefaults()
		return nil, err
	}
	if err != nil {
		// The flag package does not say what a boolean may be.
		return nil, errors.New(strings.Replace(err.Error(), "parse error", "must be true or false", 1) + " (see --help)")
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q, only flags are allowed (see --help)", fs.Arg(0))
	}
	return o, nil
}

// bindStandard binds the flags of every kubebuilder project.
func (o *Options) bindStandard(fs *flag.FlagSet) {
	fs.BoolVar(&o.Version, "version", false, "Print the version and exit.")
	o.MetricsAddress = "0"
	fs.Func("metrics-bind-address", "The address the metrics endpoint binds to. "+
		"Use :8443 for HTTPS or :8080 for HTTP, or leave as 0 to disable the metrics service. (default 0)",
		func(value string) error {
			o.MetricsAddress = value
			return validateAddress(value)
		})
	o.ProbeAddress = ":8081"
	fs.Func("health-probe-bind-address", "The address the probe endpoint binds to. (default :8081)",
		func(value string) error {
			o.ProbeAddress = value
			return validateAddress(value)
		})
	o.PprofAddress = "0"
	fs.Func("pprof-bind-address", "The address of this machine's loopback interface that profiles are served at, "+
		"such as 127.0.0.1:6060; 0 disables them. (default 0)", func(value string) error {
		o.PprofAddress = value
		return validatePprofAddress(value)
	})
	fs.BoolVar(&o.LeaderElect, "leader-elect", false,
		"Enable leader election for controller manager. "+
			"Enabling this will ensure there is only one active controller manager.")
	fs.Func("leader-elect-resource-namespace",
		"The namespace of the leader election lease. Defaults to the namespace of the pod; must be set outside of a cluster.",
		func(value string) error {
			o.LeaderElectNamespace = value
			return validateNamespace(value)
		})
	fs.BoolVar(&o.MetricsSecure, "metrics-secure", true,
		"If set, the metrics endpoint is served securely via HTTPS. Use --metrics-secure=false to use HTTP instead.")
	fs.StringVar(&o.MetricsCertPath, "metrics-cert-path", "", "The directory that contains the metrics server certificate.")
	fs.StringVar(&o.MetricsCertName, "metrics-cert-name", "tls.crt", "The name of the metrics server certificate file.")
	fs.StringVar(&o.MetricsCertKey, "metrics-cert-key", "tls.key", "The name of the metrics server key file.")
	fs.BoolVar(&o.EnableHTTP2, "enable-http2", false, "If set, HTTP/2 will be enabled for the metrics server")
	o.Zap.BindFlags(fs)
	fs.VisitAll(func(f *flag.Flag) {
		// Their own errors do not say what is allowed, but the usage does.
		if strings.HasPrefix(f.Name, "zap-") && f.Name != "zap-devel" {
			f.Value = explained{Value: f.Value, allowed: f.Usage}
		}
	})
}

// explained is a value whose errors say what is allowed.
type explained struct {
	flag.Value
	allowed string
}

// String implements flag.Value. The flag package calls it on the zero value, too.
func (e explained) String() string {
	if e.Value == nil {
		return ""
	}
	return e.Value.String()
}

// Set implements flag.Value.
func (e explained) Set(value string) error {
	if e.Value.Set(value) != nil {
		return errors.New(e.allowed)
	}
	return nil
}

// bindController binds the flags of this operator.
func (o *Options) bindController(fs *flag.FlagSet) {
	c := &o.Controller
	fs.Func("finalizer", fmt.Sprintf("The finalizer that protects claims. (default %q)", c.Finalizer), func(value string) error {
		c.Finalizer = value
		return controller.ValidateFinalizer(value)
	})
	fs.Func("watch-namespaces", "The namespaces to work in, separated by commas. (default all)", func(value string) (err error) {
		o.WatchNamespaces, err = parseNamespaces(value)
		return err
	})
	duration(fs, &c.BatchWindow, "batch-window", 0,
		"How long a claim waits for others of its namespace, to be looked at together; while they keep coming, up to 20 times as long.")
	number(fs, &c.MaxBatchSize, "max-batch-size", "The largest number of claims that are released on one list of pods.")
	number(fs, &c.ConcurrentNamespaces, "concurrent-namespaces", "The number of namespaces that are worked on at once.")
	number(fs, &c.ConcurrentWrites, "concurrent-writes",
		"The number of claims that are written at once in each of these namespaces.")
	duration(fs, &c.RecheckInterval, "recheck-interval", time.Second,
		"How long a claim in deletion that a pod uses waits for an event, before it is looked at again by itself.")
	fs.BoolVar(&c.UnusedCondition, "unused-condition", c.UnusedCondition,
		"Keep the condition Unused of bound claims, which tells whether and since when no pod refers to them.")
}

// validateAddress returns an error unless a server can be told to listen at the
// address: a port that is no number would else be found out only after the start.
func validateAddress(address string) error {
	if address == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("must be 0, which turns it off, or HOST:PORT, of which the host may be empty, such as :8443")
	}
	return nil
}

// validatePprofAddress returns an error unless the address is one that only this
// machine reaches: profiles tell everything about a process to anybody who asks.
func validatePprofAddress(address string) error {
	host, _, _ := net.SplitHostPort(address) // validateAddress returns its error
	ip := net.ParseIP(host)
	if validateAddress(address) != nil || address != "0" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("must be 0 or an address of the loopback interface, such as 127.0.0.1:6060")
	}
	return nil
}

func validateNamespace(name string) error {
	if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
		return fmt.Errorf("%q is not the name of a namespace: %s", name, strings.Join(errs, "; "))
	}
	return nil
}

func parseNamespaces(value string) ([]string, error) {
	var namespaces []string
	for namespace := range strings.SplitSeq(value, ",") {
		if err := validateNamespace(namespace); err != nil {
			return nil, err
		}
		if !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces, nil
}

func duration(fs *flag.FlagSet, target *time.Duration, name string, least time.Duration, usage string) {
	fs.Func(name, fmt.Sprintf("%s (default %s)", usage, *target), func(value string) error {
		parsed, err := time.ParseDuration(value)
		if err != nil || parsed < least || parsed > time.Hour {
			return fmt.Errorf("must be a duration from %s to 1h, such as 250ms or 1m30s", least)
		}
		*target = parsed
		return nil
	})
}

func number(fs *flag.FlagSet, target *int, name, usage string) {
	const most = 100_000
	fs.Func(name, fmt.Sprintf("%s (default %d)", usage, *target), func(value string) error {
		parsed, err := strconv.Atoi(value)
		if err != nil || parsed < 1 || parsed > most {
			return fmt.Errorf("must be a whole number from 1 to %d", most)
		}
		*target = parsed
		return nil
	})
}
