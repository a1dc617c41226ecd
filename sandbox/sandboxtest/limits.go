//go:build linux

package sandboxtest

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/hearth-run/hearth/sandbox"
)

// limitTests: a program takes as much as it can get.
var limitTests = map[string]func(*testing.T, *suite){
	"ForkBomb":        forkBomb,
	"ScratchFilled":   scratchFilled,
	"MemoryEaten":     memoryEaten,
	"MemoryInScratch": memoryInScratch,
	"MemoryGrows":     memoryGrows,
	"CPUShare":        cpuShare,
	"FileSize":        fileSize,
	"StatsCount":      statsCount,
}

func forkBomb(t *testing.T, s *suite) {
	spec := python(t, "forkbomb", "40")
	spec.Limits.Pids = 40
	held(t, s, s.open(t), spec)
}

func scratchFilled(t *testing.T, s *suite) {
	held(t, s, s.open(t), python(t, "fill", "/tmp", strconv.Itoa(4<<20), "/dev/shm", strconv.Itoa(1<<20)))
}

func memoryEaten(t *testing.T, s *suite) {
	spec := python(t, "eat")
	spec.Limits.Memory = 64 << 20
	b := start(t, s.open(t), spec)
	b.line(t)
	if _, err := b.stdin.Write([]byte("!")); err != nil {
		t.Fatal(err)
	}
	exit := b.end(t)
	if exit.Signal != syscall.SIGKILL || exit.OOMKills < 1 || exit.Killed {
		t.Errorf("%+v, want an OOM kill told by the kernel", exit)
	}
	stats, err := b.Stats()
	if err != nil || stats.OOMKills != exit.OOMKills || stats.MemoryPeakBytes > 64<<20 {
		t.Errorf("%+v, %v", stats, err)
	}
}

// memoryInScratch: files in scratch count against the memory limit too.
func memoryInScratch(t *testing.T, s *suite) {
	spec := shell("exec head -c 100000000 /dev/zero >/tmp/big")
	spec.Scratch[0].Bytes = 1 << 30
	spec.Limits.Memory = 32 << 20
	b := start(t, s.open(t), spec)
	if exit := b.end(t); exit.OOMKills < 1 {
		t.Errorf("%+v: %s", exit, b.rest(t))
	}
}

// memoryGrows: the program reaches 90 % of its limit, this is told, the limit is
// raised while it runs, and it goes on; nothing was killed.
func memoryGrows(t *testing.T, s *suite) {
	spec := python(t, "eat")
	spec.Limits.Memory = 48 << 20
	b := start(t, s.open(t), spec)
	b.line(t)
	pressure, limit := b.Pressure(), spec.Limits.Memory
	for limit < 192<<20 {
		eat(t, b)
		// The kernel looks every 128 pages, so that a little more has to be in use.
		if memory(t, b).MemoryBytes < limit/10*9+1<<20 {
			continue
		}
		select {
		case <-pressure:
		case <-patience(t).Done():
			t.Fatalf("no pressure told at %+v", memory(t, b))
		}
		limit *= 2
		if err := b.Grow(limit); err != nil {
			t.Fatal(err)
		}
	}
	if stats := memory(t, b); stats.MemoryLimitBytes != limit || stats.OOMKills != 0 {
		t.Errorf("%+v", stats)
	}
	_ = b.stdin.Close()
	if exit := b.end(t); exit != (sandbox.Exit{}) {
		t.Errorf("%+v: %s", exit, b.rest(t))
	}
}

// eat makes the program take one more MiB.
func eat(t *testing.T, b *box) {
	t.Helper()
	if _, err := b.stdin.Write([]byte("1")); err != nil {
		t.Fatal(err)
	}
	b.line(t)
}

func memory(t *testing.T, b *box) sandbox.Stats {
	t.Helper()
	stats, err := b.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// cpuShare: a twentieth of a core; 50 ms of work need a second of time, less what one
// period lends. The kernel's arithmetic, not a race.
func cpuShare(t *testing.T, s *suite) {
	spec := python(t, "prelude")
	spec.Limits.MilliCPU = 50
	spec.Argv[5] = `
import time
wall, cpu = time.monotonic(), time.process_time()
while time.process_time() - cpu < 0.05:
    pass
print("HELD" if time.monotonic() - wall > 0.5 else "took %.3f s" % (time.monotonic() - wall))`
	held(t, s, s.open(t), spec)
}

func fileSize(t *testing.T, s *suite) {
	spec := shell("head -c 100000 /dev/zero >/tmp/big; echo $?; stat -c %s /tmp/big")
	spec.Limits.FileBytes = 8192
	b := start(t, s.open(t), spec)
	if out := b.rest(t); out != "File size limit exceeded\n153\n8192" && out != "153\n8192" {
		t.Errorf("%q", out)
	}
	b.end(t)
}

func statsCount(t *testing.T, s *suite) {
	b := start(t, s.open(t), python(t, "eat"))
	b.line(t)
	stats, err := b.Stats()
	if err != nil || stats.MemoryBytes == 0 || stats.MemoryPeakBytes < stats.MemoryBytes/2 ||
		stats.MemoryLimitBytes != 256<<20 || stats.CPU <= 0 || (s.Pids && stats.Pids != 2) {
		t.Errorf("%+v, %v", stats, err)
	}
}
