package runtimetest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// What user code leaves: files in its working directory, and processes.

func (f *function) there(file string) bool {
	_, err := os.Stat(filepath.Join(f.dir, file))
	return err == nil
}

func (f *function) touch(file string) {
	f.t.must(os.WriteFile(filepath.Join(f.dir, file), nil, 0o666))
}

// lines counts the lines of a file that fixtures append to.
func (f *function) lines(file string) int {
	data, err := os.ReadFile(filepath.Join(f.dir, file))
	if err != nil {
		return 0
	}
	n := 0
	for _, b := range data {
		if b == '\n' {
			n++
		}
	}
	return n
}

func (f *function) read(file string) string {
	data, err := os.ReadFile(filepath.Join(f.dir, file))
	if err != nil {
		return ""
	}
	return string(data)
}

// token is a number that no process of this machine has as an argument yet.
func token() int64 { return 1_000_000_000 + rand.Int64N(8_000_000_000) }

// gone waits until no process has the token as an argument.
func (t *T) gone(tok int64, when string) {
	text := strconv.FormatInt(tok, 10)
	var left []int
	t.eventuallyElse("no process of the user code to be left "+when, func() string {
		var err error
		left, err = t.target.Processes(text)
		t.must(err)
		if len(left) == 0 {
			return ""
		}
		return "processes " + text + " live on"
	})
}

// eventuallyElse is eventually with what was seen last.
func (t *T) eventuallyElse(what string, why func() string) {
	var last string
	defer func() {
		if p := recover(); p != nil {
			if f, ok := p.(*failure); ok && last != "" {
				f.seen = last
			}
			panic(p)
		}
	}()
	t.eventually(what, func() bool { last = why(); return last == "" })
}
