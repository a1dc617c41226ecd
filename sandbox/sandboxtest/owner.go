//go:build linux

package sandboxtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/hearth-run/hearth/sandbox"
)

// ownerEnv holds the root of the driver that this process shall own.
const ownerEnv = "HEARTH_SANDBOXTEST_OWNER"

// ownerTests: the process that owns a driver dies as suddenly as a process can.
var ownerTests = map[string]func(*testing.T, *suite){
	"OwnerKilled": ownerKilled,
}

// ownerKilled: the containers die with their owner, at once and with nobody's help, and
// leave nothing on the machine; Sweep finds nothing to do; a new driver on the same root finds nothing and works.
func ownerKilled(t *testing.T, s *suite) {
	root := t.TempDir()
	lifelineR, lifelineW := pipe(t)
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"="+root)
	owner.ExtraFiles = []*os.File{lifelineW}
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	_ = lifelineW.Close()
	ready, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || ready != "ready\n" {
		t.Fatalf("owner said %q, %v", ready, err)
	}
	if err := s.Sweep(root); err == nil {
		t.Error("swept under a living driver")
	}
	if left, err := s.Leftovers(root); err != nil || (s.Memory && len(left) == 0) {
		t.Errorf("a living driver has nothing on the machine: %v, %v", left, err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	_ = lifelineR.SetReadDeadline(time.Now().Add(wait))
	if _, err := io.ReadAll(lifelineR); err != nil { // ends when the last process has
		t.Errorf("containers have outlived their owner: %v", err)
	}
	// Nobody sweeps: what the kernel does not remove, the driver has seen to.
	for end := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		left, err := s.Leftovers(root)
		if err == nil && len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("left by the killed owner: %v, %v", left, err)
			break
		}
	}
	if err := s.Sweep(root); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Leftovers(root); err != nil || len(left) > 0 {
		t.Errorf("left after the sweep: %v, %v", left, err)
	}
	d, err := s.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := once(t, d.Create, "owned-0"); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// own is the other process: containers that hold descriptor 3 in every way that
// linger knows, then nothing more until it is killed.
func own(f Factory) int {
	d, err := f.Open(os.Getenv(ownerEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	lifeline := os.NewFile(3, "lifeline")
	for i := range 5 {
		if err := ownOne(d, i, lifeline); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println("ready")
	select {}
}

func ownOne(d sandbox.Driver, i int, lifeline *os.File) error {
	ctx := context.Background()
	spec := shell("trap '' TERM HUP; (setsid sh -c 'sleep 1000' &); while :; do sleep 1000; done")
	spec.ID = fmt.Sprintf("owned-%d", i)
	spec.Files = []*os.File{lifeline}
	c, err := d.Create(ctx, spec)
	if err != nil {
		return err
	}
	return c.Start(ctx)
}
