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

// Package usage holds the rules that say whether a pod uses a claim. They are
// pure functions of the objects they are given: no clients, no clocks, no
// state. The rules are those of the in-tree persistentvolumeclaim-protection
// controller; where they differ, the function says so.
package usage
