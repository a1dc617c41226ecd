package faults

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// episode is how many steps one world lives through.
const episode = 2000

// play runs one world and returns the claims that it broke.
func play(t *testing.T, seed uint64, count int, plant *plant) []string {
	t.Helper()
	var found []string
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, plant)
		defer w.close()
		for range count {
			w.step()
			if len(w.witness.found()) > 0 {
				break
			}
		}
		w.settle()
		found = w.witness.found()
		t.Logf("seed %d: %d runs, %d invocations executed, %d answered", seed, w.model.number, len(w.witness.executed), w.model.answered)
		if plant == nil && count >= 100 && w.model.answered < count/100 {
			t.Errorf("only %d invocations were answered in %d steps: the world does not live", w.model.answered, count)
		}
	})
	return found
}

func setting(t *testing.T, name string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Whatever dies, freezes and is cut off: the promises hold.
func TestPromisesHold(t *testing.T) {
	seed := setting(t, "FAULTS_SEED", uint64(time.Now().UnixNano()))
	count := int(setting(t, "FAULTS_STEPS", 4000))
	t.Logf("seed %d, %d steps", seed, count)
	for i := 0; i < count; i += episode {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			for _, violation := range play(t, seed+uint64(i), min(episode, count-i), nil) {
				t.Errorf("FAULTS_SEED=%d FAULTS_STEPS=%d: %s", seed+uint64(i), min(episode, count-i), violation)
			}
		})
	}
}

// Each planted bug is caught, by the claim that it breaks.
func TestPlantsAreCaught(t *testing.T) {
	for _, p := range plants {
		t.Run(p.claim, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				for _, violation := range play(t, seed, episode, p) {
					if describe(violation) == p.claim {
						t.Log("caught: " + violation)
						return
					}
				}
			}
			t.Error("the bug was not caught")
		})
	}
}
