package vigil

import (
	"testing"
	"time"
)

const second = time.Second

func TestObserve(t *testing.T) {
	well := func(activity int64) Answer { return Answer{Kind: Well, LastActivity: activity} }
	busy := Answer{Kind: Well, InFlight: 1, LastActivity: 1}
	silent := Answer{Kind: Silent, Text: "unavailable"}
	type step struct {
		at     time.Duration
		answer Answer
		want   string
	}
	for name, steps := range map[string][]step{
		"idle": {{1 * second, well(7), ""}, {10 * second, well(7), ""}, {11 * second, well(7), IdleTimeout}},
		"activity starts it anew, whichever way their clock went": {
			{1 * second, well(7), ""}, {9 * second, well(3), ""}, {18 * second, well(3), ""}, {19 * second, well(3), IdleTimeout}},
		"a long call is no idleness": {
			{1 * second, busy, ""}, {60 * second, busy, ""}, {61 * second, well(2), ""}, {70 * second, well(2), ""}, {71 * second, well(2), IdleTimeout}},
		"silence is not idleness":     {{1 * second, well(7), ""}, {9 * second, silent, ""}, {12 * second, silent, ""}, {14 * second, silent, Unavailable}},
		"silence that was broken":     {{1 * second, silent, ""}, {5 * second, well(1), ""}, {6 * second, silent, ""}, {10 * second, silent, ""}},
		"broken":                      {{1 * second, Answer{Kind: Broken}, InitFailed}},
		"unknown":                     {{1 * second, Answer{Kind: Unknown}, Lost}},
		"no functions any more":       {{1 * second, Answer{Kind: Unsupported}, RuntimeUnfitted}},
		"unknown after silence":       {{1 * second, silent, ""}, {2 * second, Answer{Kind: Unknown}, Lost}},
		"the first answer after ages": {{100 * second, well(9), ""}},
	} {
		v := New(0, 10*second, 5*second)
		for i, s := range steps {
			if got := v.Observe(s.at, s.answer); got.Reason != s.want {
				t.Errorf("%s, step %d: %+v, want %q", name, i, got, s.want)
			}
		}
	}
}

func TestNext(t *testing.T) {
	v := New(0, 10*second, 5*second)
	for now, want := range map[time.Duration]time.Duration{0: second, 9500 * time.Millisecond: 500 * time.Millisecond, 20 * second: 100 * time.Millisecond} {
		if got := v.Next(now, second); got != want {
			t.Errorf("at %v: %v, want %v", now, got, want)
		}
	}
	if got := New(0, 0, second).Next(time.Hour, second); got != second {
		t.Errorf("without an idle timeout: %v", got)
	}
}

func TestCadence(t *testing.T) {
	for runs, want := range map[int]time.Duration{0: second, 1: second, 25: second, 1000: 40 * second} {
		if got := Cadence(second, runs); got != want {
			t.Errorf("%d runs: %v, want %v", runs, got, want)
		}
	}
}
