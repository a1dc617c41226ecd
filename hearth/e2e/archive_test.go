package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An archive is uploaded as it is; one that is none says why.
func TestArchiveSource(t *testing.T) {
	h := up(t)
	dir := t.TempDir()
	archive := filepath.Join(dir, "code.tar.gz")
	if out, err := exec.Command("tar", "-czf", archive, "-C", examples("bash", "hello"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h.create(t, "packed", "bash", "hello.greet", archive)
	h.call(t, "packed", "{}").wants(t, 200, "")
	if err := os.WriteFile(archive, []byte("no gzip at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr := h.run(t, 1, "run", "create", "bad", "-r", "bash", "--handler", "hello.greet", "--source", archive)
	if !strings.Contains(stderr, "ARCHIVE_INVALID") {
		t.Errorf("no archive: %q", stderr)
	}
	// A repository that cannot be reached is the Run's misfortune, and it says so.
	h.run(t, 2, "run", "create", "git", "-r", "bash", "--handler", "a.b", "--source", dir, "--git", "https://127.0.0.1:1/x")
	h.run(t, 2, "run", "create", "git", "-r", "bash", "--handler", "a.b", "--source", dir, "--ref", "main")
	_, stderr = h.run(t, 1, "run", "create", "git", "-r", "bash", "--handler", "a.b", "--git", "https://127.0.0.1:1/x", "--ref", "main", "--wait")
	if !strings.Contains(stderr, "SOURCE_UNAVAILABLE") {
		t.Errorf("a repository that is not there: %q", stderr)
	}
}
