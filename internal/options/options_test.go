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

package options_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"pvc-protection-operator/internal/controller"
	"pvc-protection-operator/internal/options"
)

const program = "operator"

func parse(t *testing.T, args ...string) *options.Options {
	t.Helper()
	o, err := options.Parse(program, args)
	if err != nil {
		t.Fatalf("Parse(%q) failed: %v", args, err)
	}
	return o
}

// withoutLogger returns the options without those of the logger, which have functions.
func withoutLogger(o *options.Options) options.Options {
	copied := *o
	copied.Zap = options.Options{}.Zap
	return copied
}

func TestDefaults(t *testing.T) {
	got := withoutLogger(parse(t))
	want := options.Options{
		MetricsAddress:  "0",
		MetricsSecure:   true,
		MetricsCertName: "tls.crt",
		MetricsCertKey:  "tls.key",
		ProbeAddress:    ":8081",
		PprofAddress:    "0",
		Controller: controller.Options{
			Finalizer:            "kubernetes.io/pvc-protection",
			BatchWindow:          10 * time.Millisecond,
			MaxBatchSize:         5000,
			ConcurrentNamespaces: 16,
			ConcurrentWrites:     16,
			RecheckInterval:      time.Minute,
			UnusedCondition:      true,
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Parse() = %+v\nwant %+v", got, want)
	}
	if parse(t).Zap.Development {
		t.Error("the logger is in development mode by default")
	}
}

func TestValues(t *testing.T) {
	longest := strings.Repeat("n", 63)
	tests := []struct {
		flag, value string
		get         func(*options.Options) any
		want        any
	}{
		{"version", "true", func(o *options.Options) any { return o.Version }, true},
		{"leader-elect", "true", func(o *options.Options) any { return o.LeaderElect }, true},
		{"leader-elect-resource-namespace", "x", func(o *options.Options) any { return o.LeaderElectNamespace }, "x"},
		{"health-probe-bind-address", ":1", func(o *options.Options) any { return o.ProbeAddress }, ":1"},
		{"pprof-bind-address", "127.0.0.1:1", func(o *options.Options) any { return o.PprofAddress }, "127.0.0.1:1"},
		{"pprof-bind-address", "localhost:1", func(o *options.Options) any { return o.PprofAddress }, "localhost:1"},
		{"pprof-bind-address", "[::1]:1", func(o *options.Options) any { return o.PprofAddress }, "[::1]:1"},
		{"pprof-bind-address", "0", func(o *options.Options) any { return o.PprofAddress }, "0"},
		{"metrics-bind-address", ":8443", func(o *options.Options) any { return o.MetricsAddress }, ":8443"},
		{"metrics-secure", "false", func(o *options.Options) any { return o.MetricsSecure }, false},
		{"metrics-cert-path", "/c", func(o *options.Options) any { return o.MetricsCertPath }, "/c"},
		{"metrics-cert-name", "c", func(o *options.Options) any { return o.MetricsCertName }, "c"},
		{"metrics-cert-key", "k", func(o *options.Options) any { return o.MetricsCertKey }, "k"},
		{"enable-http2", "true", func(o *options.Options) any { return o.EnableHTTP2 }, true},
		{"zap-devel", "true", func(o *options.Options) any { return o.Zap.Development }, true},
		{"zap-encoder", "json", func(o *options.Options) any { return o.Zap.NewEncoder != nil }, true},
		{"zap-log-level", "debug", func(o *options.Options) any { return o.Zap.Level.Enabled(-1) }, true},

		{"finalizer", "example.com/p", finalizer, "example.com/p"},
		{"finalizer", "e/" + longest, finalizer, "e/" + longest},
		{"watch-namespaces", "a", namespaces, []string{"a"}},
		{"watch-namespaces", "b,a", namespaces, []string{"b", "a"}},
		{"watch-namespaces", "b,a,b,b", namespaces, []string{"b", "a"}},
		{"watch-namespaces", longest + ",0", namespaces, []string{longest, "0"}},
		{"batch-window", "0", func(o *options.Options) any { return o.Controller.BatchWindow }, time.Duration(0)},
		{"batch-window", "1h", func(o *options.Options) any { return o.Controller.BatchWindow }, time.Hour},
		{"max-batch-size", "1", func(o *options.Options) any { return o.Controller.MaxBatchSize }, 1},
		{"max-batch-size", "100000", func(o *options.Options) any { return o.Controller.MaxBatchSize }, 100_000},
		{"concurrent-namespaces", "7", func(o *options.Options) any { return o.Controller.ConcurrentNamespaces }, 7},
		{"concurrent-writes", "9", func(o *options.Options) any { return o.Controller.ConcurrentWrites }, 9},
		{"recheck-interval", "1s", func(o *options.Options) any { return o.Controller.RecheckInterval }, time.Second},
		{"recheck-interval", "1m30s", func(o *options.Options) any { return o.Controller.RecheckInterval }, 90 * time.Second},
		{"unused-condition", "false", func(o *options.Options) any { return o.Controller.UnusedCondition }, false},
	}
	for _, test := range tests {
		t.Run(test.flag+"="+test.value, func(t *testing.T) {
			for _, dashes := range []string{"-", "--"} {
				if got := test.get(parse(t, dashes+test.flag+"="+test.value)); !reflect.DeepEqual(got, test.want) {
					t.Errorf("the value of %s%s=%s is %v, want %v", dashes, test.flag, test.value, got, test.want)
				}
			}
		})
	}
}

func finalizer(o *options.Options) any  { return o.Controller.Finalizer }
func namespaces(o *options.Options) any { return o.WatchNamespaces }

func TestFlagsGoTogether(t *testing.T) {
	o := parse(t, "--leader-elect", "--finalizer", "e/f", "--finalizer", "e/g", "--max-batch-size", "3", "--version=false")
	if !o.LeaderElect || o.Version || o.Controller.Finalizer != "e/g" || o.Controller.MaxBatchSize != 3 {
		t.Errorf("Parse() = %+v", withoutLogger(o))
	}
}

// TestBadValues proves that an error is of one line and says which flag it is
// about, what the value was, and what is allowed.
func TestBadValues(t *testing.T) {
	const (
		boolean   = "must be true or false"
		number    = "must be a whole number from 1 to 100000"
		qualified = "must consist of alphanumeric characters"
		label     = "lower case alphanumeric characters"
	)
	tooLong := strings.Repeat("n", 64)
	tests := []struct{ flag, value, allowed string }{
		{"version", "maybe", boolean},
		{"leader-elect", "2", boolean},
		{"metrics-secure", "on", boolean},
		{"enable-http2", "", boolean},
		{"zap-devel", "x", boolean},
		{"unused-condition", "off", boolean},

		{"leader-elect-resource-namespace", "Foo/../x", label},
		{"leader-elect-resource-namespace", "", label},
		{"metrics-bind-address", "", "such as :8443"},
		{"metrics-bind-address", "8443", "such as :8443"},
		{"metrics-bind-address", ":https", "such as :8443"},
		{"metrics-bind-address", ":65536", "such as :8443"},
		{"health-probe-bind-address", "nonsense", "such as :8443"},
		{"health-probe-bind-address", "[::1:8081", "such as :8443"},
		{"pprof-bind-address", "", "loopback"},
		{"pprof-bind-address", "127.0.0.1:http", "loopback"},
		{"pprof-bind-address", ":6060", "loopback"},
		{"pprof-bind-address", "0.0.0.0:6060", "loopback"},
		{"pprof-bind-address", "127.0.0.1", "loopback"},
		{"pprof-bind-address", "127.0.0.1:", "loopback"},
		{"pprof-bind-address", "example.com:6060", "loopback"},

		{"finalizer", "", "must be non-empty"},
		{"finalizer", "protection", "example.com/protection"},
		{"finalizer", "a/b/c", qualified},
		{"finalizer", "example.com/", "must be non-empty"},
		{"finalizer", "/x", "must be non-empty"},
		{"finalizer", "Example.com/x", label},
		{"finalizer", "example.com/x y", qualified},
		{"finalizer", "example.com/x\ny", qualified},
		{"finalizer", "e/" + tooLong, "63"},

		{"watch-namespaces", "", label},
		{"watch-namespaces", "a,", label},
		{"watch-namespaces", ",a", label},
		{"watch-namespaces", "a,,b", label},
		{"watch-namespaces", "a, b", label},
		{"watch-namespaces", "A", label},
		{"watch-namespaces", "a.b", "must not contain dots"},
		{"watch-namespaces", "*", label},
		{"watch-namespaces", "a\nb", label},
		{"watch-namespaces", tooLong, "63"},

		{"batch-window", "", "from 0s to 1h"},
		{"batch-window", "10", "from 0s to 1h"},
		{"batch-window", "-1ms", "from 0s to 1h"},
		{"batch-window", "1h1ms", "from 0s to 1h"},
		{"batch-window", "x\ny", "from 0s to 1h"},
		{"recheck-interval", "0", "from 1s to 1h"},
		{"recheck-interval", "999ms", "from 1s to 1h"},
		{"recheck-interval", "-1m", "from 1s to 1h"},
		{"recheck-interval", "9999999h", "from 1s to 1h"},

		{"max-batch-size", "", number},
		{"max-batch-size", "0", number},
		{"max-batch-size", "-1", number},
		{"max-batch-size", "100001", number},
		{"max-batch-size", "1.5", number},
		{"max-batch-size", "1e3", number},
		{"max-batch-size", "99999999999999999999", number},
		{"concurrent-namespaces", "0", number},
		{"concurrent-namespaces", "many", number},
		{"concurrent-writes", "0", number},
		{"concurrent-writes", "1 ", number},
	}
	for _, test := range tests {
		t.Run(test.flag+"="+test.value, func(t *testing.T) {
			wantError(t, []string{"--" + test.flag + "=" + test.value},
				"-"+test.flag, fmt.Sprintf("%q", test.value), test.allowed, "--help")
		})
	}
}

// TestBadLogValues is about the logger's flags, whose errors the library makes. They
// must name the flag and the value, too.
func TestBadLogValues(t *testing.T) {
	for _, name := range []string{"zap-encoder", "zap-log-level", "zap-stacktrace-level", "zap-time-encoding"} {
		t.Run(name, func(t *testing.T) {
			wantError(t, []string{"--" + name + "=never"}, "-"+name, `"never"`, "--help")
		})
	}
}

// TestBadLogValuesSayWhatIsAllowed holds the logger's flags to the same as the others.
func TestBadLogValuesSayWhatIsAllowed(t *testing.T) {
	for name, allowed := range map[string]string{
		"zap-encoder": "json", "zap-log-level": "debug", "zap-stacktrace-level": "panic", "zap-time-encoding": "rfc3339",
	} {
		for _, value := range []string{"never", "a\nb"} {
			wantError(t, []string{"--" + name + "=" + value}, "-"+name, fmt.Sprintf("%q", value), allowed)
		}
	}
}

func TestBadArguments(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":       {[]string{"--no-such-flag"}, "-no-such-flag"},
		"a missing value":       {[]string{"--finalizer"}, "-finalizer"},
		"an argument":           {[]string{"run"}, `"run"`},
		"an argument of lines":  {[]string{"a\nb"}, `"a\nb"`},
		"after flags":           {[]string{"--leader-elect", "true"}, `"true"`},
		"after the terminator":  {[]string{"--", "--leader-elect"}, `"--leader-elect"`},
		"a dash":                {[]string{"-"}, `"-"`},
		"bad syntax":            {[]string{"---x"}, "---x"},
		"only the first of two": {[]string{"--max-batch-size=0", "--finalizer="}, "max-batch-size"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { wantError(t, test.args, test.want, "--help") })
	}
}

func wantError(t *testing.T, args []string, parts ...string) {
	t.Helper()
	o, err := options.Parse(program, args)
	if err == nil {
		t.Fatalf("Parse(%q) did not fail", args)
	}
	if o != nil {
		t.Errorf("Parse(%q) returned options and an error", args)
	}
	if text := err.Error(); strings.Contains(text, "\n") {
		t.Errorf("the error of Parse(%q) is of several lines: %s", args, text)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error of Parse(%q) is %q, want it to say %q", args, err, part)
		}
	}
}

// TestHelp proves that help is not an error's way, and that it names every flag and
// its default.
func TestHelp(t *testing.T) {
	for _, arg := range []string{"-h", "-help", "--help"} {
		var err error
		text := standardOutput(t, func() { _, err = options.Parse(program, []string{arg}) })
		if !errors.Is(err, flag.ErrHelp) {
			t.Errorf("Parse(%s) = %v, want flag.ErrHelp", arg, err)
		}
		if _, tail, found := strings.Cut(text, "panic calling"); found { // flag.PrintDefaults says so.
			t.Errorf("the help of %s ends with: panic calling%s", arg, tail)
		}
		for _, want := range []string{
			program, "-version", "-leader-elect", "-leader-elect-resource-namespace", "-health-probe-bind-address",
			"-metrics-bind-address", "-metrics-secure", "-metrics-cert-path", "-metrics-cert-name", "-metrics-cert-key",
			"-enable-http2", "-kubeconfig", "-zap-log-level",
			"-finalizer", `(default "kubernetes.io/pvc-protection")`,
			"-watch-namespaces", "(default all)",
			"-batch-window", "(default 10ms)",
			"-max-batch-size", "(default 5000)",
			"-concurrent-namespaces", "-concurrent-writes", "(default 16)",
			"-recheck-interval", "(default 1m0s)",
			"-unused-condition", "(default true)",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the help of %s lacks %q", arg, want)
			}
		}
	}
}

// TestErrorsPrintNothing proves that an error is not hidden by the usage.
func TestErrorsPrintNothing(t *testing.T) {
	text := standardOutput(t, func() { _, _ = options.Parse(program, []string{"--max-batch-size=0"}) })
	if text != "" {
		t.Errorf("an error printed %q", text)
	}
}

func standardOutput(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	original := os.Stdout
	os.Stdout = w
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		read <- string(text)
	}()
	f()
	os.Stdout = original
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return <-read
}
