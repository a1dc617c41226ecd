package process

import (
	"os/exec"
	"syscall"
	"testing"
)

// The number of a leader that has ended may be a stranger's by now.
func TestStrangerWithALeadersNumber(t *testing.T) {
	const mark = "life/group"
	begin := func(environ ...string) stat {
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		cmd.Env, cmd.SysProcAttr = append(environ, "PATH=/usr/bin:/bin"), &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		p, ok := readStat(cmd.Process.Pid)
		if !ok {
			t.Fatal("it is gone")
		}
		return p
	}
	plain, ours, anothers := begin(), begin(markName+"="+mark), begin(markName+"=life/another")
	const leader = 2 // what the number was once, in the stats below
	for name, c := range map[string]struct {
		process stat
		started int // ticks after the leader's end
		parent  bool
		group   int
		want    bool
	}{
		"was there before the leader's end": {process: plain, started: -1, group: leader, want: true},
		"was there at the leader's end":     {process: plain, group: leader, want: true},
		"a stranger":                        {process: plain, started: 1, group: leader},
		"has the mark":                      {process: ours, started: 1, group: leader, want: true},
		"has another's mark":                {process: anothers, started: 1, parent: true, group: leader},
		"was left to us, without a mark":    {process: plain, started: 1, parent: true, group: leader, want: true},
		"is in another process group":       {process: ours, started: -1, group: leader + 1},
	} {
		p := c.process
		p.group = c.group
		if !c.parent {
			p.parent = 1
		}
		g := &Group{mark: mark, past: map[int]uint64{leader: p.start - uint64(c.started)}}
		if got := g.survives(p); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if now := ticks(); now < plain.start || now > plain.start+100*60*10 {
		t.Errorf("now is %d, a process that was just started began at %d", now, plain.start)
	}
}
