package runtimetest

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed fixtures
var builtins embed.FS

// ManifestFile is the file that says what a folder of fixtures holds.
const ManifestFile = "fixture.json"

// Fixtures are the functions of one language that the suite registers: a folder
// that is copied into each registration's working directory, and its manifest.
type Fixtures struct {
	Manifest Manifest
	files    fs.FS
}

// Manifest names what each fixture does. Everything in it is optional but the
// language: cases that need what is not there are skipped.
type Manifest struct {
	// Language is for the report.
	Language string `json:"language"`
	// Handlers maps a behaviour (see Behaviours) to the handler that has it.
	Handlers map[string]string `json:"handlers"`
	// Invalid maps a way of not being a handler (see InvalidHandlers) to a handler
	// string that is wrong in this way.
	Invalid map[string]string `json:"invalid"`
	// Symlink is a file of the folder that is also reached through a link that
	// leaves the working directory.
	Symlink *Symlink `json:"symlink,omitempty"`
	// Executions maps a behaviour (see ExecutionBehaviours) to what the base
	// service is asked to run.
	Executions map[string]Execution `json:"executions"`
	// RefusesInvalidJSON says that a payload of application/json that is no JSON is
	// InvalidArgument, because the handler gets it decoded.
	RefusesInvalidJSON bool `json:"refuses_invalid_json"`
}

// Symlink is a link that the suite makes.
type Symlink struct {
	// Link is the name of the link in the working directory.
	Link string `json:"link"`
	// Target is the file of the folder that is moved out and linked to.
	Target string `json:"target"`
	// Handler is a handler that would be reached through the link.
	Handler string `json:"handler"`
}

// Execution is one thing to run, with the fields of ExecuteRequest.
type Execution struct {
	Handler    string   `json:"handler,omitempty"`
	Entrypoint string   `json:"entrypoint,omitempty"`
	Args       []string `json:"args,omitempty"`
	// Script is a file of the folder that is copied to the name "script", which
	// runs where neither handler nor entrypoint is given.
	Script string `json:"script,omitempty"`
}

// Languages returns the names of the fixture sets that ship with the suite.
func Languages() []string {
	entries, err := builtins.ReadDir("fixtures")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Builtin returns a fixture set that ships with the suite.
func Builtin(language string) (*Fixtures, error) {
	if !slices.Contains(Languages(), language) {
		return nil, fmt.Errorf("fixtures for %q: not among %s: name a folder with a %s", language, strings.Join(Languages(), ", "), ManifestFile)
	}
	sub, err := fs.Sub(builtins, "fixtures/"+language)
	if err != nil {
		return nil, err
	}
	return FromFS(sub)
}

// Load returns the fixture set of a folder.
func Load(dir string) (*Fixtures, error) { return FromFS(os.DirFS(dir)) }

// FromFS returns the fixture set at the root of files.
func FromFS(files fs.FS) (*Fixtures, error) {
	data, err := fs.ReadFile(files, ManifestFile)
	if err != nil {
		return nil, fmt.Errorf("read fixtures: %w", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	f := &Fixtures{files: files}
	if err := dec.Decode(&f.Manifest); err != nil {
		return nil, fmt.Errorf("read %s: %w", ManifestFile, err)
	}
	return f, f.Manifest.validate()
}

// validate names every key that the suite does not know, at once.
func (m Manifest) validate() error {
	var errs []error
	if m.Language == "" {
		errs = append(errs, fmt.Errorf("%s: language is empty", ManifestFile))
	}
	for _, part := range []struct {
		field string
		keys  []string
		known []Behaviour
	}{
		{"handlers", slices.Sorted(maps.Keys(m.Handlers)), Behaviours()},
		{"invalid", slices.Sorted(maps.Keys(m.Invalid)), InvalidHandlers()},
		{"executions", slices.Sorted(maps.Keys(m.Executions)), ExecutionBehaviours()},
	} {
		for _, key := range part.keys {
			if !slices.ContainsFunc(part.known, func(b Behaviour) bool { return b.Name == key }) {
				errs = append(errs, fmt.Errorf("%s: %s: unknown name %q: see docs/conformance.md", ManifestFile, part.field, key))
			}
		}
	}
	return errors.Join(errs...)
}

// has says whether the set has what a case needs: a handler, "invalid:NAME",
// "run:NAME", "symlink" or "decoder".
func (f *Fixtures) has(need string) bool {
	kind, key, split := strings.Cut(need, ":")
	switch {
	case need == "symlink":
		return f.Manifest.Symlink != nil
	case need == "decoder":
		return f.Manifest.RefusesInvalidJSON
	case split && kind == "invalid":
		return f.Manifest.Invalid[key] != ""
	case split && kind == "run":
		_, there := f.Manifest.Executions[key]
		return there
	default:
		return f.Manifest.Handlers[need] != ""
	}
}

// copyTo writes the files into dir, which is made, open to every user.
func (f *Fixtures) copyTo(dir string) error {
	return fs.WalkDir(f.files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, path)
		if entry.IsDir() {
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
			return os.Chmod(target, 0o777)
		}
		data, err := fs.ReadFile(f.files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o755)
	})
}
