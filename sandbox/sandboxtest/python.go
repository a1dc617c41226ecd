//go:build linux

package sandboxtest

import (
	"embed"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hearth-run/hearth/sandbox"
)

//go:embed scripts/*.py
var scripts embed.FS

// interpreter is the Python that runs the scripts, and what it needs to be visible.
type interpreter struct {
	path  string
	binds []sandbox.Bind
}

// findPython asks the interpreter on PATH once where it really lives: the one on PATH
// may be a slow shim.
var findPython = sync.OnceValues(func() (interpreter, error) {
	const ask = "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix]))"
	out, err := exec.Command("python3", "-I", "-c", ask).Output()
	if err != nil {
		return interpreter{}, err
	}
	var where []string
	if err := json.Unmarshal(out, &where); err != nil {
		return interpreter{}, err
	}
	found := interpreter{path: where[0], binds: sandbox.SystemBinds()}
	for _, prefix := range where[1:] {
		if !strings.HasPrefix(prefix+"/", "/usr/") {
			found.binds = append(found.binds, sandbox.Bind{Source: prefix})
		}
	}
	return found, nil
})

// Script is the text of one script behind the prelude.
func Script(t *testing.T, name string) string {
	t.Helper()
	var text strings.Builder
	for _, part := range []string{"prelude", name} {
		body, err := scripts.ReadFile("scripts/" + part + ".py")
		if err != nil {
			t.Fatal(err)
		}
		text.Write(body)
	}
	return text.String()
}

// topFolders are the names that the interpreter's binds need in the root folder.
func (p interpreter) topFolders() []string {
	var names []string
	for _, b := range p.binds {
		names = append(names, strings.SplitN(filepath.Clean(b.Inside()), "/", 3)[1])
	}
	return names
}
