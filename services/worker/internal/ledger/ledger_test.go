package ledger_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/hearth-run/hearth/services/worker/internal/ledger"
)

func TestReserve(t *testing.T) {
	l := ledger.New(ledger.Capacity{Memory: 100, GPUMemory: 10, MaxContainers: 3})
	for _, step := range []struct {
		name string
		d    ledger.Demand
		full string
	}{
		{"a", ledger.Demand{Memory: 60, GPUMemory: 10}, ""},
		{"b", ledger.Demand{Memory: 41}, "memory bytes"},
		{"b", ledger.Demand{Memory: 1, GPUMemory: 1}, "GPU memory bytes"},
		{"b", ledger.Demand{Memory: 40}, ""},
		{"c", ledger.Demand{}, ""},
		{"d", ledger.Demand{}, "containers"},
	} {
		err := l.Reserve(step.name, step.d)
		var full *ledger.FullError
		if step.full == "" && err != nil || step.full != "" && (!errors.As(err, &full) || full.What != step.full) {
			t.Errorf("reserve %s: %v, want full of %q", step.name, err, step.full)
		}
	}
	if l.Reserve("a", ledger.Demand{}) == nil {
		t.Error("one container reserved twice")
	}
	if !l.Release("a") || l.Release("a") {
		t.Error("a release counts once")
	}
}

func TestGrow(t *testing.T) {
	l := ledger.New(ledger.Capacity{Memory: 1000})
	for name, d := range map[string]ledger.Demand{"bounded": {Memory: 100, MaxMemory: 150}, "open": {Memory: 100}} {
		if err := l.Reserve(name, d); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		want int64
		ok   bool
	}{
		{"bounded", 150, true}, {"bounded", 150, false},
		{"open", 200, true}, {"open", 400, true}, {"open", 800, true},
		{"open", 850, true}, // what is left beside the 150
		{"open", 850, false}, {"gone", 0, false},
	} {
		if got, ok := l.Grow(step.name); got != step.want || ok != step.ok {
			t.Errorf("grow %s: %d %v, want %d %v", step.name, got, ok, step.want, step.ok)
		}
	}
}

func TestTwice(t *testing.T) {
	l := ledger.New(ledger.Capacity{Memory: 1000})
	for _, tc := range []struct {
		d    ledger.Demand
		want int64
		ok   bool
	}{
		{ledger.Demand{Memory: 400}, 800, true}, {ledger.Demand{Memory: 460}, 460, false},
		{ledger.Demand{Memory: 100, MaxMemory: 200}, 200, true}, {ledger.Demand{Memory: 100, MaxMemory: 199}, 100, false},
	} {
		if got, ok := l.Twice(tc.d); got.Memory != tc.want || ok != tc.ok {
			t.Errorf("twice %+v: %d %v", tc.d, got.Memory, ok)
		}
	}
}

// Whatever is reserved, grown and released in whatever order: the sums are right,
// nothing is above the capacity, and the whole comes back.
func TestAccountsBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ledger.New(ledger.Capacity{Memory: 1000, GPUMemory: 100, MaxContainers: 5})
		names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		held := map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := names.Draw(t, "name")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				if l.Reserve(name, ledger.Demand{Memory: rapid.Int64Range(0, 600).Draw(t, "mem"), GPUMemory: rapid.Int64Range(0, 60).Draw(t, "gpu")}) == nil {
					held[name] = true
				}
			case 1:
				l.Grow(name)
			case 2:
				if l.Release(name) != held[name] {
					t.Fatal("a release that does not fit")
				}
				delete(held, name)
			}
			var memory int64
			for n := range held {
				memory += l.Held(n).Memory
			}
			if got, gpu, count := l.Usage(); got != memory || got > 1000 || gpu > 100 || count != len(held) {
				t.Fatalf("usage %d %d %d, held %d in %d", got, gpu, count, memory, len(held))
			}
		}
		for n := range held {
			l.Release(n)
		}
		if memory, gpu, count := l.Usage(); memory != 0 || gpu != 0 || count != 0 {
			t.Fatalf("left over: %d %d %d", memory, gpu, count)
		}
	})
}
