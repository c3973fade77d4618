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
	"fmt"
	"io"
	"sync"
	"time"
)

// progressInterval is how often a line says how far it is.
const progressInterval = 5 * time.Second

// progress tells the user what is done. Several goroutines may use it.
type progress struct {
	out io.Writer

	mu    sync.Mutex
	taken int
	said  time.Time
}

func (p *progress) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format+"\n", args...) // It is for people, and no reason to fail.
}

// took says that one more claim has lost the finalizer.
func (p *progress) took() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
	switch now := time.Now(); {
	case p.said.IsZero():
		p.said = now
	case now.Sub(p.said) >= progressInterval:
		p.said = now
		p.printf("took the finalizer off %s so far", claims(p.taken))
	}
}
