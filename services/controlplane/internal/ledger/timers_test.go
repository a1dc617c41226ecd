package ledger

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// timers agree with a plain map, whatever is set and cleared.
func TestTimers(t *testing.T) {
	epoch := time.Unix(0, 0)
	rapid.Check(t, func(t *rapid.T) {
		timers, model := newTimers(), map[string]time.Time{}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "key"))
			at := epoch.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "at")))
			if rapid.Bool().Draw(t, "set") {
				timers.set(key, at)
				model[key] = at
			} else {
				timers.clear(key)
				delete(model, key)
			}
			next, any := timers.next()
			if any != (len(model) > 0) {
				t.Fatal("empty or not")
			}
			due := 0
			for _, at := range model {
				if at.Before(next) {
					t.Fatal("next is not the first")
				}
				if !at.After(epoch.Add(4)) {
					due++
				}
			}
			keys := timers.due(epoch.Add(4), 100)
			for _, key := range keys {
				if model[key].After(epoch.Add(4)) {
					t.Fatal("not due")
				}
			}
			if len(keys) != due || len(timers.due(epoch.Add(4), 2)) != min(due, 2) {
				t.Fatalf("%d due, want %d", len(keys), due)
			}
		}
	})
}
