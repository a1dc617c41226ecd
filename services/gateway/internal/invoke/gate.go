package invoke

import "sync/atomic"

// Gate bounds how many calls a gateway has in flight, whichever Run they are for,
// so that its memory is bounded too. There is no queue: a call that does not fit
// is told at once. That is 503 and not 429, since the caller did nothing wrong
// and another gateway may have room; 429 always means that this one Run is busy.
type Gate struct {
	most int64
	now  atomic.Int64
}

// NewGate returns a gate for at most most calls.
func NewGate(most int) *Gate { return &Gate{most: int64(most)} }

// Enter takes a place, which Leave gives back.
// Errors: GATEWAY_OVERLOADED.
func (g *Gate) Enter() error {
	if g.now.Add(1) > g.most {
		g.now.Add(-1)
		return verdicts.Error(ErrOverloaded, nil)
	}
	return nil
}

// Leave gives a place back.
func (g *Gate) Leave() { g.now.Add(-1) }
