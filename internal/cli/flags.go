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

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"pvc-protection-operator/internal/controller"
	"pvc-protection-operator/internal/version"
)

// settings are the flags of every command, which are kubectl's where it has them,
// and what comes of them.
//
// They are bound by clientcmd. Those of cli-runtime, genericclioptions.ConfigFlags,
// are the same, but come with all of kustomize, which the manager should not carry.
type settings struct {
	genericiooptions.IOStreams
	// program is what the user calls this.
	program string

	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides

	finalizer     string
	allNamespaces bool
	selector      string
	output        string

	now func() time.Time
}

func newSettings(program string, streams genericiooptions.IOStreams) *settings {
	return &settings{
		program:   program,
		IOStreams: streams,
		rules:     clientcmd.NewDefaultClientConfigLoadingRules(),
		finalizer: controller.DefaultFinalizer,
		now:       time.Now,
	}
}

// addFlags adds the flags that all commands have to the root.
func (s *settings) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&s.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.AuthOverrideFlags.Username, names.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	clientcmd.BindOverrideFlags(&s.overrides, flags, names)
	flags.StringVar(&s.finalizer, "finalizer", s.finalizer, "The finalizer that protects claims, as of the operator's flag")
	complete(root, clientcmd.FlagNamespace, s.completeNamespaces)
	complete(root, clientcmd.FlagContext, s.completeContexts)
}

// addListFlags adds the flags that say which claims, and how to print them.
func (s *settings) addListFlags(cmd *cobra.Command, outputs ...string) {
	flags := cmd.Flags()
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "The claims of all namespaces")
	flags.StringVarP(&s.selector, "selector", "l", "", "The claims that this label query selects")
	flags.StringVarP(&s.output, "output", "o", "", "Output format. One of: "+strings.Join(outputs, ", "))
	complete(cmd, "output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if s.output != "" && !slices.Contains(outputs, s.output) {
			return fmt.Errorf("--output %q is not one of: %s", s.output, strings.Join(outputs, ", "))
		}
		if _, err := labels.Parse(s.selector); err != nil {
			return fmt.Errorf("--selector: %w", err)
		}
		if err := controller.ValidateFinalizer(s.finalizer); err != nil {
			return fmt.Errorf("--finalizer %q: %w", s.finalizer, err)
		}
		return nil
	}
}

// examples fills in the program.
func (s *settings) examples(text string) string {
	return strings.TrimPrefix(fmt.Sprintf(text, s.program), "\n")
}

func complete(cmd *cobra.Command, flag string, by cobra.CompletionFunc) {
	// It fails only if the flag does not exist or has a completion.
	utilruntime.Must(cmd.RegisterFlagCompletionFunc(flag, by))
}

func (s *settings) clientConfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(s.rules, &s.overrides)
}

// connect returns a client of the cluster that the flags, the environment or the
// pod name, and the namespace to work in.
func (s *settings) connect() (*reader, error) {
	config, err := s.clientConfig().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster to work on: set --kubeconfig, KUBECONFIG or ~/.kube/config")
	}
	if err != nil {
		return nil, err
	}
	namespace, _, err := s.clientConfig().Namespace()
	if err != nil {
		return nil, err
	}
	config.UserAgent = pluginName + "/" + version.String()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS, config.Burst = 50, 300 // as kubectl
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &reader{client: client, namespace: namespace, selector: s.selector}
	if s.allNamespaces {
		r.namespace = ""
	}
	return r, nil
}
