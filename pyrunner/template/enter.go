package template

import (
	"context"
	"os"

	"github.com/hearth-run/hearth/pyrunner/message"
)

// Entrance is what a process needs in order to enter a container and to be its executor
// there; see package process of the sandbox (Entry).
type Entrance struct {
	StepsAddress uint64
	StepsBytes   int
	Code         []byte
	CodeEntry    int
	// Begin is the number of the descriptor over which the process is told
	// message.Begin.
	Begin int
	// OutputLimit is as for an executor that starts cold, in bytes.
	OutputLimit int64
	// Files stay the caller's.
	Files []*os.File
}

// Enter makes a process that enters a container: a child of the process that started
// the template, which reaps it. It returns the pid as soon as the process exists.
// Errors: *RefusedError where the kernel makes no process; the template goes on then.
func (t *Template) Enter(ctx context.Context, e Entrance) (int, error) {
	return t.forked(ctx, e.Files, message.Enter, e.StepsAddress, e.StepsBytes, e.Code, e.CodeEntry, e.Begin, e.OutputLimit)
}
