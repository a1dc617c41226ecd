package clock

import "testing"

func TestBootGoesOn(t *testing.T) {
	for before, i := Boot(), 0; i < 1000; i++ {
		now := Boot()
		if now < before || now <= 0 {
			t.Fatalf("%v after %v", now, before)
		}
		before = now
	}
}
