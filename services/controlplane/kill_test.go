package controlplane_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/services/controlplane"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// childData tells the test binary that it is to be a control plane over a folder.
const childData = "CONTROLPLANE_TEST_DATA"

// child serves until it is killed.
func child(data string) error {
	cfg := controlplane.Default()
	cfg.Data = data
	p := controlplane.Process{Config: cfg, Listen: "unix:" + filepath.Join(data, "socket")}
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	return p.Run(context.Background(), log)
}

// process starts a control plane of its own and returns how to kill it.
func process(t *testing.T, data string) (runs hearthv1connect.RunServiceClient, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childData+"="+data)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "address") {
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
		}
	}()
	dialer := dial.New(nil)
	client, err := dialer.Client("unix:" + filepath.Join(data, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	return hearthv1connect.NewRunServiceClient(client), func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-drained
		_ = cmd.Wait() // it says that it was killed
		dialer.Close()
	}
}

// What was acknowledged is there after kill -9, whole, in every life; what was not
// is there whole or not at all.
func TestKill(t *testing.T) {
	data := t.TempDir()
	acked := map[string]string{} // by name: uid
	for life := range 3 {
		runs, kill := process(t, data)
		check(t, runs, acked)
		for name, uid := range createUntilKilled(t, runs, kill, life) {
			acked[name] = uid
		}
	}
	if len(acked) < 3*25 {
		t.Errorf("only %d creates were acknowledged", len(acked))
	}
	runs, kill := process(t, data)
	check(t, runs, acked)
	kill()
}

// createUntilKilled creates from eight callers and kills the process once 25 or
// more are acknowledged and others are under way.
func createUntilKilled(t *testing.T, runs hearthv1connect.RunServiceClient, kill func(), life int) map[string]string {
	t.Helper()
	var mu sync.Mutex
	acked := map[string]string{}
	enough := make(chan struct{})
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("r-%d-%d-%d", life, c, i)
				res, err := runs.CreateRun(context.Background(), &hearthv1.CreateRunRequest{Name: name, Spec: function()})
				if err != nil {
					return // the process is dead
				}
				mu.Lock()
				if acked[name] = res.GetRun().GetUid(); len(acked) == 25 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	kill()
	callers.Wait()
	return acked
}

func check(t *testing.T, runs hearthv1connect.RunServiceClient, acked map[string]string) {
	t.Helper()
	for name, uid := range acked {
		res, err := runs.GetRun(context.Background(), &hearthv1.GetRunRequest{Name: name, Uid: uid})
		if err != nil {
			t.Errorf("%s is lost: %v", name, err)
			continue
		}
		if res.GetRun().GetSpec().GetSource().GetInline().GetFiles()[0].GetText() == "" {
			t.Errorf("%s has lost its contents", name)
		}
	}
}
