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

package cluster_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"pvc-protection-operator/test/cluster"
)

const (
	namespace   = metav1.NamespaceDefault
	account     = "tester"
	accountUser = "system:serviceaccount:" + namespace + ":" + account

	inTreeFinalizer = "kubernetes.io/pvc-protection"
)

// TestCluster has one cluster for all of its subtests, which build on each other in this order.
func TestCluster(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{
		Dir:                     t.TempDir(),
		Log:                     t.Output(),
		ControllerManager:       true,
		Scheduler:               true,
		Nodes:                   2,
		Audit:                   cluster.AuditRequestResponse,
		DisableAdmissionPlugins: []string{"StorageObjectInUseProtection"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin := newClient(t, c.Config())

	t.Run("a ServiceAccount's kubeconfig is that ServiceAccount", func(t *testing.T) { testServiceAccount(t, c, admin) })
	t.Run("the audit log records a request", func(t *testing.T) { testAuditLog(t, c) })
	t.Run("a StatefulSet comes to Running and Bound", func(t *testing.T) { testWorkload(t, admin) })
	t.Run("a paused etcd holds writes up", func(t *testing.T) { testPause(t, c, admin) })
	t.Run("a restarted API server keeps everything", func(t *testing.T) { testRestart(t, c, admin) })
	t.Run("a stopped cluster leaves nothing behind", func(t *testing.T) { testStop(t, c, admin) })
}

func testServiceAccount(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) {
	_, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path, err := c.ServiceAccountKubeconfig(t.Context(), namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	// By the environment, as kubectl and controllers do.
	t.Setenv("KUBECONFIG", path)
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if user := whoAmI(t, newClient(t, config)); user != accountUser {
		t.Errorf("the kubeconfig's user is %q, want %q", user, accountUser)
	}

	// It must be nothing more than that: no roles, no permissions.
	_, err = newClient(t, config).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if want := "is forbidden"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("listing pods: got %v, want an error that says %q", err, want)
	}
}

func testAuditLog(t *testing.T, c *cluster.Cluster) {
	var allowed, forbidden *cluster.AuditEvent
	poll(t, func(context.Context) (bool, error) {
		err := c.AuditEvents(func(event cluster.AuditEvent) bool {
			if event.User.Username != accountUser || event.ObjectRef == nil {
				return true
			}
			switch event.ObjectRef.Resource {
			case "selfsubjectreviews":
				allowed = &event
			case "pods":
				forbidden = &event
			}
			return true
		})
		return allowed != nil && forbidden != nil, err
	})
	if allowed.Verb != "create" || allowed.ResponseStatus.Code != 201 || !allowed.Allowed() {
		t.Errorf("unexpected event of the review: %+v", allowed)
	}
	if len(allowed.RequestObject) == 0 || len(allowed.ResponseObject) == 0 {
		t.Errorf("the objects are not recorded: %+v", allowed)
	}
	if forbidden.Verb != "list" || forbidden.ResponseStatus.Code != 403 || forbidden.Allowed() {
		t.Errorf("unexpected event of the refused list: %+v", forbidden)
	}
}

func testPause(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) {
	for range 2 { // the second call must not wait for a second stop
		if err := c.Pause(cluster.Etcd); err != nil {
			t.Fatal(err)
		}
	}
	impatient, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := createConfigMap(impatient, admin, "paused"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("writing without etcd: got error %v, want %v", err, context.DeadlineExceeded)
	}
	if err := c.Resume(cluster.Etcd); err != nil {
		t.Fatal(err)
	}
	if _, err := createConfigMap(t.Context(), admin, "resumed"); err != nil {
		t.Error(err)
	}
}

func testRestart(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) {
	before, err := createConfigMap(t.Context(), admin, "kept")
	if err != nil {
		t.Fatal(err)
	}
	config, err := c.ServiceAccountConfig(t.Context(), namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := c.PID(cluster.APIServer)
	if err != nil {
		t.Fatal(err)
	}

	if err := c.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := getConfigMap(t.Context(), admin, "kept"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("reading without an API server: got error %v, want %v", err, syscall.ECONNREFUSED)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}

	after, err := getConfigMap(t.Context(), admin, "kept")
	if err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID {
		t.Errorf("the object has UID %s, had %s", after.UID, before.UID)
	}
	if user := whoAmI(t, newClient(t, config)); user != accountUser {
		t.Errorf("the token from before is good for %q, want %q", user, accountUser)
	}
	if again, err := c.PID(cluster.APIServer); err != nil || again == pid {
		t.Errorf("the API server has PID %d, had %d: %v", again, pid, err)
	}
}

func testStop(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) {
	pids := map[cluster.Component]int{}
	for _, component := range []cluster.Component{
		cluster.Etcd, cluster.APIServer, cluster.ControllerManager, cluster.Scheduler, cluster.Kwok,
	} {
		pid, err := c.PID(component)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("%s is not running before the stop: %v", component, err)
		}
		pids[component] = pid
	}
	volumes, err := admin.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	folders := make([]string, 0, 1+len(volumes.Items))
	folders = append(folders, c.Dir())
	for _, volume := range volumes.Items {
		folders = append(folders, volume.Spec.HostPath.Path)
	}

	for range 2 { // the second call must do no harm
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}

	for component, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s is still there: %v", component, err)
		}
	}
	for _, folder := range folders {
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", folder, err)
		}
	}
}

func newClient(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func whoAmI(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(review.Status.UserInfo.Groups, "system:serviceaccounts") {
		t.Errorf("unexpected groups: %v", review.Status.UserInfo.Groups)
	}
	return review.Status.UserInfo.Username
}

func createConfigMap(ctx context.Context, client kubernetes.Interface, name string) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{})
}

func getConfigMap(ctx context.Context, client kubernetes.Interface, name string) (*corev1.ConfigMap, error) {
	return client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

func poll(t *testing.T, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, condition); err != nil {
		t.Fatal(err)
	}
}
