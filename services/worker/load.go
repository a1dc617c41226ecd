package worker

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/services/worker/internal/box"
)

// load reads how busy the machine and the containers are, from the kernel's
// counters: each figure is the average since the reading before.
type load struct {
	mu         sync.Mutex // guards what follows
	busy, all  uint64
	containers map[string]reading
}

type reading struct {
	cpu time.Duration
	at  time.Time
}

func newLoad() *load { return &load{containers: map[string]reading{}} }

// machine returns thousandths of a CPU in use, on the whole machine: what else
// runs on it takes from the containers too.
func (l *load) machine() int64 {
	busy, all, err := readStat("/proc/stat")
	if err != nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lastBusy, lastAll := l.busy, l.all
	l.busy, l.all = busy, all
	if all <= lastAll || busy < lastBusy {
		return 0
	}
	return int64((busy - lastBusy) * cpus() / (all - lastAll))
}

// cpus is the machine's capacity in thousandths of a CPU.
func cpus() uint64 { return uint64(runtime.NumCPU()) * 1000 }

// readStat reads the first line of /proc/stat: user nice system idle iowait irq
// softirq steal, in ticks.
func readStat(path string) (busy, all uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	line, err := bufio.NewReader(file).ReadString('\n')
	if err != nil {
		return 0, 0, err
	}
	var name string
	var ticks [8]uint64
	if _, err := fmt.Sscan(line, &name, &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]); err != nil {
		return 0, 0, fmt.Errorf("read %s: %w", path, err)
	}
	for i, t := range ticks {
		all += t
		if i != 3 && i != 4 {
			busy += t
		}
	}
	return busy, all, nil
}

// container returns thousandths of a CPU in use by one container since the last
// reading of it.
func (l *load) container(id string, cpu time.Duration, now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.containers[id]
	l.containers[id] = reading{cpu, now}
	if !known || !now.After(last.at) {
		return 0
	}
	return int64((cpu - last.cpu) * 1000 / now.Sub(last.at))
}

// keep forgets the containers that are gone.
func (l *load) keep(live map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.containers {
		if !live[id] {
			delete(l.containers, id)
		}
	}
}

// Utilization implements reports.Source.
func (w *Worker) Utilization() (*serverless.WorkerUtilization, []*serverless.ExecutorUtilization) {
	w.mu.Lock()
	memory, gpu, count := w.ledger.Usage()
	boxes := make([]*box.Box, 0, len(w.boxes))
	for _, e := range w.boxes {
		boxes = append(boxes, e.box)
		if e.left() || !e.reported {
			// Routers count what they were told of: until then by its call, and no
			// more once that is over, since admit waits for such a place.
			held := w.ledger.Held(e.box.ID)
			memory, gpu, count = memory-held.Memory, gpu-held.GPUMemory, count-1
		}
	}
	w.mu.Unlock()
	worker := &serverless.WorkerUtilization{
		WorkerId: w.cfg.ID, CpuUtil: w.load.machine(), CpuTotal: int64(cpus()),
		MemUsed: memory, MemTotal: w.cfg.Memory, ExecutorCount: int32(count),
		GpuMemUsed: gpu, GpuMemTotal: w.cfg.GPUMemory,
		HasCheckpoints: true, Starts: w.starts.counts(),
	}
	worker.CheckpointIds, worker.Zygotes = w.held()
	live := map[string]bool{}
	var containers []*serverless.ExecutorUtilization
	for _, b := range boxes {
		stats, err := b.Stats()
		if err != nil {
			continue // it starts or ends at this moment
		}
		live[b.ID] = true
		containers = append(containers, &serverless.ExecutorUtilization{
			ContainerId: b.ID, WorkerId: w.cfg.ID, CpuUtil: w.load.container(b.ID, stats.CPU, time.Now()),
			CpuTotal: w.cpuTotal(), MemUsed: stats.MemoryBytes,
		})
	}
	w.load.keep(live)
	return worker, containers
}

func (w *Worker) cpuTotal() int64 {
	if w.cfg.MilliCPU > 0 {
		return w.cfg.MilliCPU
	}
	return int64(cpus())
}
