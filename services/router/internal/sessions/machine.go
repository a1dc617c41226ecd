package sessions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Refusals.
var (
	// ErrExpired: the session's container is gone, with the state in it.
	ErrExpired = errors.New("the session has expired")
	// ErrTwice: the call is in the session already.
	ErrTwice = errors.New("the call is in the session already")
)

// Config bounds what is remembered of expired sessions.
type Config struct {
	// Tombstones is how many, Age for how long.
	Tombstones int
	Age        time.Duration
}

// Pin is the container of a session.
type Pin struct{ Worker, Container, Checkpoint string }

// Outcome is how a call that had its turn ended.
type Outcome uint8

// Outcomes.
const (
	// Untouched: the call never reached a container; nothing has changed.
	Untouched Outcome = iota
	// Kept: it succeeded, and its container lives on.
	Kept
	// Failed: its container is destroyed.
	Failed
)

// Effect is what a call that waits is to be told: its turn, with the container to
// go to if there is one, or why it has none.
type Effect struct {
	Call string
	Pin  Pin
	Err  error
}

// State of a session.
type State uint8

// States. The zero value is a session that is not known.
const (
	Absent State = iota
	Open
	Pinned
	Expired
)

func (s State) String() string { return [...]string{"absent", "open", "pinned", "expired"}[s] }

type event uint8

const (
	evCall event = iota
	evPin
	evUnpin
	evGone
	evFailed
)

// transitions: what is missing changes nothing.
var transitions = map[State]map[event]State{
	Absent: {evCall: Open, evPin: Pinned},
	Open:   {evPin: Pinned, evFailed: Expired},
	Pinned: {evPin: Pinned, evUnpin: Open, evGone: Expired, evFailed: Expired},
}

// Machine is the state. Not safe for concurrent use.
type Machine struct {
	cfg      Config
	sessions map[string]*session
	graves   []grave // by age
}

type session struct {
	state   State
	pin     Pin
	running string
	waiting []string
	since   time.Time
	// buried: the tombstone's time is over, while the call that met the end still
	// runs. The id is free after it, lest two calls of one session run.
	buried bool
}

type grave struct {
	id string
	at time.Time
}

// New returns a machine without sessions.
func New(cfg Config) *Machine {
	return &Machine{cfg: cfg, sessions: map[string]*session{}}
}

// Call asks for a turn. One that is free is granted at once; otherwise the turn
// comes as the effect of a later event. Errors: ErrExpired, ErrTwice.
func (m *Machine) Call(now time.Time, id, call string) ([]Effect, error) {
	m.bury(now)
	s := m.sessions[id]
	switch {
	case s == nil:
		s = &session{since: now}
		m.sessions[id] = s
		m.step(now, id, s, evCall)
	case s.state == Expired:
		return nil, fmt.Errorf("session %s: %w", id, ErrExpired)
	case s.running == call || slices.Contains(s.waiting, call):
		return nil, fmt.Errorf("session %s, call %s: %w", id, call, ErrTwice)
	}
	s.waiting = append(s.waiting, call)
	return m.next(id, s), nil
}

// Leave takes back a call that waits. It is false when the call waits no longer:
// it has its turn, or was refused.
func (m *Machine) Leave(id, call string) bool {
	s := m.sessions[id]
	if s == nil {
		return false
	}
	i := slices.Index(s.waiting, call)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	m.tidy(id, s)
	return true
}

// Done ends the turn of a call.
func (m *Machine) Done(now time.Time, id, call string, outcome Outcome) []Effect {
	s := m.sessions[id]
	if s == nil || s.running != call {
		return nil
	}
	s.running = ""
	if outcome == Failed {
		m.step(now, id, s, evFailed)
	}
	return m.next(id, s)
}

// Pin learns the container of a session, from an answer or from a report.
func (m *Machine) Pin(now time.Time, id string, pin Pin) []Effect {
	s := m.sessions[id]
	if s == nil {
		s = &session{since: now}
		m.sessions[id] = s
	}
	if m.step(now, id, s, evPin) {
		if pin.Checkpoint == "" && pin.Container == s.pin.Container {
			pin.Checkpoint = s.pin.Checkpoint
		}
		s.pin = pin
	}
	return m.next(id, s)
}

// Unpin leaves the session without its container, which has failed a step of its
// own: the next call starts cold.
func (m *Machine) Unpin(now time.Time, id, worker, container string) []Effect {
	return m.lose(now, id, worker, container, evUnpin)
}

// Gone ends a session whose container is gone: removed, idle for too long, or
// lost with its worker. A container that it is not pinned to changes nothing.
func (m *Machine) Gone(now time.Time, id, worker, container string) []Effect {
	return m.lose(now, id, worker, container, evGone)
}

func (m *Machine) lose(now time.Time, id, worker, container string, ev event) []Effect {
	s := m.sessions[id]
	if s == nil || s.pin.Worker != worker || s.pin.Container != container {
		return nil
	}
	if m.step(now, id, s, ev) {
		s.pin = Pin{}
	}
	return m.next(id, s)
}

// step is the only place where a state changes.
func (m *Machine) step(now time.Time, id string, s *session, ev event) bool {
	to, ok := transitions[s.state][ev]
	if !ok {
		return false
	}
	s.state = to
	if to == Expired {
		s.pin = Pin{}
		m.graves = append(m.graves, grave{id, now})
		m.bury(now)
	}
	return true
}

// next passes the turn on, or refuses everyone who waits for a session that ended.
func (m *Machine) next(id string, s *session) []Effect {
	var effects []Effect
	switch {
	case s.state == Expired:
		for _, call := range s.waiting {
			effects = append(effects, Effect{Call: call, Err: fmt.Errorf("session %s: %w", id, ErrExpired)})
		}
		s.waiting = nil
	case s.running == "" && len(s.waiting) > 0:
		s.running = s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		effects = append(effects, Effect{Call: s.running, Pin: s.pin})
	}
	m.tidy(id, s)
	return effects
}

// tidy forgets an open session that nobody uses, and an expired one that is buried.
func (m *Machine) tidy(id string, s *session) {
	remembered := s.state == Pinned || s.state == Expired && !s.buried
	if !remembered && s.running == "" && len(s.waiting) == 0 {
		delete(m.sessions, id)
	}
}

// bury forgets the oldest expired sessions past the bounds.
func (m *Machine) bury(now time.Time) {
	n := 0
	for n < len(m.graves) && (len(m.graves)-n > m.cfg.Tombstones || now.Sub(m.graves[n].at) > m.cfg.Age) {
		if s := m.sessions[m.graves[n].id]; s != nil && s.state == Expired {
			s.buried = true
			m.tidy(m.graves[n].id, s)
		}
		n++
	}
	m.graves = m.graves[n:]
}

// View is a session as the machine knows it.
type View struct {
	ID      string
	State   State
	Pin     Pin
	Running string
	Waiting int
	Since   time.Time
}

// Views returns every session, by id; the expired ones as far as they are
// remembered.
func (m *Machine) Views() []View {
	views := make([]View, 0, len(m.sessions))
	for id, s := range m.sessions {
		views = append(views, View{ID: id, State: s.state, Pin: s.pin, Running: s.running, Waiting: len(s.waiting), Since: s.since})
	}
	slices.SortFunc(views, func(a, b View) int { return strings.Compare(a.ID, b.ID) })
	return views
}
