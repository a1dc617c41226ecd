package law_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/tools/law"
)

const root = "../.."

// marker is the line in a package's doc.go that declares a machine.
const marker = "//hearth:machine"

func TestWorkspaceKeepsTheLaw(t *testing.T) {
	modules := workspace(t)
	machines := 0
	for _, module := range modules {
		for _, p := range list(t, module) {
			for _, breach := range law.Check(p) {
				t.Error(breach)
			}
			if p.Machine {
				machines++
				pure(t, p.Path)
			}
		}
	}
	if len(modules) < 12 || machines < 4 {
		t.Errorf("looked at %d modules and %d machines: the law missed some", len(modules), machines)
	}
}

// A package whose name says that it is a machine, or that keeps scripts as
// machines do, has to be marked as one.
func TestScriptedPackagesAreMarked(t *testing.T) {
	var scripts []string
	for _, pattern := range []string{"*.txt", "*.story"} {
		found, err := filepath.Glob(filepath.Join(root, "*/*/internal/*/testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, found...)
	}
	for _, script := range scripts {
		folder := filepath.Dir(filepath.Dir(script))
		if !marked(folder) && !exempt[filepath.Base(folder)] {
			t.Errorf("%s keeps scripts and its doc.go lacks %s", folder, marker)
		}
	}
}

// exempt are packages with text testdata that are no machines.
var exempt = map[string]bool{}

func TestCheckFindsBreaches(t *testing.T) {
	for name, p := range map[string]law.Package{
		"a service imports another":   {Module: "services/router", Path: "services/router", Imports: []string{law.Prefix + "services/worker"}},
		"gen imports kit":             {Module: "gen", Path: "gen/x", Imports: []string{law.Prefix + "internal/kit/edge"}},
		"kit imports a service":       {Module: "internal/kit", Path: "internal/kit/serve", Tests: []string{law.Prefix + "services/gateway"}},
		"a machine reads files":       {Module: "services/router", Path: "x", Machine: true, Imports: []string{"os"}},
		"a machine uses a library":    {Module: "services/router", Path: "x", Machine: true, Imports: []string{"golang.org/x/sync/errgroup"}},
		"a module that is not listed": {Module: "services/new", Path: "services/new"},
	} {
		if len(law.Check(p)) == 0 {
			t.Errorf("%s: no breach found", name)
		}
	}
	good := law.Package{Module: "services/worker", Path: "services/worker", Imports: []string{law.Prefix + "sandbox", law.Prefix + "services/worker/internal/x", "os"}}
	if got := law.Check(good); len(got) != 0 {
		t.Errorf("a lawful package is refused: %v", got)
	}
}

func workspace(t *testing.T) []string {
	t.Helper()
	out := run(t, root, "go", "work", "edit", "-json")
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal(out, &work); err != nil {
		t.Fatal(err)
	}
	var modules []string
	for _, use := range work.Use {
		modules = append(modules, filepath.ToSlash(filepath.Clean(use.DiskPath)))
	}
	return modules
}

func list(t *testing.T, module string) []law.Package {
	t.Helper()
	out := run(t, filepath.Join(root, module), "go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports", "./...")
	var packages []law.Package
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir                    string
			Imports, TestImports, XTestImports []string
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, law.Package{
			Module: module, Path: strings.TrimPrefix(p.ImportPath, law.Prefix),
			Imports: p.Imports, Tests: append(p.TestImports, p.XTestImports...), Machine: marked(p.Dir),
		})
	}
}

func marked(folder string) bool {
	text, err := os.ReadFile(filepath.Join(folder, "doc.go"))
	return err == nil && bytes.Contains(text, []byte(marker))
}

// pure looks at the code of a machine: no goroutine, no clock.
func pure(t *testing.T, path string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, path, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a machine starts a goroutine", fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Now" || n.Sel.Name == "Since" || n.Sel.Name == "After") {
					t.Errorf("%s: a machine reads the clock", fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func run(t *testing.T, dir string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	// This module is outside the workspace and tested with GOWORK=off; the
	// workspace is what is looked at.
	cmd.Env = append(os.Environ(), "GOWORK=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v in %s: %v", name, args, dir, err)
	}
	return out
}
