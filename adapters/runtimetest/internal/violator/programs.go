package violator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// programs are the executables of the fake's language.
func programs() map[string]program {
	return map[string]program{
		"hello":    hello,
		"fail":     func(*execution, func(string), func(string)) int32 { return 3 },
		"hold":     func(e *execution, _, _ func(string)) int32 { return e.wait(143) },
		"polite":   polite,
		"stubborn": ignore,
		"flood":    flood,
		"env":      greet,
		"words":    words,
		"script":   func(_ *execution, out, _ func(string)) int32 { out("script\n"); return 0 },
		"args":     func(_ *execution, out, _ func(string)) int32 { out("args\n"); return 0 },
		"outputs":  outputsFile,
	}
}

func (e *execution) dir() string { return e.req.GetWorkingDir() }

func hello(e *execution, out, err func(string)) int32 {
	touch(e.dir(), "runs", "run\n")
	out("out\n")
	err("err\n")
	return 0
}

// wait waits for the file release; TERM and KILL end it.
func (e *execution) wait(onTerm int32) int32 {
	touch(e.dir(), "started", "")
	released := make(chan error, 1)
	e.r.background(func() { released <- waitFor(e.kill, e.dir(), "release") })
	select {
	case err := <-released:
		if err != nil {
			return 137
		}
		return 0
	case <-e.term:
		e.cancelKill()
		return onTerm
	}
}

func polite(e *execution, _, _ func(string)) int32 {
	code := e.wait(7)
	if code == 7 && !e.r.is("kills-outright") {
		touch(e.dir(), "asked", "")
	}
	return code
}

func ignore(e *execution, _, _ func(string)) int32 {
	e.r.spawn(nil, e.req.GetEnv()["TOKEN"], ofCall)
	touch(e.dir(), "started", "")
	if waitFor(e.kill, e.dir(), "release") != nil {
		return 137
	}
	return 0
}

func flood(_ *execution, out, _ func(string)) int32 {
	out(strings.Repeat(strings.Repeat("x", 63)+"\n", 3<<14) + "the end\n")
	return 0
}

func greet(e *execution, out, _ func(string)) int32 {
	if e.r.is("execution-drops-env") {
		out("\n")
		return 0
	}
	out(e.req.GetEnv()["GREETING"] + "\n")
	return 0
}

func words(e *execution, out, _ func(string)) int32 {
	for _, word := range e.req.GetArgs() {
		if !e.r.is("drops-args") {
			out(word + "\n")
		}
	}
	return 0
}

func event(e *execution, _, err func(string)) int32 {
	args := e.req.GetArgs()
	if e.r.is("event-without-args") {
		args = nil
	}
	if failed := os.WriteFile(filepath.Join(e.dir(), "event"), []byte(strings.Join(args, " ")), 0o666); failed != nil {
		err(failed.Error())
		return 1
	}
	return 0
}

func outputsFile(e *execution, out, _ func(string)) int32 {
	if !e.r.is("no-outputs-file") {
		out(fmt.Sprintf("%s/outputs-%s", e.dir(), e.req.GetId()))
	}
	out("\n")
	return 0
}
