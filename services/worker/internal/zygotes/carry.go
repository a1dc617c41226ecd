package zygotes

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hearth-run/hearth/services/worker/internal/hotset"
)

// carry begins what has to be done; the caller holds mu.
func (z *Zygotes) carry(effects []hotset.Effect) {
	close(z.changed)
	z.changed = make(chan struct{})
	if z.life == nil {
		return
	}
	for _, e := range effects {
		switch e.Do {
		case hotset.Grow:
			parent, life := z.live[e.Parent], z.life
			z.work.Go(func() { z.grow(life, e, parent) })
		case hotset.Close:
			zy := z.live[e.Set]
			delete(z.live, e.Set)
			z.work.Go(func() { z.evict(e.Set, zy) })
		case hotset.Fill:
			zy, life := z.live[e.Set], z.life
			z.work.Go(func() { z.fill(life, e.Set, zy) })
		case hotset.Drop:
			z.drop(e.Set)
		case hotset.Tell:
			z.deps.Changed()
		}
	}
}

// step hands an event to the machine and carries out what follows.
func (z *Zygotes) step(e hotset.Event) {
	z.mu.Lock()
	defer z.mu.Unlock()
	effects, err := z.sets.Step(time.Now(), e)
	if err != nil {
		z.deps.Log.Warn("zygote", "checkpoint_id", e.Set, "err", err)
	}
	z.carry(effects)
}

// grow makes a zygote; parent is nil for the root.
func (z *Zygotes) grow(ctx context.Context, e hotset.Effect, parent *zygote) {
	ctx, cancel := context.WithTimeout(ctx, z.cfg.GrowTimeout)
	defer cancel()
	log := z.deps.Log.With("checkpoint_id", e.Set, "modules", strings.Join(e.Modules, ","))
	process, err := z.make(ctx, e, parent)
	var unfit *UnfitError
	switch {
	case errors.As(err, &unfit):
		log.Warn("imports make no zygote, and are not tried again", "module", unfit.Module, "cause", unfit.Why)
		z.step(hotset.Event{Kind: hotset.Refused, Set: e.Set, Module: unfit.Module, Why: unfit.Why})
	case err != nil:
		if !errors.Is(err, context.Canceled) {
			log.Warn("zygote did not grow", "err", err)
		}
		z.step(hotset.Event{Kind: hotset.Failed, Set: e.Set, Why: err.Error()})
	default:
		z.settle(e, process)
		log.Info("zygote is live", "parent", e.Parent, "took", process.Facts().Import, "private_bytes", process.Facts().PrivateBytes)
	}
}

func (z *Zygotes) make(ctx context.Context, e hotset.Effect, parent *zygote) (Process, error) {
	if len(e.Modules) == 0 {
		return z.deps.Root(ctx)
	}
	if parent == nil {
		return nil, errors.New("the zygote to grow from has ended")
	}
	return parent.Grow(ctx, e.Modules)
}

// settle takes a zygote that stands into use, and watches for its end.
func (z *Zygotes) settle(e hotset.Effect, process Process) {
	zy := &zygote{Process: process, facts: process.Facts(), loaded: map[string]bool{}}
	for _, module := range zy.facts.Loaded {
		zy.loaded[module] = true
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.life == nil {
		z.work.Go(func() { z.shut(e.Set, zy) })
		return
	}
	z.live[e.Set] = zy
	z.work.Go(func() { z.watch(e.Set, zy) })
	effects, err := z.sets.Step(time.Now(), hotset.Event{Kind: hotset.Grown, Set: e.Set, Facts: hotset.Facts{
		Import: zy.facts.Import, Bytes: zy.facts.PrivateBytes, Loaded: zy.facts.Loaded,
	}})
	if err != nil {
		z.deps.Log.Warn("zygote", "checkpoint_id", e.Set, "err", err)
	}
	z.carry(effects)
}

// watch tells when a zygote ends that nobody ended.
func (z *Zygotes) watch(id string, zy *zygote) {
	<-zy.Ended()
	z.mu.Lock()
	mine := z.live[id] == zy
	if mine {
		delete(z.live, id)
	}
	z.mu.Unlock()
	if !mine {
		return
	}
	z.deps.Log.Warn("zygote died; it is built again, and calls start without it meanwhile", "checkpoint_id", id)
	z.shut(id, zy)
	z.step(hotset.Event{Kind: hotset.Died, Set: id, Why: "its process ended"})
}

func (z *Zygotes) evict(id string, zy *zygote) {
	if zy != nil {
		z.shut(id, zy)
	}
	z.deps.Log.Info("zygote evicted", "checkpoint_id", id)
	z.step(hotset.Event{Kind: hotset.Closed, Set: id})
}

// fill makes one container ahead.
func (z *Zygotes) fill(ctx context.Context, id string, zy *zygote) {
	if zy == nil { // it has died meanwhile
		z.filled(id, nil)
		return
	}
	pause := time.NewTimer(z.cfg.FillPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		z.filled(id, nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, z.cfg.FillTimeout)
	defer cancel()
	made, err := z.deps.Make(ctx, id, zy.Process)
	if err != nil {
		if z.current(id, zy) {
			z.deps.Log.Warn("make container ahead", "checkpoint_id", id, "err", err)
		}
		z.filled(id, nil)
		return
	}
	z.filled(id, &made)
}

// current says whether a zygote is in use: from one that is being ended nothing can
// be made, and nobody needs to hear of it.
func (z *Zygotes) current(id string, zy *zygote) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.live[id] == zy
}

// filled puts a container where calls find it; nil: it was not made.
func (z *Zygotes) filled(id string, made *Made) {
	bytes := z.weigh(id, made)
	z.mu.Lock()
	defer z.mu.Unlock()
	switch {
	case made == nil:
		z.carry(z.sets.FillFailed(time.Now(), id))
	case z.life == nil:
		p := &pooled{Made: *made}
		z.work.Go(func() { z.destroy(p) })
	default:
		ctx, forget := context.WithCancel(z.life)
		p := &pooled{Made: *made, forget: forget}
		z.ready[id] = append(z.ready[id], p)
		z.work.Go(func() { z.guard(ctx, id, p) })
		z.carry(z.sets.Filled(time.Now(), id, bytes))
	}
}

// weighings is how many containers of a zygote are made for one whose memory is read:
// they are alike, and to read it costs as much as a part of a start.
const weighings = 16

// weigh returns the memory of a container that was just made, or of one like it.
func (z *Zygotes) weigh(id string, made *Made) int64 {
	z.mu.Lock()
	w := z.weights[id]
	due := w.made%weighings == 0
	w.made++
	z.weights[id] = w
	z.mu.Unlock()
	if !due || made == nil {
		return w.bytes
	}
	stats, err := made.Walls.Stats()
	if err != nil {
		return w.bytes
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	w.bytes = stats.MemoryBytes
	z.weights[id] = w
	return w.bytes
}

// guard takes a container away that ends while it stands ready.
func (z *Zygotes) guard(ctx context.Context, id string, p *pooled) {
	if _, err := p.Walls.Wait(ctx); err != nil {
		return // it was taken, or is destroyed
	}
	z.mu.Lock()
	there := z.remove(id, p)
	if there {
		z.carry(z.sets.Taken(time.Now(), id))
	}
	z.mu.Unlock()
	if there {
		z.deps.Log.Warn("container that was made ahead ended", "container_id", p.ID, "checkpoint_id", id)
		z.destroy(p)
	}
}

func (z *Zygotes) remove(id string, p *pooled) bool {
	for i, other := range z.ready[id] {
		if other == p {
			z.ready[id] = append(z.ready[id][:i:i], z.ready[id][i+1:]...)
			return true
		}
	}
	return false
}

// drop destroys the container that was made last; the caller holds mu.
func (z *Zygotes) drop(id string) {
	list := z.ready[id]
	if len(list) == 0 {
		return
	}
	last := list[len(list)-1]
	z.ready[id] = list[:len(list)-1]
	z.work.Go(func() { z.destroy(last) })
}
