package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
)

// Bounds of an inline source. What is larger travels as an archive.
const (
	maxSourceBytes = 1 << 20
	maxSourceFiles = 1000
)

// errLarge says that a source is no inline one.
var errLarge = errors.New("too large for an inline source")

// skipped are folders that are no part of a function's code.
var skipped = []string{".git", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache"}

// sourceFlags say where the code of a Run comes from.
type sourceFlags struct {
	Source       string `help:"Folder or file with the code; a .tar.gz file, and what has more than 1 MiB, is uploaded as an archive." placeholder:"PATH"`
	Git          string `help:"Repository with the code, instead of --source." placeholder:"URL"`
	Ref          string `help:"With --git: branch, tag or commit." default:"HEAD" placeholder:"REF"`
	Subdirectory string `help:"With --git: the folder of the repository to use." placeholder:"FOLDER"`
}

func (f sourceFlags) none() bool { return f.Source == "" && f.Git == "" }

func (f sourceFlags) check() error {
	switch {
	case f.Source != "" && f.Git != "":
		return usagef("--source and --git exclude each other: name one place")
	case f.Git == "" && (f.Subdirectory != "" || f.Ref != "HEAD"):
		return usagef("--ref and --subdirectory are for --git")
	}
	return nil
}

// source reads what the flags name; an archive is uploaded first. nil: they name
// nothing.
func (f sourceFlags) source(ctx context.Context, runs hearthv1connect.RunServiceClient) (*hearthv1.Source, error) {
	switch {
	case f.none():
		return nil, nil
	case f.Git != "":
		return &hearthv1.Source{Kind: &hearthv1.Source_Git{Git: &hearthv1.GitSource{Url: f.Git, Ref: f.Ref, Subdirectory: f.Subdirectory}}}, nil
	}
	info, err := os.Stat(f.Source)
	if err != nil {
		return nil, usagef("--source: %w", err)
	}
	if info.Mode().IsRegular() && (strings.HasSuffix(f.Source, ".tar.gz") || strings.HasSuffix(f.Source, ".tgz")) {
		return uploadFile(ctx, runs, f.Source)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, usagef("--source %s is neither a file nor a folder: give the code as one of them", f.Source)
	}
	folder, file := f.Source, "."
	if !info.IsDir() {
		folder, file = filepath.Split(filepath.Clean(f.Source))
	}
	fsys := os.DirFS(filepath.Clean(folder))
	source, err := collect(fsys, file)
	if errors.Is(err, errLarge) {
		source, err = uploadFolder(ctx, runs, fsys, file)
	}
	if err != nil && !errors.As(err, new(uploadError)) {
		err = usagef("--source %s: %w", f.Source, err)
	}
	return source, err
}

// collect reads one file of fsys, or all beneath a folder, under their paths
// from there, into an inline source.
// Errors: errLarge, what cannot be part of a source, those of the file system.
func collect(fsys fs.FS, root string) (*hearthv1.Source, error) {
	c := &collector{fsys: fsys}
	if err := pieces(fsys, root, c.add); err != nil {
		return nil, err
	}
	if len(c.files) == 0 {
		return nil, fmt.Errorf("no file in it")
	}
	return &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{Files: c.files}}}, nil
}

// pieces visits the files that belong to a source: each passes its path in fsys,
// and the path that it has in the source.
func pieces(fsys fs.FS, root string, each func(name, as string) error) error {
	return fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name != root && slices.Contains(skipped, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) == ".pyc":
			return nil
		case name == root:
			return each(name, path.Base(name))
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is no regular file; a source has files and folders only: copy what it leads to", name)
		case root == ".":
			return each(name, name)
		}
		return each(name, name[len(root)+1:])
	})
}

type collector struct {
	fsys  fs.FS
	files []*hearthv1.InlineFile
	bytes int64
}

func (c *collector) add(name, as string) error {
	info, err := fs.Stat(c.fsys, name)
	if err != nil {
		return err
	}
	if c.bytes += info.Size(); c.bytes > maxSourceBytes || len(c.files) == maxSourceFiles {
		return errLarge
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
