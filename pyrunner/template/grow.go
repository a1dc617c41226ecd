package template

import (
	"context"
	"os"

	"github.com/hearth-run/hearth/pyrunner/message"
)

// Surroundings are what a grown template has of its own.
type Surroundings struct {
	// Sibling makes it a child of the process that started the template, which reaps
	// it; see message.GrowSibling. Otherwise it dies with the template, and Reap of
	// the template buries it with all that it left.
	Sibling bool
	// Dir is the working folder, absolute; "" is the template's.
	Dir string
	// Env is the whole environment, as NAME=VALUE. What the C library and the
	// interpreter read once, at their start, has no effect any more: LD_*, MALLOC_*,
	// GLIBC_TUNABLES, PYTHON*.
	Env []string
	// Stdout and Stderr become descriptors 1 and 2: both, or none, which leaves the
	// template's. They stay the caller's.
	Stdout, Stderr *os.File
}

// Grow makes a template process that begins with the imports of this one: it can do
// whatever a template can, and shares the memory of what was imported. It is asked over
// the other end of theirs, which is closed. It returns the pid as soon as the process
// exists. A template whose imports have left threads (Loaded.CanFork) must not grow;
// descriptors that they have opened are closed in the grown one.
func (t *Template) Grow(ctx context.Context, theirs *os.File, s Surroundings) (int, error) {
	defer theirs.Close()
	kin := message.GrowChild
	if s.Sibling {
		kin = message.GrowSibling
	}
	files := []*os.File{theirs}
	if s.Stdout != nil && s.Stderr != nil {
		files = append(files, s.Stdout, s.Stderr)
	}
	fields := []any{kin, s.Dir}
	for _, variable := range s.Env {
		fields = append(fields, variable)
	}
	return t.forked(ctx, files, message.Grow, fields...)
}
