package zygotes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hearth-run/hearth/services/worker/internal/hotset"
)

// View is a set as people see it.
type View struct {
	hotset.Set
	Counts
	// Needs are the modules that a call must import for the set to be of use to it.
	Needs                     []string
	PrivateBytes, SharedBytes int64
	Pid                       int
	Rate                      float64
}

// List returns every set that is kept, grown, rests or was found unfit.
func (z *Zygotes) List() []View {
	z.mu.Lock()
	defer z.mu.Unlock()
	var out []View
	for _, s := range z.sets.Sets() {
		out = append(out, z.view(s))
	}
	return out
}

// view copies a set; the caller holds mu.
func (z *Zygotes) view(s *hotset.Set) View {
	v := View{Set: *s, Needs: z.sets.Needs(s), Rate: s.Rate(time.Now()), PrivateBytes: s.Bytes}
	if c := z.counts[s.ID]; c != nil {
		v.Counts = *c
	}
	if zy := z.live[s.ID]; zy != nil {
		v.PrivateBytes, v.SharedBytes, v.Pid = zy.facts.PrivateBytes, zy.facts.SharedBytes, zy.facts.Pid
	}
	return v
}

// Held are the zygotes that calls can start from at this moment.
func (z *Zygotes) Held() []View {
	z.mu.Lock()
	defer z.mu.Unlock()
	var out []View
	for _, s := range z.sets.Sets() {
		if z.live[s.ID] != nil && s.Phase == hotset.Live {
			out = append(out, z.view(s))
		}
	}
	return out
}

// Memory is the budget, and what is used of it, in bytes.
func (z *Zygotes) Memory() (budget, used int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.cfg.Budget + z.cfg.Reserve, z.sets.Used()
}

// ErrNotGrown: a set that was to be warmed could not be grown this time.
var ErrNotGrown = errors.New("it did not grow")

// ErrModules: what was given are no top-level modules.
var ErrModules = errors.New("no top-level modules")

// Pin keeps a set from now on. Errors: ErrModules.
func (z *Zygotes) Pin(names []string) (View, error) {
	modules, err := checked(names)
	if err != nil {
		return View{}, err
	}
	<-z.begun // what has to be done is carried out only then
	z.mu.Lock()
	defer z.mu.Unlock()
	s, effects := z.sets.Pin(time.Now(), modules)
	z.carry(effects)
	return z.view(s), nil
}

// Unpin ends a pin. Errors: ErrModules, hotset.ErrNotPinned.
func (z *Zygotes) Unpin(names []string) (View, error) {
	modules, err := checked(names)
	if err != nil {
		return View{}, err
	}
	<-z.begun
	z.mu.Lock()
	defer z.mu.Unlock()
	s, effects, err := z.sets.Unpin(time.Now(), modules)
	z.carry(effects)
	if err != nil {
		return View{}, err
	}
	return z.view(s), nil
}

// checked are the sorted modules of names, each of which must be one.
func checked(names []string) ([]string, error) {
	for _, name := range names {
		if tops := hotset.Tops([]string{name}); len(tops) != 1 || tops[0] != name {
			return nil, fmt.Errorf("%w: %q", ErrModules, name)
		}
	}
	return hotset.Tops(names), nil
}

// Warm grows a set now and waits until it stands. Errors: ErrModules, *UnfitError,
// ctx's cause, and why it did not grow.
func (z *Zygotes) Warm(ctx context.Context, names []string) (View, error) {
	modules, err := checked(names)
	if err != nil {
		return View{}, err
	}
	<-z.begun
	z.mu.Lock()
	s, effects := z.sets.Warm(time.Now(), modules)
	z.carry(effects)
	z.mu.Unlock()
	for {
		z.mu.Lock()
		v, changed, stopped := z.view(s), z.changed, z.life == nil
		z.mu.Unlock()
		switch {
		case v.Phase == hotset.Live:
			return v, nil
		case v.Phase == hotset.Unfit:
			return v, &UnfitError{Why: v.Why}
		case v.Phase == hotset.Resting:
			return v, fmt.Errorf("%w: %s", ErrNotGrown, v.Why)
		case stopped:
			return v, fmt.Errorf("%w: the worker is stopping", ErrNotGrown)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}
