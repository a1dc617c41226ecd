package desk

import (
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	none := bound{}
	in := func(d time.Duration) bound { return bound{d, true} }
	for _, tc := range []struct {
		millis         int64
		call, lifetime bound
		want           time.Duration
	}{
		{0, none, none, 30 * time.Second},
		{5, none, none, 5 * time.Millisecond},
		{900_000, none, none, 15 * time.Minute},
		{900_001, none, none, 15 * time.Minute},
		{0, in(time.Second), none, time.Second},
		{0, none, in(2 * time.Second), 2 * time.Second},
		{1000, in(3 * time.Second), in(2 * time.Second), time.Second},
		{0, in(time.Hour), in(time.Hour), 30 * time.Second},
		{0, in(-1), none, -1},
		{0, none, in(0), 0},
	} {
		if got := budget(tc.millis, tc.call, tc.lifetime); got != tc.want {
			t.Errorf("budget(%d, %v, %v) is %v, want %v", tc.millis, tc.call, tc.lifetime, got, tc.want)
		}
	}
	for d, want := range map[time.Duration]int64{1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000} {
		if got := millis(d); got != want {
			t.Errorf("millis(%v) is %d, want %d: 0 would be the default", d, got, want)
		}
	}
}

func TestEndedIsBounded(t *testing.T) {
	var e ended
	for i := range 3 * remembered {
		e.add(string(rune('a'+i%7)) + time.Duration(i).String())
	}
	if len(e.uids) > remembered {
		t.Errorf("remembers %d", len(e.uids))
	}
	e.add("x")
	e.add("x")
	if !e.has("x") {
		t.Error("the latest is forgotten")
	}
	e.drop("x")
	if e.has("x") {
		t.Error("what is served again is still over")
	}
}

func TestGate(t *testing.T) {
	var g Gate
	if g.opened(0) {
		t.Error("a gate opens by itself")
	}
	g.Open(10)
	if !g.opened(9) || g.opened(10) {
		t.Error("the deadline itself is already outside")
	}
	g.Close()
	if g.opened(0) {
		t.Error("open after it was closed")
	}
}
