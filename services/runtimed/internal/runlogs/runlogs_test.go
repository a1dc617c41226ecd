package runlogs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writer writes a log as a Runtime Server does.
type writer struct {
	t    *testing.T
	path string
	file *os.File
	seq  int
}

func open(t *testing.T, s *Service) *writer {
	t.Helper()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, path: filepath.Join(s.dir, "run-1.jsonl")}
	w.begin()
	t.Cleanup(func() { w.file.Close() })
	return w
}

func (w *writer) begin() {
	w.t.Helper()
	file, err := os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	w.file = file
}

// raw writes bytes that may be no line.
func (w *writer) raw(text string) {
	w.t.Helper()
	if _, err := w.file.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) line(invocation, message string) {
	w.seq++
	w.raw(fmt.Sprintf(`{"time":"2026-01-01T00:00:%02dZ","run_uid":"run-1","invocation_id":%q,"level":"info","stream":"stdout","seq":%d,"message":%q}`+"\n",
		w.seq%60, invocation, w.seq, message))
}

func (w *writer) rotate() {
	w.t.Helper()
	w.file.Close()
	if err := os.Rename(w.path, w.path+".1"); err != nil {
		w.t.Fatal(err)
	}
	w.begin()
}

// remove is what makes room for the logs of other Runs.
func (w *writer) remove() {
	w.file.Close()
	os.Remove(w.path)
	os.Remove(w.path + ".1")
	w.seq = 0
}

// story is what responses say: messages, and marks of what was missed.
func story(all []*hearthv1.TailLogsResponse) string {
	var words []string
	for _, res := range all {
		if res.GetMissed() > 0 {
			words = append(words, fmt.Sprintf("(%d missed)", res.GetMissed()))
		}
		for _, e := range res.GetEntries() {
			words = append(words, e.GetMessage())
		}
	}
	return strings.Join(words, " ")
}

func read(s *Service, req *hearthv1.TailLogsRequest) (all []*hearthv1.TailLogsResponse, err error) {
	if req.RunUid == "" {
		req.RunUid = "run-1"
	}
	err = s.tail(context.Background(), req, func(res *hearthv1.TailLogsResponse) error {
		all = append(all, res)
		return nil
	})
	return all, err
}

func TestRead(t *testing.T) {
	s := New(t.TempDir(), "node-a", func(uid string) bool { return uid == "silent" })
	if _, err := read(s, &hearthv1.TailLogsRequest{}); !errors.Is(err, errNone) {
		t.Errorf("without a log: %v", err)
	}
	if all, err := read(s, &hearthv1.TailLogsRequest{RunUid: "silent"}); err != nil || len(all) > 0 {
		t.Errorf("of a Run that has written nothing: %v, %v", all, err)
	}
	if err := Edge.Error(errNone, nil); connect.CodeOf(err) != connect.CodeNotFound || edge.Reason(err) != "LOG_NOT_FOUND" {
		t.Error(err)
	}
	w := open(t, s)
	w.line("a", "one")
	w.line("b", "two")
	w.raw(`{"time":"2026-01-01T00:00:02Z","seq":3,"mess` + "\n") // cut by a crash
	w.rotate()
	w.line("a", "three")
	w.line("", "four")
	w.raw(`{"seq":5`) // being written
	for name, tc := range map[string]struct {
		req  *hearthv1.TailLogsRequest
		want string
	}{
		"all":                      {&hearthv1.TailLogsRequest{}, "one two three four"},
		"of an invocation":         {&hearthv1.TailLogsRequest{InvocationId: "a"}, "one three"},
		"since":                    {&hearthv1.TailLogsRequest{Since: timestamppb.New(time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC))}, "two three four"},
		"resumed":                  {&hearthv1.TailLogsRequest{AfterSequence: 2, AfterNode: "node-a"}, "three four"},
		"resumed at the end":       {&hearthv1.TailLogsRequest{AfterSequence: 4}, ""},
		"on another node":          {&hearthv1.TailLogsRequest{AfterSequence: 2, AfterNode: "node-b"}, "one two three four"},
		"of a log that began anew": {&hearthv1.TailLogsRequest{AfterSequence: 99}, "one two three four"},
	} {
		got, err := read(s, tc.req)
		if err != nil || story(got) != tc.want {
			t.Errorf("%s: %q, %v; want %q", name, story(got), err, tc.want)
		}
		if len(got) > 0 && (got[len(got)-1].GetSequence() != 4 || got[0].GetNode() != "node-a") {
			t.Errorf("%s: resumes at %v", name, got[len(got)-1])
		}
	}
}

// Large logs come in messages of bounded size, and a line without end is passed over.
func TestBounds(t *testing.T) {
	s := New(t.TempDir(), "node-a", func(uid string) bool { return uid == "silent" })
	w := open(t, s)
	for range 600 {
		w.line("a", strings.Repeat("x", 2000))
	}
	w.raw(strings.Repeat("y", maxLine+chunk+1) + "\n")
	w.line("a", "end")
	got, err := read(s, &hearthv1.TailLogsRequest{})
	if err != nil || len(got) < 4 || !strings.HasSuffix(story(got), " end") {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	entries := 0
	for _, res := range got {
		entries += len(res.GetEntries())
		if len(res.GetEntries()) > batchEntries || len(story([]*hearthv1.TailLogsResponse{res})) > batchBytes+4096 {
			t.Errorf("a message of %d entries", len(res.GetEntries()))
		}
	}
	if entries != 601 {
		t.Errorf("%d entries", entries)
	}
}

// Who resumes behind what was rotated away is told how much is missing.
func TestMissed(t *testing.T) {
	s := New(t.TempDir(), "node-a", func(uid string) bool { return uid == "silent" })
	w := open(t, s)
	for _, text := range []string{"one", "two", "three", "four"} {
		w.line("a", text)
		w.rotate()
	}
	w.line("a", "five")
	got, err := read(s, &hearthv1.TailLogsRequest{AfterSequence: 1, AfterNode: "node-a"})
	if err != nil || story(got) != "(2 missed) four five" {
		t.Errorf("%q, %v", story(got), err)
	}
}

// follower follows a log in the background.
type follower struct {
	t      *testing.T
	got    chan *hearthv1.TailLogsResponse
	cancel context.CancelFunc
	done   chan error
}

func follow(t *testing.T, s *Service) *follower {
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{t: t, got: make(chan *hearthv1.TailLogsResponse), cancel: cancel, done: make(chan error, 1)}
	go func() {
		f.done <- s.tail(ctx, &hearthv1.TailLogsRequest{RunUid: "run-1", Follow: true}, func(res *hearthv1.TailLogsResponse) error {
			select {
			case f.got <- res:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return f
}

// wants reads on until it has heard all that.
func (f *follower) wants(want string) {
	f.t.Helper()
	var heard []*hearthv1.TailLogsResponse
	for story(heard) != want {
		select {
		case res := <-f.got:
			heard = append(heard, res)
		case err := <-f.done:
			f.t.Fatalf("ended with %v after %q, want %q", err, story(heard), want)
		case <-time.After(time.Minute):
			f.t.Fatalf("heard %q, want %q", story(heard), want)
		}
		if !strings.HasPrefix(want, story(heard)) {
			f.t.Fatalf("heard %q, want %q", story(heard), want)
		}
	}
}

// A follower hears of a log that is not there yet, of each line, over rotations,
// and of a log that was removed and begun anew.
func TestFollow(t *testing.T) {
	s := New(t.TempDir(), "node-a", func(uid string) bool { return uid == "silent" })
	f := follow(t, s)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	w := open(t, s)
	w.line("a", "one")
	f.wants("one")
	w.line("a", "two")
	w.rotate()
	w.line("a", "three")
	f.wants("two three")
	for i := range 20 {
		w.line("a", fmt.Sprint(i))
		if i%3 == 0 {
			w.rotate()
		}
		f.wants(fmt.Sprint(i))
	}
	w.remove()
	w.begin()
	w.line("a", "anew")
	f.wants("anew")
	f.cancel()
	if err := <-f.done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if _, err := read(s, &hearthv1.TailLogsRequest{Follow: true}); edge.Reason(Edge.Error(err, nil)) != "SHUTTING_DOWN" {
		t.Errorf("after Run: %v", err)
	}
}

// A reader that does not read makes nobody wait: the writer goes on, and what was
// rotated away is told as missed. A node that stops ends who follows.
func TestSlowReader(t *testing.T) {
	s := New(t.TempDir(), "node-a", func(uid string) bool { return uid == "silent" })
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	f := follow(t, s)
	w := open(t, s)
	w.line("a", "one")
	f.wants("one")
	w.line("a", "two")
	first := <-f.got // the follower holds this file now
	for i := range 4 {
		w.line("a", fmt.Sprint(i))
	}
	second := <-f.got
	for range 4 {
		w.rotate()
		w.line("a", "late")
	}
	all := []*hearthv1.TailLogsResponse{first, second}
	for story(all[len(all)-1:]) == "" || all[len(all)-1].GetSequence() < uint64(w.seq) {
		all = append(all, <-f.got)
	}
	seen, missed := 0, uint64(0)
	for _, res := range all {
		seen += len(res.GetEntries())
		missed += res.GetMissed()
	}
	if seen+int(missed) != w.seq-1 || !slices.Contains(strings.Fields(story(all)), "late") {
		t.Errorf("%d seen and %d missed of %d: %q", seen, missed, w.seq-1, story(all))
	}
	stop()
	if err := <-f.done; edge.Reason(Edge.Error(err, nil)) != "SHUTTING_DOWN" {
		t.Error(err)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
