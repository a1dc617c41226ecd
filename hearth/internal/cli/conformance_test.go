package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/adapters/bash"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

// bashServer serves Bash functions until the test ends.
func bashServer(t *testing.T) (address, workspace string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	workspace = t.TempDir()
	language, err := bash.New(bash.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := runtimeserver.New(runtimeserver.Default(workspace), runtimeserver.Deps{Log: log, Language: language})
	if err != nil {
		t.Fatal(err)
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		t.Fatal(err)
	}
	server.Register(rpc)
	edge, err := serve.New(serve.Config{Listen: "unix:" + filepath.Join(t.TempDir(), "s")}, log, rpc)
	if err != nil {
		t.Fatal(err)
	}
	if err := edge.Listen(); err != nil {
		t.Fatal(err)
	}
	var g group.Group
	g.Add("runtime server", server.Run)
	g.Add("edge", edge.Run)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return edge.Address(), workspace
}

func TestConformanceRuntime(t *testing.T) {
	address, workspace := bashServer(t)
	hearth := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := Main(t.Context(), Shell{Out: &out, Err: &errs},
			append([]string{"conformance", "runtime", "--target", address, "--workspace", workspace}, args...))
		return code, out.String(), errs.String()
	}
	code, out, errs := hearth("--language", "bash", "--only", "FR-REG-01,FR-REG-06", "-o", "json")
	var report struct{ Results []struct{ Verdict string } }
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || len(report.Results) != 4 {
		t.Errorf("exit code %d, %v, %d results: %s", code, err, len(report.Results), errs)
	}
	if code, out, _ := hearth("--language", "bash", "--only", "FR-STA-06", "--protocol", "grpc"); code != 0 || !strings.Contains(out, "1 passed, 0 failed, 0 skipped: the target conforms") {
		t.Errorf("exit code %d: %s", code, out)
	}
	mine := t.TempDir()
	manifest := `{"language": "mine", "handlers": {"echo": "nowhere.f"}, "invalid": {}, "executions": {}, "refuses_invalid_json": false}`
	if err := os.WriteFile(filepath.Join(mine, "fixture.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = hearth("--language", mine, "--only", "FR-REG-01", "--protocol", "connect", "-o", "junit")
	var junit struct {
		Suites []struct {
			Failures int `xml:"failures,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(out), &junit); code != 1 || err != nil || len(junit.Suites) != 1 || junit.Suites[0].Failures != 1 || !strings.Contains(errs, "HANDLER_INVALID") {
		t.Errorf("exit code %d, %v: %s %s", code, err, out, errs)
	}
	if code, _, errs := hearth("--language", "cobol"); code != 2 || !strings.Contains(errs, "bash, node, python") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, errs := hearth("--target", "unix:"+filepath.Join(mine, "s"), "--soon", "100ms"); code != 1 || strings.Contains(errs, "hearth up") || !strings.Contains(errs, "reach the target") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, errs := hearth("--only", "XX-"); code != 2 || !strings.Contains(errs, "no case starts with") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
