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

// The image test runs the operator from the root file system of its image, as the
// Deployment would: with the image's user and entry point, a read-only root, no
// environment but Kubernetes' own, and the files of its ServiceAccount. run.sh
// builds the image and starts this program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pvc-protection-operator/test/cluster"
	"pvc-protection-operator/test/harness"
)

const patience = time.Minute

func main() {
	log.SetLogger(logr.Discard()) // Only controller-runtime's clients would use it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "image: FAILED: %v\n", err)
		os.Exit(1)
	}
}

// image is what run.sh has built, and the cluster it runs against.
type image struct {
	rootfs, serviceAccount, user, entrypoint string

	cluster *cluster.Cluster
	client  client.Client
	// pidFile is where the operator's process leaves its ID.
	pidFile string
}

func run(ctx context.Context) (err error) {
	i := &image{}
	flag.StringVar(&i.rootfs, "rootfs", "", "`folder` where the image is mounted, read-only")
	flag.StringVar(&i.serviceAccount, "service-account", "", "`folder` that is mounted there for the ServiceAccount's files")
	flag.StringVar(&i.user, "user", "", "the image's `user:group`")
	flag.StringVar(&i.entrypoint, "entrypoint", "", "the image's `command`")
	flag.Parse()

	// Claims get no finalizer but the operator's.
	i.cluster, err = cluster.Start(ctx, cluster.Options{DisableAdmissionPlugins: []string{"StorageObjectInUseProtection"}})
	if err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, i.cluster.Stop()) }()
	if i.client, err = client.New(i.cluster.Config(), client.Options{}); err != nil {
		return err
	}
	operator, err := i.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.StopIfRunning(context.WithoutCancel(ctx))) }()
	if err := operator.WaitReady(ctx); err != nil {
		return err
	}
	if err := i.confined(); err != nil {
		return err
	}
	if err := i.protectAndRelease(ctx, operator); err != nil {
		return fmt.Errorf("%w\n%s", err, operator.Output())
	}
	return operator.Stop(ctx)
}

// start installs the operator and starts the image.
func (i *image) start(ctx context.Context) (*harness.Operator, error) {
	root, err := harness.ModuleDir(ctx)
	if err != nil {
		return nil, err
	}
	manifests, err := harness.Render(filepath.Join(root, "config", "overlays", "replace"))
	if err != nil {
		return nil, err
	}
	if _, err := harness.Apply(ctx, i.cluster.Config(), manifests); err != nil {
		return nil, err
	}
	var deployment appsv1.Deployment
	if err := manifests.Decode("Deployment", &deployment); err != nil {
		return nil, err
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if !slices.Equal(container.Command, []string{i.entrypoint}) {
		return nil, fmt.Errorf("the Deployment runs %q, the image's entry point is %q", container.Command, i.entrypoint)
	}
	if user := fmt.Sprintf("%d:%d", *pod.SecurityContext.RunAsUser, *pod.SecurityContext.RunAsGroup); user != i.user {
		return nil, fmt.Errorf("the Deployment runs as %s, the image as %s", user, i.user)
	}
	launcher, err := i.launcher(ctx)
	if err != nil {
		return nil, err
	}
	return harness.Start(harness.Options{
		Binary: launcher,
		Args: slices.DeleteFunc(container.Args, func(arg string) bool { // The ports are the harness' free ones.
			return strings.HasPrefix(arg, "--metrics-bind-address=") || strings.HasPrefix(arg, "--health-probe-bind-address=")
		}),
	})
}

// launcher does what the kubelet and a container runtime do before the operator starts, and returns the program that
// does the rest and becomes the operator.
func (i *image) launcher(ctx context.Context) (string, error) {
	identity, err := i.cluster.ServiceAccountConfig(ctx, harness.Namespace, harness.ServiceAccount)
	if err != nil {
		return "", err
	}
	for name, content := range map[string][]byte{
		"token": []byte(identity.BearerToken), "ca.crt": identity.CAData, "namespace": []byte(harness.Namespace),
	} {
		if err := os.WriteFile(filepath.Join(i.serviceAccount, name), content, 0o644); err != nil {
			return "", err
		}
	}
	server, err := url.Parse(identity.Host)
	if err != nil {
		return "", err
	}
	i.pidFile = filepath.Join(i.cluster.Dir(), "image.pid")
	launcher := filepath.Join(i.cluster.Dir(), "image")
	return launcher, os.WriteFile(launcher, fmt.Appendf(nil, `#!/bin/sh
echo $$ >'%s'
exec env -i KUBERNETES_SERVICE_HOST='%s' KUBERNETES_SERVICE_PORT='%s' "$(command -v setpriv)" --no-new-privs \
	"$(command -v chroot)" --userspec='%s' --groups= '%s' '%s' "$@"
`, i.pidFile, server.Hostname(), server.Port(), i.user, i.rootfs, i.entrypoint), 0o700)
}

// confined returns an error unless the operator's process is as the Deployment asks.
func (i *image) confined() error {
	pid, err := os.ReadFile(i.pidFile)
	if err != nil {
		return err
	}
	process := filepath.Join("/proc", strings.TrimSpace(string(pid)))
	root, err := os.Readlink(filepath.Join(process, "root"))
	if err != nil {
		return err
	}
	if root != i.rootfs {
		return fmt.Errorf("the operator's root is %q, want %q", root, i.rootfs)
	}
	if err := os.WriteFile(filepath.Join(process, "root", "probe"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("the operator's root has to be read-only; writing to it: error %q", fmt.Sprint(err))
	}
	status, err := os.ReadFile(filepath.Join(process, "status"))
	if err != nil {
		return err
	}
	uid, gid, _ := strings.Cut(i.user, ":")
	for field, want := range map[string]string{
		"Uid": strings.Repeat("\t"+uid, 4), "Gid": strings.Repeat("\t"+gid, 4), "Groups": "\t ", "NoNewPrivs": "\t1",
		"CapPrm": "\t0000000000000000", "CapEff": "\t0000000000000000",
	} {
		if !strings.Contains(string(status), "\n"+field+":"+want+"\n") {
			return fmt.Errorf("the operator's process has not %s %q:\n%s", field, want, status)
		}
	}
	fmt.Printf("ready as %s, with a read-only root and without capabilities\n", i.user)
	return nil
}

// protectAndRelease follows a claim that a pod uses to its end.
func (i *image) protectAndRelease(ctx context.Context, operator *harness.Operator) error {
	const namespace = metav1.NamespaceDefault
	claim := harness.Claim(namespace, "data")
	pod := harness.Pod(namespace, "web", harness.OnNode("node-a"), harness.WithClaim(claim.Name))
	for _, object := range []client.Object{claim, pod} {
		if err := i.client.Create(ctx, object); err != nil {
			return err
		}
	}
	protected := func(ctx context.Context) error {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		if !slices.Contains(claim.Finalizers, harness.Finalizer) {
			return fmt.Errorf("the claim has the finalizers %q", claim.Finalizers)
		}
		return nil
	}
	if err := harness.Eventually(ctx, patience, protected); err != nil {
		return fmt.Errorf("the claim has to be protected: %w", err)
	}
	if err := i.client.Delete(ctx, claim); err != nil {
		return err
	}
	if err := harness.Eventually(ctx, patience, func(ctx context.Context) error {
		blocked, err := operator.Metric(ctx, "pvc_protection_claims", `state="blocked"`)
		if err == nil && blocked != 1 {
			err = fmt.Errorf("%g claims are blocked", blocked)
		}
		return err
	}); err != nil {
		return fmt.Errorf("the claim has to be blocked: %w", err)
	}
	if err := protected(ctx); err != nil {
		return fmt.Errorf("the claim has to stay while the pod uses it: %w", err)
	}
	fmt.Println("a claim in use is protected, and stays when it is deleted")
	if err := i.client.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	if err := harness.Eventually(ctx, patience, func(ctx context.Context) error {
		err := i.client.Get(ctx, client.ObjectKeyFromObject(claim), &corev1.PersistentVolumeClaim{})
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	}); err != nil {
		return fmt.Errorf("the claim has to go: %w", err)
	}
	fmt.Println("it is released with its pod")
	return nil
}
