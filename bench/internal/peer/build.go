package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build returns the hearth program to measure: the named one, or one that is built
// from the workspace into dir.
func Build(ctx context.Context, named, dir string) (string, error) {
	if named != "" {
		return named, nil
	}
	out := filepath.Join(dir, "hearth")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "github.com/hearth-run/hearth/hearth")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build hearth (run this inside the workspace, or name a program with --hearth): %w", err)
	}
	return out, nil
}
