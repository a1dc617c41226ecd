package zygotes

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/hotset"
)

// Process is one zygote.
type Process interface {
	// Grow makes a zygote that has imported modules too. Errors: *UnfitError, ctx's
	// cause, and of a process that has ended.
	Grow(ctx context.Context, modules []string) (Process, error)
	// Facts are what was measured when it had done its imports.
	Facts() Facts
	// Ended is closed when the process is gone, however.
	Ended() <-chan struct{}
	// Close ends it; containers that were forked from it live on.
	Close() error
}

// UnfitError says why imports can never make a zygote.
type UnfitError struct {
	// Module is at fault; "" if it is not known which.
	Module, Why string
}

func (e *UnfitError) Error() string {
	if e.Module == "" {
		return e.Why
	}
	return e.Module + ": " + e.Why
}

// Facts are a zygote's measures.
type Facts struct {
	// Import is what its imports took beyond its parent's.
	Import time.Duration
	// PrivateBytes nobody shares, SharedBytes others do.
	PrivateBytes, SharedBytes int64
	// Loaded are all the top-level modules that it has.
	Loaded []string
	Pid    int
}

// Made is a container that runs an executor, made ahead of any call.
type Made struct {
	ID string
	box.Running
}

// Config says what zygotes are kept within.
type Config struct {
	hotset.Config
	// Reserve is memory beside the Budget that is planned with, in bytes: what an import
	// takes is known only when it is done, and may be more for the moment until
	// something has gone for it.
	Reserve int64
	// Pins are import sets that are kept whatever calls them.
	Pins [][]string
	// GrowTimeout bounds the imports of one zygote, FillTimeout the start of one
	// container that is made ahead.
	GrowTimeout, FillTimeout time.Duration
	// FillPause is how long a container that is made ahead is begun after another was
	// taken: the call that took it goes first.
	FillPause time.Duration
}

// Deps are what zygotes are made with.
type Deps struct {
	Log *slog.Logger
	// Root starts the process of the root.
	Root func(ctx context.Context) (Process, error)
	// Make makes a container ahead, from a zygote of this id.
	Make func(ctx context.Context, id string, from Process) (Made, error)
	// Changed is told when the zygotes that calls can start from are others. It must
	// not block, nor call back.
	Changed func()
}

// Zygotes are those of one worker. Safe for concurrent use.
type Zygotes struct {
	cfg  Config
	deps Deps
	work sync.WaitGroup // effects that are being carried out, and watches
	// begun is closed when Run has begun.
	begun chan struct{}

	mu      sync.Mutex // guards what follows
	sets    *hotset.Machine
	live    map[string]*zygote
	ready   map[string][]*pooled // the newest last
	counts  map[string]*Counts
	weights map[string]weight
	life    context.Context // of effects; nil before Run and after
	changed chan struct{}   // closed, and made anew, with each event
}

type zygote struct {
	Process
	facts  Facts
	loaded map[string]bool
}

// pooled is a container that stands ready.
type pooled struct {
	Made
	// forget ends the watch over its own end.
	forget context.CancelFunc
}

// weight is what the containers of one set take, and how many were made.
type weight struct {
	bytes int64
	made  int
}

// Counts are the containers that calls got from one set.
type Counts struct{ Forked, FoundReady int64 }

// New returns zygotes that nothing runs of; Run comes next.
func New(cfg Config, deps Deps) *Zygotes {
	return &Zygotes{
		cfg: cfg, deps: deps, sets: hotset.New(cfg.Config, cfg.Pins), live: map[string]*zygote{},
		ready: map[string][]*pooled{}, counts: map[string]*Counts{}, weights: map[string]weight{}, changed: make(chan struct{}), begun: make(chan struct{}),
	}
}

// Run keeps the zygotes until ctx is done; then it ends them and what stands ready,
// and returns when nothing is left.
func (z *Zygotes) Run(ctx context.Context) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	z.mu.Lock()
	z.life = life
	z.carry(z.sets.Plan(time.Now()))
	z.mu.Unlock()
	close(z.begun)
	tick := time.NewTicker(time.Second) // counts and rates decay with time alone
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			z.mu.Lock()
			z.carry(z.sets.Plan(time.Now()))
			z.mu.Unlock()
		}
	}
	end()
	z.clear()
	z.work.Wait()
}

// clear ends everything that runs.
func (z *Zygotes) clear() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.life = nil
	for id, list := range z.ready {
		for _, p := range list {
			z.work.Go(func() { z.destroy(p) })
		}
		delete(z.ready, id)
	}
	for id, zy := range z.live {
		z.work.Go(func() { z.shut(id, zy) })
		delete(z.live, id)
	}
}

// Start is what a call's container starts from. The zero Start is a cold one.
type Start struct {
	// ID is the zygote's.
	ID string
	// Ready is a container that stands ready, nil if there is none.
	Ready *Made
	// From is the process to fork from when there is none.
	From Process
	// Loaded are its top-level modules.
	Loaded map[string]bool
}

// Take learns from a call's imports and says what it starts from. installed are the
// top-level modules of the packages that it brings: a zygote that has loaded one of
// them is not for it. What Take hands out is the caller's to end.
func (z *Zygotes) Take(imports, installed []string) Start {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.life == nil {
		return Start{}
	}
	id, effects := z.sets.Choose(time.Now(), imports, func(id string) bool { return z.serves(id, installed) })
	defer z.carry(effects)
	return z.hand(id)
}

// Named is Take for a call that names the zygote; the zero Start if it is not there
// or not for its packages.
func (z *Zygotes) Named(id string, installed []string) Start {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.life == nil || !z.serves(id, installed) {
		return Start{}
	}
	return z.hand(id)
}

func (z *Zygotes) serves(id string, installed []string) bool {
	zy := z.live[id]
	return zy != nil && !slices.ContainsFunc(installed, func(module string) bool { return zy.loaded[module] })
}

// hand gives out what stands ready, else the process; the caller holds mu.
func (z *Zygotes) hand(id string) Start {
	zy := z.live[id]
	if zy == nil {
		return Start{}
	}
	start := Start{ID: id, From: zy.Process, Loaded: zy.loaded}
	if p := z.pop(id); p != nil {
		start.Ready = &p.Made
	}
	return start
}

// pop takes the container that stood ready for the longest, and fills up.
func (z *Zygotes) pop(id string) *pooled {
	list := z.ready[id]
	if len(list) == 0 {
		return nil
	}
	z.ready[id] = list[1:]
	list[0].forget()
	z.carry(z.sets.Taken(time.Now(), id))
	return list[0]
}

// Started counts what a call got in fact.
func (z *Zygotes) Started(id string, ready bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	c := z.counts[id]
	if c == nil {
		c = &Counts{}
		z.counts[id] = c
	}
	if ready {
		c.FoundReady++
	} else {
		c.Forked++
	}
}

// Discard ends a container that was taken and not used.
func (z *Zygotes) Discard(made *Made) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.life == nil {
		z.destroy(&pooled{Made: *made})
		return
	}
	z.work.Go(func() { z.destroy(&pooled{Made: *made}) })
}

func (z *Zygotes) destroy(p *pooled) {
	if p.forget != nil {
		p.forget()
	}
	p.Executor.Close()
	if err := p.Walls.Destroy(); err != nil {
		z.deps.Log.Error("destroy container that was made ahead", "container_id", p.ID, "err", err)
	}
}

func (z *Zygotes) shut(id string, zy *zygote) {
	if err := zy.Close(); err != nil {
		z.deps.Log.Warn("close zygote", "checkpoint_id", id, "err", err)
	}
}
