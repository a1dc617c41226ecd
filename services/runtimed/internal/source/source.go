// Package source owns the folders of Runs: it prepares each beneath the
// workspace, whole or not at all, and removes it.
package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/folder"
)

// What is wrong with a source. Their texts go into the Run's status.
var (
	// ErrInvalid is the source's own fault: trying again does not help.
	ErrInvalid = errors.New("source is invalid")
	// ErrUnavailable may go away: a server that does not answer, a full disk.
	ErrUnavailable = errors.New("source is unavailable")
)

// temporary starts the names of folders that are being filled.
const temporary = ".hearth-prepare-"

// Archives fetches what was uploaded.
type Archives interface {
	// Open reads the archive with this SHA-256 (hex); the caller checks the sum.
	// Errors: ErrInvalid (there is none), ErrUnavailable.
	Open(ctx context.Context, sha256 string) (io.ReadCloser, error)
}

// Config says where and within what bounds.
type Config struct {
	// Workspace is the folder that the Runtime Server knows by the same path.
	Workspace string
	Limits    folder.Limits
	// Timeout bounds the preparation of one source.
	Timeout time.Duration
	// FileURLs allows git to read repositories of this machine.
	FileURLs bool
	// Archives may be nil: then archives are refused.
	Archives Archives
}

// Prepared is a folder that is whole.
type Prepared struct {
	// Dir is absolute.
	Dir string
	// Identity names the contents; equal identities are equal contents. At most
	// 256 bytes.
	Identity string
}

// Preparer prepares and removes folders. Safe for concurrent use, one Run at a
// time.
type Preparer struct{ cfg Config }

// New returns a preparer; the workspace is made when it is first needed.
func New(cfg Config) (*Preparer, error) {
	dir, err := filepath.Abs(cfg.Workspace)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", cfg.Workspace, err)
	}
	// The Runtime Server compares paths with symlinks resolved.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	cfg.Workspace = dir
	return &Preparer{cfg}, nil
}

// Dir is where the folder of a Run is, or would be.
func (p *Preparer) Dir(runUID string) string { return filepath.Join(p.cfg.Workspace, runUID) }

// Prepare fills a folder under a temporary name and renames it, so that a folder
// with the Run's name is always whole; what was there before goes.
// Errors: ErrInvalid, ErrUnavailable, ctx's cause.
func (p *Preparer) Prepare(ctx context.Context, runUID string, src *hearthv1.Source) (Prepared, error) {
	if err := checkUID(runUID); err != nil {
		return Prepared{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.Timeout,
		fmt.Errorf("%w: preparing it took longer than %v", ErrUnavailable, p.cfg.Timeout))
	defer cancel()
	if err := os.MkdirAll(p.cfg.Workspace, 0o755); err != nil {
		return Prepared{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	tmp, err := os.MkdirTemp(p.cfg.Workspace, temporary)
	if err != nil {
		return Prepared{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	identity, err := p.fill(ctx, tmp, src)
	if err == nil {
		err = p.place(tmp, runUID)
	}
	if err != nil {
		return Prepared{}, errors.Join(classify(ctx, err), remove(tmp))
	}
	return Prepared{Dir: p.Dir(runUID), Identity: identity}, nil
}

func checkUID(uid string) error {
	if uid == "" || uid[0] == '.' || strings.ContainsAny(uid, "/\\\x00") || len(uid) > 128 {
		return fmt.Errorf("%w: the run uid %q cannot name a folder", ErrInvalid, uid)
	}
	return nil
}

// classify makes one of the two sentinels of whatever went wrong.
func classify(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrInvalid):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrUnavailable):
		return err
	case errors.Is(err, folder.ErrRefused):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func (p *Preparer) fill(ctx context.Context, tmp string, src *hearthv1.Source) (string, error) {
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return "", err
	}
	defer root.Close()
	out := folder.New(root, p.cfg.Limits)
	switch kind := src.GetKind().(type) {
	case nil:
		return "empty", nil
	case *hearthv1.Source_Inline:
		return inline(kind.Inline, out)
	case *hearthv1.Source_Git:
		return p.git(ctx, kind.Git, out)
	case *hearthv1.Source_Archive:
		return p.archive(ctx, kind.Archive, out)
	default:
		return "", fmt.Errorf("%w: this node does not know the kind of source %T", ErrInvalid, kind)
	}
}

func (p *Preparer) place(tmp, runUID string) error {
	if err := remove(p.Dir(runUID)); err != nil {
		return err
	}
	return os.Rename(tmp, p.Dir(runUID))
}

// Remove removes the folder of a Run. An absent one is no error.
func (p *Preparer) Remove(runUID string) error {
	if err := checkUID(runUID); err != nil {
		return err
	}
	return remove(p.Dir(runUID))
}

// Sweep removes what preparations of a process that died left behind.
func (p *Preparer) Sweep() error {
	entries, err := os.ReadDir(p.cfg.Workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporary) {
			errs = append(errs, remove(filepath.Join(p.cfg.Workspace, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// remove removes a tree, also one in which user code took rights away from
// folders. It follows no links.
func remove(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	walk := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return errors.Join(err, walk)
	}
	return nil
}
