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
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"pvc-protection-operator/internal/explain"
)

// print prints the report in the format of the flag, which is that of text unless
// it is one for scripts.
func (s *settings) print(report *explain.Report, text func() error) error {
	var encoded []byte
	var err error
	switch {
	case s.output == "json":
		encoded, err = json.MarshalIndent(report, "", "    ")
		encoded = append(encoded, '\n')
	case s.output == "yaml":
		encoded, err = yaml.Marshal(report)
	case len(report.Items) > 0:
		return text()
	}
	if err != nil {
		return err
	}
	_, err = s.Out.Write(encoded)
	return err
}

// notice says that there is nothing to print, where it does not disturb scripts.
func (s *settings) notice(report *explain.Report, what, namespace string) {
	if len(report.Items) > 0 || s.output == "json" || s.output == "yaml" {
		return
	}
	where := "any namespace"
	if namespace != "" {
		where = "namespace " + namespace
	}
	_, _ = fmt.Fprintf(s.ErrOut, "No %s in %s.\n", what, where)
}
