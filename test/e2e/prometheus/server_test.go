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

package prometheus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"pvc-protection-operator/test/harness"
)

const (
	startTimeout = time.Minute
	// interval is that of scrapes and of rules.
	interval = "2s"
)

// guard runs its arguments until its standard input ends, which only the test holds open: Prometheus does not outlive
// the test, however that ends.
const guard = `"$@" & while read -r _; do :; done; kill -s KILL $!; wait`

// server is a running Prometheus.
type server struct {
	url     string
	targets string
	log     string
	cmd     *exec.Cmd
	stdin   io.Closer
}

// startPrometheus starts a Prometheus that keeps everything in the folder, scrapes with the token, and evaluates the
// rules in haste. It has no targets yet.
func startPrometheus(ctx context.Context, binary, dir, token string) (*server, error) {
	s := &server{targets: filepath.Join(dir, "targets"), log: filepath.Join(dir, "log")}
	if err := os.MkdirAll(s.targets, 0o700); err != nil {
		return nil, err
	}
	const tokenFile, rulesFile = "token", "rules.yaml"
	if err := os.WriteFile(filepath.Join(dir, tokenFile), []byte(token), 0o600); err != nil {
		return nil, err
	}
	if err := writeRules(filepath.Join(dir, rulesFile), hasten(suite.groups)); err != nil {
		return nil, err
	}
	scrape, err := scrapeConfig(tokenFile)
	if err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(map[string]any{
		"global":         map[string]string{"scrape_interval": interval, "evaluation_interval": interval},
		"rule_files":     []string{rulesFile},
		"scrape_configs": []any{scrape},
	})
	if err != nil {
		return nil, err
	}
	configFile := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(configFile, config, 0o600); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s.url = "http://" + address
	if err := s.start(binary, "--config.file="+configFile, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address); err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) error {
		_, err := s.get(ctx, "/-/ready")
		return err
	}
	if err := harness.Eventually(ctx, startTimeout, ready); err != nil {
		log, _ := os.ReadFile(s.log) // at worst the message is short
		return nil, errors.Join(fmt.Errorf("prometheus is not ready: %w\n%s", err, log), s.stop())
	}
	return s, nil
}

// scrapeConfig says the same as the ServiceMonitor, but for the targets, which are in files, and for the token.
func scrapeConfig(tokenFile string) (map[string]any, error) {
	var monitor struct {
		Spec struct {
			Endpoints []struct {
				Path      string `json:"path"`
				Scheme    string `json:"scheme"`
				TokenFile string `json:"bearerTokenFile"`
				TLS       struct {
					SkipVerify bool `json:"insecureSkipVerify"`
				} `json:"tlsConfig"`
			} `json:"endpoints"`
		} `json:"spec"`
	}
	if err := suite.monitoring.Decode("ServiceMonitor", &monitor); err != nil {
		return nil, err
	}
	if len(monitor.Spec.Endpoints) != 1 || monitor.Spec.Endpoints[0].TokenFile == "" {
		return nil, errors.New("the ServiceMonitor does not have one endpoint with a token")
	}
	endpoint := monitor.Spec.Endpoints[0]
	return map[string]any{
		"job_name":        "operator", // every target has its own instead
		"metrics_path":    endpoint.Path,
		"scheme":          endpoint.Scheme,
		"authorization":   map[string]any{"credentials_file": tokenFile},
		"tls_config":      map[string]any{"insecure_skip_verify": endpoint.TLS.SkipVerify},
		"file_sd_configs": []any{map[string]any{"files": []string{"targets/*.json"}, "refresh_interval": "1s"}},
	}, nil
}

func (s *server) start(binary string, args ...string) error {
	log, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own
	s.cmd = exec.Command("/bin/sh", append([]string{"-c", guard, "guard", binary}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// A Ctrl-C in the terminal is for us alone.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("starting prometheus: %w", err)
	}
	return nil
}

func (s *server) stop() error {
	err := s.stdin.Close()
	_ = s.cmd.Wait() // tells of the signal that the guard sends
	return err
}

// scrape makes replicas of a job the server's targets, with the labels that the ServiceMonitor leads to.
func (s *server) scrape(job string, replicas ...*harness.Operator) error {
	type target struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	var targets []target
	for i, replica := range replicas {
		targets = append(targets, target{
			Targets: []string{replica.MetricsAddress()},
			Labels:  map[string]string{"job": job, "namespace": harness.Namespace, "pod": "replica-" + strconv.Itoa(i)},
		})
	}
	content, err := json.Marshal(targets)
	if err != nil {
		return err
	}
	// The server reads the file at once: it has to be whole when it gets its name.
	file := filepath.Join(s.targets, job+".json")
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// sample is a series' value.
type sample struct {
	labels map[string]string
	value  float64
}

// query evaluates an expression whose value is a vector, now.
func (s *server) query(ctx context.Context, expr string) ([]sample, error) {
	body, err := s.get(ctx, "/api/v1/query?"+url.Values{"query": {expr}}.Encode())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	var samples []sample
	for _, series := range answer.Data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(series.Value[1]), 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expr, err)
		}
		samples = append(samples, sample{labels: series.Metric, value: value})
	}
	return samples, nil
}

func (s *server) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, nil
}

// freeAddress returns an address of the loopback interface that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
