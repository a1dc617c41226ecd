package runtimetest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/adapters/runtimetest"
	"github.com/hearth-run/hearth/adapters/runtimetest/internal/violator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is what the suite allows in green runs on a busy machine, and hasty what
// it allows a fake that is known to hang.
const (
	soon  = 30 * time.Second
	hasty = 2 * time.Second
	// crowd is enough for a race to show in a fake; real servers get a thousand.
	crowd = 200
)

// timed are the cases that need a fake with short limits.
var timed = []string{"FR-LOD-06", "FR-PRC-10", "FR-TIM-08", "FR-UNR-13"}

func settings(short bool) violator.Settings {
	if short {
		return violator.Settings{Load: 300 * time.Millisecond, Invoke: 300 * time.Millisecond, Drain: 300 * time.Millisecond, Grace: 50 * time.Millisecond}
	}
	return violator.Settings{Load: time.Minute, Invoke: time.Minute, Drain: time.Minute, Grace: 50 * time.Millisecond}
}

// fake starts a fake and returns it as a target.
func fake(t *testing.T, cfg violator.Settings) runtimetest.Target {
	t.Helper()
	server, err := violator.Serve(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	files, err := violator.Fixtures()
	if err != nil {
		t.Fatal(err)
	}
	set, err := runtimetest.FromFS(files)
	if err != nil {
		t.Fatal(err)
	}
	return runtimetest.Target{
		URL: server.URL(), Workspace: t.TempDir(), Fixtures: set, Processes: server.Processes, Restart: server.Restart,
		Times: runtimetest.Times{Load: cfg.Load, Invoke: cfg.Invoke, Drain: cfg.Drain},
	}
}

func run(t *testing.T, target runtimetest.Target, options runtimetest.Options) []runtimetest.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	results, err := runtimetest.Run(ctx, target, options)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// A Runtime that keeps the contract passes every case, over both protocols.
func TestFaithfulPasses(t *testing.T) {
	passed := map[string]bool{}
	for name, only := range map[string][]string{"long": nil, "short": timed} {
		for _, r := range run(t, fake(t, settings(name == "short")), runtimetest.Options{Only: only, Soon: soon, Storm: crowd}) {
			switch r.Verdict {
			case runtimetest.Pass:
				passed[r.ID+" "+string(r.Protocol)] = true
			case runtimetest.Fail:
				t.Errorf("%s over %s: expected %s, saw %s", r.ID, r.Protocol, r.Expected, r.Seen)
			}
		}
	}
	for _, r := range run(t, fake(t, violator.Settings{Broken: violator.Switch{BaseOnly: true}}), runtimetest.Options{Only: []string{"FR-ERR-09"}, Soon: soon}) {
		passed[r.ID+" "+string(r.Protocol)] = r.Verdict == runtimetest.Pass
	}
	for _, c := range runtimetest.Cases() {
		for _, p := range []runtimetest.Protocol{runtimetest.Connect, runtimetest.GRPC} {
			if !passed[c.ID+" "+string(p)] {
				t.Errorf("%s did not pass over %s", c.ID, p)
			}
		}
	}
}

// Each way to break the contract turns its cases red, over one protocol or the
// other by turns: what is broken lies behind both.
func TestViolationsAreSeen(t *testing.T) {
	protocols := []runtimetest.Protocol{runtimetest.Connect, runtimetest.GRPC}
	for i, sw := range violator.Switches() {
		t.Run(sw.Name, func(t *testing.T) {
			t.Parallel()
			cfg := settings(sw.Short)
			cfg.Broken = sw
			target := fake(t, cfg)
			target.Protocols = protocols[i%2 : i%2+1]
			for _, r := range run(t, target, runtimetest.Options{Only: sw.Breaks, Soon: hasty, Wait: soon, Storm: crowd}) {
				if r.Verdict != runtimetest.Fail {
					t.Errorf("%s is %s: %s", r.ID, r.Verdict, r.Seen)
				}
			}
		})
	}
}

// A case that no violation turns red is not a case.
func TestEveryCaseHasItsViolation(t *testing.T) {
	seen := map[string]bool{}
	for _, sw := range violator.Switches() {
		for _, id := range sw.Breaks {
			seen[id] = true
		}
	}
	for _, c := range runtimetest.Cases() {
		if !seen[c.ID] {
			t.Errorf("%s: no switch breaks it", c.ID)
		}
		delete(seen, c.ID)
	}
	for id := range seen {
		t.Errorf("%s: a switch breaks it and it is no case", id)
	}
}

func TestCasesAreWellFormed(t *testing.T) {
	ids, claims := map[string]bool{}, map[string]bool{}
	for _, c := range runtimetest.Cases() {
		if ids[c.ID] || claims[c.Claim] {
			t.Errorf("%s: there twice", c.ID)
		}
		ids[c.ID], claims[c.Claim] = true, true
		if c.Clause == "" || !strings.HasSuffix(c.Claim, ".") {
			t.Errorf("%s: clause %q, claim %q", c.ID, c.Clause, c.Claim)
		}
	}
}

// The sets that ship have everything, but for what their language cannot do.
func TestBuiltinFixturesAreWhole(t *testing.T) {
	lacking := map[string][]string{
		"python": {"json", "text", "binary"},
		"bash":   {"counter", "unencodable"},
		"node":   {"json", "text", "binary"},
	}
	if got := slices.Sorted(maps.Keys(lacking)); !slices.Equal(got, runtimetest.Languages()) {
		t.Fatalf("languages %v, want %v", runtimetest.Languages(), got)
	}
	for language, without := range lacking {
		set, err := runtimetest.Builtin(language)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, b := range runtimetest.Behaviours() {
			if (set.Manifest.Handlers[b.Name] == "") != slices.Contains(without, b.Name) {
				t.Errorf("%s: handler %s: %q", language, b.Name, set.Manifest.Handlers[b.Name])
			}
		}
		if len(set.Manifest.Invalid) != len(runtimetest.InvalidHandlers()) || set.Manifest.Symlink == nil {
			t.Errorf("%s: invalid handlers %v", language, set.Manifest.Invalid)
		}
	}
}

func TestTargetsAreChecked(t *testing.T) {
	set, err := runtimetest.Builtin("bash")
	if err != nil {
		t.Fatal(err)
	}
	for want, target := range map[string]runtimetest.Target{
		"the URL is empty":   {Fixtures: set, Workspace: "/tmp"},
		"no fixtures":        {URL: "http://127.0.0.1:1", Workspace: "/tmp"},
		"is not absolute":    {URL: "http://127.0.0.1:1", Fixtures: set, Workspace: "tmp"},
		"unknown protocol":   {URL: "http://127.0.0.1:1", Fixtures: set, Workspace: "/tmp", Protocols: []runtimetest.Protocol{"x"}},
		"reach the target":   {URL: "http://127.0.0.1:1", Fixtures: set, Workspace: t.TempDir()},
		"want http://HOST:P": {URL: "nonsense", Fixtures: set, Workspace: t.TempDir()},
	} {
		if _, err := runtimetest.Run(t.Context(), target, runtimetest.Options{Soon: 200 * time.Millisecond}); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
