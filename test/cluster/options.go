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

package cluster

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
)

// Component is a process of the cluster, by the name of its binary.
type Component string

const (
	// Etcd is the database of the API server.
	Etcd Component = "etcd"
	// APIServer is the Kubernetes API server.
	APIServer Component = "kube-apiserver"
	// ControllerManager runs the controllers of Kubernetes.
	ControllerManager Component = "kube-controller-manager"
	// Scheduler assigns pods to nodes.
	Scheduler Component = "kube-scheduler"
	// Kwok plays the nodes and their kubelets.
	Kwok Component = "kwok"
)

// AuditLevel is how much of a request the audit log records.
type AuditLevel string

const (
	// AuditMetadata records who requested what and what came of it.
	AuditMetadata AuditLevel = "Metadata"
	// AuditRequestResponse records the objects of request and response as well.
	AuditRequestResponse AuditLevel = "RequestResponse"
	// AuditNone records nothing, and there is no audit log.
	AuditNone AuditLevel = "None"
)

// Flags are command line flags of a component: name, without dashes, to value. A flag given here takes the place of
// the one that the package would set.
type Flags map[string]string

// args returns the flags as command line arguments, in the order of their names.
func (f Flags) args() []string {
	args := make([]string, 0, len(f))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		args = append(args, "--"+name+"="+f[name])
	}
	return args
}

// over returns the defaults with the flags of f in their place.
func (f Flags) over(defaults Flags) Flags {
	merged := maps.Clone(defaults)
	maps.Copy(merged, f)
	return merged
}

// Options describe a cluster. The zero value is etcd and an API server with an audit log.
type Options struct {
	// BinDir is the folder with the binaries. Defaults to the environment's KUBEBUILDER_ASSETS, and without that to
	// bin/k8s/<version> of the module that the working directory lies in.
	BinDir string

	// Dir is the folder in which the cluster makes its own folder, which Stop removes. Defaults to the system's folder
	// for temporary files.
	Dir string

	// LogDir is the folder for the components' logs, one file a component. Defaults to a folder that goes with the
	// cluster; set it to keep the logs.
	LogDir string

	// Log receives a line for every step of the start. Defaults to nowhere.
	Log io.Writer

	// ControllerManager starts kube-controller-manager with every controller but the in-tree PVC protection, and
	// creates a default StorageClass whose claims it binds.
	//
	// Without it there are no default ServiceAccounts, and therefore the ServiceAccount admission plugin, which would
	// refuse all pods, is off.
	ControllerManager bool

	// Scheduler starts kube-scheduler.
	Scheduler bool

	// Nodes is how many nodes kwok plays. It is not started for none.
	Nodes int

	// Audit is how much the audit log records. Defaults to AuditMetadata.
	Audit AuditLevel

	// DisableAdmissionPlugins are switched off in the API server. Tests that need claims without the in-tree finalizer
	// name StorageObjectInUseProtection, which is on by default.
	DisableAdmissionPlugins []string

	// APIServerFlags, ControllerManagerFlags, SchedulerFlags and KwokFlags are added to the components' command lines.
	// For instance ControllerManagerFlags{"controllers": "*"} brings the in-tree PVC protection back.
	APIServerFlags         Flags
	ControllerManagerFlags Flags
	SchedulerFlags         Flags
	KwokFlags              Flags
}

// components returns what the options ask for, in the order of the start.
func (o *Options) components() []Component {
	components := []Component{Etcd, APIServer}
	if o.ControllerManager {
		components = append(components, ControllerManager)
	}
	if o.Scheduler {
		components = append(components, Scheduler)
	}
	if o.Nodes > 0 {
		components = append(components, Kwok)
	}
	return components
}

func (o *Options) setDefaults() error {
	if o.BinDir == "" {
		binDir, err := defaultBinDir()
		if err != nil {
			return err
		}
		o.BinDir = binDir
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	switch o.Audit {
	case "":
		o.Audit = AuditMetadata
	case AuditNone, AuditMetadata, AuditRequestResponse:
	default:
		return fmt.Errorf("unknown audit level %q", o.Audit)
	}

	// The components must find each other's files whatever their working directory is.
	for _, dir := range []*string{&o.BinDir, &o.Dir, &o.LogDir} {
		if *dir == "" {
			continue
		}
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = absolute
	}
	return o.checkBinaries()
}
