package sessions_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hearth-run/hearth/services/router/internal/sessions"
)

// A script is a story: "event -> effects" lines, "# …" comments. Events:
//
//	at DURATION
//	call SESSION CALL          leave SESSION CALL
//	done SESSION CALL untouched|kept|failed
//	pin SESSION WORKER/CONTAINER [CHECKPOINT]
//	unpin|gone SESSION WORKER/CONTAINER
//	show SESSION
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
	s := &story{m: sessions.New(sessions.Config{Tombstones: 3, Age: time.Hour})}
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
	m   *sessions.Machine
	now time.Time
}

func (s *story) step(words []string) string {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	worker, container, _ := strings.Cut(arg(2), "/")
	switch words[0] {
	case "at":
		d, err := time.ParseDuration(arg(1))
		if err != nil {
			return err.Error()
		}
		s.now = time.Time{}.Add(d)
		return ""
	case "call":
		effects, err := s.m.Call(s.now, arg(1), arg(2))
		if err != nil {
			return err.Error()
		}
		return tell(effects, "waits")
	case "leave":
		return map[bool]string{true: "left", false: "too late"}[s.m.Leave(arg(1), arg(2))]
	case "done":
		outcome := map[string]sessions.Outcome{"untouched": sessions.Untouched, "kept": sessions.Kept, "failed": sessions.Failed}[arg(3)]
		return tell(s.m.Done(s.now, arg(1), arg(2), outcome), "")
	case "pin":
		return tell(s.m.Pin(s.now, arg(1), sessions.Pin{Worker: worker, Container: container, Checkpoint: arg(3)}), "")
	case "unpin":
		return tell(s.m.Unpin(s.now, arg(1), worker, container), "")
	case "gone":
		return tell(s.m.Gone(s.now, arg(1), worker, container), "")
	case "show":
		for _, v := range s.m.Views() {
			if v.ID == arg(1) {
				return strings.TrimSpace(strings.Join([]string{v.State.String(), v.Pin.Worker + "/" + v.Pin.Container, v.Pin.Checkpoint}, " "))
			}
		}
		return "absent"
	}
	return "unknown event"
}

func tell(effects []sessions.Effect, nothing string) string {
	var out []string
	for _, e := range effects {
		switch {
		case e.Err != nil:
			out = append(out, e.Call+" refused: "+e.Err.Error())
		case e.Pin.Container != "":
			out = append(out, e.Call+" goes to "+e.Pin.Worker+"/"+e.Pin.Container)
		default:
			out = append(out, e.Call+" starts")
		}
	}
	if len(out) == 0 {
		return nothing
	}
	return strings.Join(out, ", ")
}
