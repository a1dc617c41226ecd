package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/folder"
	"github.com/hearth-run/hearth/services/runtimed/internal/unpack"
)

// git fetches one commit into a bare repository beside the folder and unpacks it
// from there. There is no checkout: no hook, filter, link or submodule of the
// repository takes effect.
func (p *Preparer) git(ctx context.Context, src *hearthv1.GitSource, out *folder.Folder) (string, error) {
	sub, err := checkGit(src, p.cfg.FileURLs)
	if err != nil {
		return "", err
	}
	bare, err := os.MkdirTemp(p.cfg.Workspace, temporary)
	if err != nil {
		return "", err
	}
	defer remove(bare)
	g := &repository{dir: bare, fileURLs: p.cfg.FileURLs}
	commit, err := g.fetch(ctx, src.GetUrl(), src.GetRef())
	if err != nil {
		return "", err
	}
	if err := g.unpack(ctx, commit, sub, out); err != nil {
		return "", err
	}
	return "git:" + commit, nil
}

// checkGit refuses what git would not read as a URL, a ref and a folder.
func checkGit(src *hearthv1.GitSource, fileURLs bool) (sub string, err error) {
	u, err := url.Parse(src.GetUrl())
	schemes := "https, http, ssh or git (file is for nodes with --git-files)"
	ok := err == nil && (u.Scheme == "https" || u.Scheme == "http" || u.Scheme == "ssh" || u.Scheme == "git")
	if fileURLs {
		schemes = "https, http, ssh, git or file"
		ok = ok || (err == nil && u.Scheme == "file")
	}
	if !ok {
		return "", fmt.Errorf("%w: git url %q: use a URL with the scheme %s", ErrInvalid, src.GetUrl(), schemes)
	}
	ref := src.GetRef()
	if strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, " :?*[\\^~\n\x00") || strings.Contains(ref, "..") {
		return "", fmt.Errorf("%w: git ref %q is no branch, tag or commit", ErrInvalid, ref)
	}
	sub = strings.Trim(src.GetSubdirectory(), "/")
	if sub != "" && (path.Clean(sub) != sub || sub == ".." || strings.HasPrefix(sub, "../") || strings.ContainsAny(sub, ":\n\x00")) {
		return "", fmt.Errorf("%w: git subdirectory %q is no folder of the repository", ErrInvalid, src.GetSubdirectory())
	}
	return sub, nil
}

// repository is a bare repository that lives for one preparation.
type repository struct {
	dir      string
	fileURLs bool
}

func (g *repository) fetch(ctx context.Context, from, ref string) (commit string, err error) {
	if _, err := g.run(ctx, "init", "--quiet", "--bare", "."); err != nil {
		return "", err
	}
	if _, err := g.run(ctx, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", from, ref); err != nil {
		if strings.Contains(err.Error(), "couldn't find remote ref") || strings.Contains(err.Error(), "not our ref") {
			return "", fmt.Errorf("%w: git ref %q is not in %s", ErrInvalid, ref, redact(from))
		}
		return "", fmt.Errorf("%w: fetch %s: %w", ErrUnavailable, redact(from), err)
	}
	out, err := g.run(ctx, "rev-parse", "--verify", "--end-of-options", "FETCH_HEAD^{commit}")
	if err != nil {
		return "", fmt.Errorf("%w: git ref %q names no commit: %w", ErrInvalid, ref, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// unpack streams the tree through the same checks that an archive passes.
func (g *repository) unpack(ctx context.Context, commit, sub string, out *folder.Folder) error {
	tree := commit
	if sub != "" {
		tree += ":" + sub
		kind, err := g.run(ctx, "cat-file", "-t", tree)
		if err != nil || strings.TrimSpace(string(kind)) != "tree" {
			return fmt.Errorf("%w: git subdirectory %q is no folder of commit %s", ErrInvalid, sub, commit)
		}
	}
	cmd, stderr := g.command(ctx, "archive", "--format=tar", "--end-of-options", tree)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: start git: %w", ErrUnavailable, err)
	}
	unpacked := unpack.Tar(ctx, pipe, out)
	if unpacked != nil {
		err = errors.Join(unpacked, cmd.Cancel())
		_ = cmd.Wait() // killed by us
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: git archive: %w: %s", ErrUnavailable, err, tail(stderr.Bytes()))
	}
	return nil
}

func (g *repository) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd, stderr := g.command(ctx, args...)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, tail(stderr.Bytes()))
	}
	return out, nil
}

// command is git with no configuration but ours, asking nobody for a password,
// in a process group that ends as a whole.
func (g *repository) command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, "git", append([]string{
		"-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never", "-c", "gc.auto=0",
		"-c", "maintenance.auto=false", "-c", "fetch.fsckObjects=true", "-c", "submodule.recurse=false",
		"-c", "core.attributesFile=/dev/null", "-c", "credential.helper=",
	}, args...)...)
	allowed := "https:http:ssh:git"
	if g.fileURLs {
		allowed += ":file"
	}
	cmd.Dir = g.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=true", "SSH_ASKPASS=true", "GIT_SSH_COMMAND=ssh -oBatchMode=yes",
		"GIT_ALLOW_PROTOCOL=" + allowed, "GIT_DIR=" + g.dir,
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return nil
	}
	cmd.WaitDelay = 2 * time.Second
	return cmd, &stderr
}

// tail is the end of what git said, for the Run's status.
func tail(b []byte) string {
	const most = 512
	b = bytes.TrimSpace(b)
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return strings.ToValidUTF8(string(b), "�")
}

// redact takes a password out of a URL.
func redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the git url"
	}
	return u.Redacted()
}
