package placement

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A script is a story: "event -> effect" lines, "# …" comments. Amounts are in
// GiB. Events:
//
//	at DURATION                                        the clock
//	worker ID STATE [mem=] [gpu=] [max=] [flavor=] [uri=] [life=] [holds=a,b]
//	load ID [mem=] [gpu=] [n=] [cpu=used/total]
//	container ID WORKER STATE [call=] [from=]
//	place CALL [mem=] [gpu=] [on=WORKER/CONTAINER] [cold] [from=] [not=a,b] [needs-gpu]
//	release CALL [keep]
//	evict ID
//	tick
//	show ID
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file) })
	}
}

func play(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &story{m: New(Config{Fill: 0.9, Silence: 30 * time.Second, Lease: 2 * time.Hour}), calls: map[string]Reservation{}, now: time.Unix(0, 0)}
	scanner := bufio.NewScanner(f)
	for n := 1; scanner.Scan(); n++ {
		line, _, _ := strings.Cut(scanner.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		event, want, _ := strings.Cut(line, "->")
		if got := s.step(strings.Fields(event)); got != strings.TrimSpace(want) {
			t.Errorf("%s:%d: %s\n got %s\nwant %s", file, n, strings.TrimSpace(event), got, strings.TrimSpace(want))
		}
	}
}

type story struct {
	m     *Machine
	calls map[string]Reservation
	now   time.Time
}

const gib = 1 << 30

func (s *story) step(words []string) string {
	args := map[string]string{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		args[key] = value
	}
	name := ""
	if len(words) > 1 {
		name = words[1]
	}
	switch words[0] {
	case "at":
		d, err := time.ParseDuration(name)
		if err != nil {
			return err.Error()
		}
		s.now = time.Unix(0, 0).Add(d)
		return ""
	case "worker":
		return s.worker(name, words[2], args)
	case "load":
		used, total, _ := strings.Cut(args["cpu"], "/")
		err := s.m.Utilization(s.now, Utilization{Worker: name, MemUsed: amountOf(args["mem"]), GPUMemUsed: amountOf(args["gpu"]),
			Containers: int32(number(args["n"])), CPUUtil: number(used), CPUTotal: number(total)})
		return outcome(err)
	case "container":
		gone, err := s.m.Container(s.now, Container{ID: name, Worker: words[2], State: stateOf(words[3]), Checkpoint: args["from"], Session: args["session"]}, s.calls[args["call"]])
		if gone != nil {
			return fmt.Sprintf("gone session=%s", gone.Session)
		}
		return outcome(err)
	case "place":
		return s.place(name, args)
	case "release":
		_, keep := args["keep"]
		return map[bool]string{true: "released", false: "nothing"}[s.m.Release(s.calls[name], keep)]
	case "evict":
		return s.gone(s.m.Evict(name))
	case "tick":
		released, silent := s.m.Expired(s.now)
		out := []string{fmt.Sprintf("released %d", len(released))}
		for _, g := range silent {
			out = append(out, s.gone(g))
		}
		return strings.Join(out, ", ")
	case "show":
		for _, v := range s.m.Views() {
			if v.ID == name {
				return fmt.Sprintf("%s mem=%g gpu=%g n=%d inflight=%d containers=%d", v.State, float64(v.MemTaken)/gib,
					float64(v.GPUMemTaken)/gib, v.ContainersTaken, v.InFlight, len(v.Containers))
			}
		}
		return "absent"
	}
	return "unknown event"
}

func (s *story) worker(id, state string, args map[string]string) string {
	w := Worker{ID: id, URI: "u-" + id, Flavor: "cpu", Incarnation: args["life"], MemTotal: amountOf(args["mem"]),
		GPUMemTotal: amountOf(args["gpu"]), MaxContainers: int32(number(args["max"]))}
	if uri, ok := args["uri"]; ok {
		w.URI = uri
	}
	if flavor, ok := args["flavor"]; ok {
		w.Flavor = flavor
	}
	if args["holds"] != "" {
		w.Checkpoints = strings.Split(args["holds"], ",")
	}
	gone, err := s.m.WorkerStatus(s.now, w, stateOf(state))
	if gone != nil {
		return s.gone(gone)
	}
	return outcome(err)
}

func (s *story) place(call string, args map[string]string) string {
	r := Request{Memory: amountOf(args["mem"]), GPUMemory: amountOf(args["gpu"]), Checkpoint: args["from"]}
	r.Worker, r.Container, _ = strings.Cut(args["on"], "/")
	_, r.Cold = args["cold"]
	_, r.GPU = args["needs-gpu"]
	if args["not"] != "" {
		r.Without = strings.Split(args["not"], ",")
	}
	p, err := s.m.Place(s.now, r)
	if err != nil {
		return err.Error()
	}
	s.calls[call] = p.Reservation
	return strings.TrimSuffix(p.Worker+"/"+p.Container, "/")
}

func (s *story) gone(g *Gone) string {
	if g == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s gone with %d containers, %d calls", g.Worker, len(g.Containers), len(g.Reservations))
}

func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func amountOf(text string) int64 {
	f, _ := strconv.ParseFloat(text, 64)
	return int64(f * gib)
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func stateOf(name string) State {
	for i, n := range stateNames {
		if n == name {
			return State(i)
		}
	}
	return State(99)
}
