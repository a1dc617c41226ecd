package hotset

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the stories' effects anew")

// TestStories plays testdata/*.txt: a line is a time and an event, the indented
// lines after it are what has to come of it.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(text) {
				t.Errorf("the story goes:\n%s", got)
			}
		})
	}
}

type story struct {
	*Machine
	cfg   Config
	pins  [][]string
	names map[string]string // by id
}

func play(t *testing.T, text string) string {
	s := &story{cfg: Default(100 << 20), names: map[string]string{Root: "root"}}
	s.cfg.Guess = 10 << 20
	s.cfg.MinPool = 0
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, " ") {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		results, err := s.act(words)
		if err != nil {
			results = append(results, "refused: "+err.Error())
		}
		for _, result := range results {
			fmt.Fprintln(&out, "    "+result)
		}
	}
	return out.String()
}

// act plays one line: "budget 60", "pool MIN MAX", "pin a,b" before the first time;
// "1s call a,b", "1s grown a 200ms 20", "1s unfit a threads", ….
func (s *story) act(words []string) ([]string, error) {
	switch words[0] {
	case "budget":
		s.cfg.Budget = int64(number(words[1])) << 20
		return nil, nil
	case "pool":
		s.cfg.MinPool, s.cfg.MaxPool = number(words[1]), number(words[2])
		return nil, nil
	case "pin":
		s.pins = append(s.pins, strings.Split(words[1], ","))
		return nil, nil
	}
	if s.Machine == nil {
		s.Machine = New(s.cfg, s.pins)
	}
	after, err := time.ParseDuration(words[0])
	if err != nil {
		return nil, err
	}
	return s.happen(time.Unix(1000, 0).Add(after), words[1], words[2:])
}

func (s *story) happen(now time.Time, what string, args []string) ([]string, error) {
	if what == "tick" {
		return s.told(s.Plan(now)), nil
	}
	modules, id := s.named(args[0])
	switch what {
	case "call":
		from, effects := s.Choose(now, modules, func(id string) bool { return len(args) < 2 || s.name(id) != args[1] })
		return append([]string{"start " + s.name(from)}, s.told(effects)...), nil
	case "pin":
		_, effects := s.Pin(now, modules)
		return s.told(effects), nil
	case "unpin":
		_, effects, err := s.Unpin(now, modules)
		return s.told(effects), err
	case "warm":
		_, effects := s.Warm(now, modules)
		return s.told(effects), nil
	case "filled":
		return s.told(s.Filled(now, id, int64(number(args[1]))<<20)), nil
	case "fill-failed":
		return s.told(s.FillFailed(now, id)), nil
	case "taken":
		return s.told(s.Taken(now, id)), nil
	}
	e := Event{Kind: Kind(what), Set: id}
	switch e.Kind {
	case Grown:
		took, err := time.ParseDuration(args[1])
		if err != nil {
			return nil, err
		}
		e.Facts = Facts{Import: took, Bytes: int64(number(args[2])) << 20, Loaded: args[3:]}
	case Refused:
		e.Module, e.Why = args[1], strings.Join(args[2:], " ")
	}
	effects, err := s.Step(now, e)
	var refused *RefusedError
	if errors.As(err, &refused) {
		err = fmt.Errorf("%s is %s", s.name(refused.Set), refused.Phase)
	}
	return s.told(effects), err
}

func (s *story) named(list string) ([]string, string) {
	if list == "root" || list == "nothing" {
		return nil, Root
	}
	modules := Tops(strings.Split(list, ","))
	s.names[Name(modules)] = strings.Join(modules, ",")
	return modules, Name(modules)
}

func (s *story) name(id string) string {
	if id == "" {
		return "cold"
	}
	if name := s.names[id]; name != "" {
		return name
	}
	return strings.Join(s.Machine.sets[id].Modules, ",")
}

func (s *story) told(effects []Effect) []string {
	var out []string
	for _, e := range effects {
		line := string(e.Do)
		if e.Set != "" {
			line += " " + s.name(e.Set)
		}
		if e.Parent != "" {
			line += " from " + s.name(e.Parent)
		}
		out = append(out, line)
	}
	return out
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
