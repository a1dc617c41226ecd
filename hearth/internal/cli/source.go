package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"unicode/utf8"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// Bounds of an inline source.
const (
	maxSourceBytes = 1 << 20
	maxSourceFiles = 1000
)

// skipped are folders that are no part of a function's code.
var skipped = []string{".git", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache"}

// readSource reads a file, or every file beneath a folder, into a Run's source.
func readSource(name string) (*hearthv1.Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, usagef("--source: %w", err)
	}
	folder, file := name, "."
	if !info.IsDir() {
		folder, file = filepath.Split(filepath.Clean(name))
	}
	source, err := collect(os.DirFS(filepath.Clean(folder)), file)
	if err != nil {
		return nil, usagef("--source %s: %w", name, err)
	}
	return source, nil
}

// collect reads one file of fsys, or all beneath a folder, under their paths
// from there.
func collect(fsys fs.FS, root string) (*hearthv1.Source, error) {
	c := &collector{fsys: fsys, root: root}
	if err := fs.WalkDir(fsys, root, c.visit); err != nil {
		return nil, err
	}
	if len(c.files) == 0 {
		return nil, fmt.Errorf("no file in it")
	}
	return &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{Files: c.files}}}, nil
}

type collector struct {
	fsys  fs.FS
	root  string
	files []*hearthv1.InlineFile
	bytes int64
}

func (c *collector) visit(name string, entry fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case entry.IsDir():
		if name != c.root && slices.Contains(skipped, entry.Name()) {
			return fs.SkipDir
		}
		return nil
	case path.Ext(name) == ".pyc":
		return nil
	case name == c.root:
		return c.add(name, path.Base(name))
	case !entry.Type().IsRegular():
		return fmt.Errorf("%s is no regular file; a source has files and folders only: copy what it leads to", name)
	}
	return c.add(name, c.relative(name))
}

// relative is the name of a file as seen from the root.
func (c *collector) relative(name string) string {
	if c.root == "." {
		return name
	}
	return name[len(c.root)+1:]
}

func (c *collector) add(name, as string) error {
	info, err := fs.Stat(c.fsys, name)
	if err != nil {
		return err
	}
	if c.bytes += info.Size(); c.bytes > maxSourceBytes {
		return fmt.Errorf("more than %d bytes (1 MiB) in all, reached at %s; leave out what the function does not need", maxSourceBytes, name)
	}
	if len(c.files) == maxSourceFiles {
		return fmt.Errorf("more than %d files; leave out what the function does not need", maxSourceFiles)
	}
	data, err := fs.ReadFile(c.fsys, name)
	if err != nil {
		return err
	}
	file := &hearthv1.InlineFile{Path: as, Executable: info.Mode()&0o100 != 0}
	if utf8.Valid(data) {
		file.Data = &hearthv1.InlineFile_Text{Text: string(data)}
	} else {
		file.Data = &hearthv1.InlineFile_Content{Content: data}
	}
	c.files = append(c.files, file)
	return nil
}
