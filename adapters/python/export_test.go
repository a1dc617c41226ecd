package python

import "time"

// Rested lets a new base start at once, whatever has happened before.
func (l *Language) Rested() {
	l.base.mu.Lock()
	defer l.base.mu.Unlock()
	l.base.until = time.Time{}
}
