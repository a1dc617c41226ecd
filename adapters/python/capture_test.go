package python

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// book keeps what each invocation wrote.
type book struct {
	mu   sync.Mutex
	text map[string]string
}

type page struct {
	b  *book
	id string
}

func (b *book) Writer(id string, _ runtimeserver.Stream) io.WriteCloser { return page{b, id} }
func (b *book) Entry(string, string, string)                            {}

func (p page) Write(data []byte) (int, error) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.text[p.id] += string(data)
	return len(data), nil
}
func (p page) Close() error { return nil }

// What was written before end belongs to the invocation, whether the reading
// goroutine has been awake or not.
func TestStreamAttributesExactly(t *testing.T) {
	b := &book{text: map[string]string{}}
	s, err := newStream(runtimeserver.Stdout, b)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 60_000)
	for n := range 1000 {
		id := fmt.Sprint("call-", n)
		s.begin(id)
		if _, err := s.write.WriteString(id + long[:n%2*len(long)]); err != nil {
			t.Fatal(err)
		}
		s.end()
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	for n := range 1000 {
		id := fmt.Sprint("call-", n)
		if got := b.text[id]; got != id+long[:n%2*len(long)] {
			t.Fatalf("%s: %d bytes, %.20q", id, len(got), got)
		}
	}
	if b.text[""] != "" {
		t.Errorf("%d bytes belong to no invocation", len(b.text[""]))
	}
}

func TestStreamKeepsTheTailOfTheLatestInvocation(t *testing.T) {
	s, err := newStream(runtimeserver.Stderr, &book{text: map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", strings.Repeat("x", 10_000) + "the end"} {
		s.begin("call")
		if _, err := s.write.WriteString(text); err != nil {
			t.Fatal(err)
		}
		s.end()
	}
	if got := s.last(); len(got) != maxTail || !strings.HasSuffix(got, "xthe end") || strings.Contains(got, "first") {
		t.Errorf("kept %d bytes", len(got))
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// What was written a moment ago is there, be it that nobody has read it yet.
func TestStreamTellsTheLastWords(t *testing.T) {
	s, err := newStream(runtimeserver.Stderr, &book{text: map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1000 {
		words := fmt.Sprint("words ", n)
		s.begin("call")
		if _, err := s.write.WriteString(words); err != nil {
			t.Fatal(err)
		}
		if got := s.last(); got != words {
			t.Fatalf("%q in place of %q", got, words)
		}
		s.end()
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if got := s.last(); got != "words 999" {
		t.Errorf("after the end %q", got)
	}
}
