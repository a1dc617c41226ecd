package cli

import (
	"fmt"
	"io/fs"
	"os"
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
func readSource(path string) (*hearthv1.Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usagef("--source: %w", err)
	}
	c := &collector{root: path}
	if info.IsDir() {
		err = filepath.WalkDir(path, c.visit)
	} else {
		c.root = filepath.Dir(path)
		err = c.add(path, info)
	}
	if err != nil {
		return nil, usagef("--source %s: %w", path, err)
	}
	if len(c.files) == 0 {
		return nil, usagef("--source %s: no file in it", path)
	}
	return &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{Files: c.files}}}, nil
}

type collector struct {
	root  string
	files []*hearthv1.InlineFile
	bytes int64
}

func (c *collector) visit(path string, entry fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case entry.IsDir():
		if path != c.root && slices.Contains(skipped, entry.Name()) {
			return fs.SkipDir
		}
		return nil
	case filepath.Ext(path) == ".pyc":
		return nil
	case !entry.Type().IsRegular():
		return fmt.Errorf("%s is no regular file; a source has files and folders only: copy what it leads to", path)
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	return c.add(path, info)
}

func (c *collector) add(path string, info fs.FileInfo) error {
	if c.bytes += info.Size(); c.bytes > maxSourceBytes {
		return fmt.Errorf("more than %d bytes (1 MiB) in all, reached at %s; leave out what the function does not need", maxSourceBytes, path)
	}
	if len(c.files) == maxSourceFiles {
		return fmt.Errorf("more than %d files; leave out what the function does not need", maxSourceFiles)
	}
	name, err := filepath.Rel(c.root, path)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file := &hearthv1.InlineFile{Path: filepath.ToSlash(name), Executable: info.Mode()&0o100 != 0}
	if utf8.Valid(data) {
		file.Data = &hearthv1.InlineFile_Text{Text: string(data)}
	} else {
		file.Data = &hearthv1.InlineFile_Content{Content: data}
	}
	c.files = append(c.files, file)
	return nil
}
