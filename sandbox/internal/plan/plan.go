// Package plan owns the order in which walls go up: a list of plain system calls,
// written once and applied by whoever becomes the container (Blob), be it the tiny init
// program or a Python process that was forked from a template and calls its code.
package plan

import (
	"bytes"
	"fmt"
	"strconv"
)

// Plan is applied from first to last; the first failure that an Op does not allow
// ends it, and nothing of the container's program has run then.
type Plan []Op

// Op is one system call.
type Op struct {
	// Wall names the protection that this call belongs to; a failure is told as it.
	Wall string
	// Call is the system call's number on this machine.
	Call int
	// Args are at most six.
	Args []Arg
	// MayFail goes on whatever the call answers.
	MayFail bool
	// Fork is not a call of its own: from here on the container's program goes its
	// own way, and the first process stays behind to reap. Call and Args are unused.
	Fork bool
	// Return is not a call either: whoever applies the plan goes on with its own code.
	Return bool
}

// Arg is a number, the address of bytes, the address of a table of addresses, or the
// answer of an earlier call. Make one with Int, Text, Bytes, Table or Answer.
type Arg struct {
	kind  kind
	value int64
	bytes []byte
	table [][]byte
}

type kind int

const (
	kindInt kind = iota
	kindBytes
	kindTable
	kindAnswer
	kindProgram
)

// Int passes a number.
func Int[T ~int | ~int64 | ~uint64 | ~uint32 | ~uintptr](v T) Arg {
	return Arg{kind: kindInt, value: int64(v)}
}

// Text passes the address of a NUL-terminated string.
func Text(s string) Arg { return Arg{kind: kindBytes, bytes: append([]byte(s), 0)} }

// Bytes passes the address of b.
func Bytes(b []byte) Arg { return Arg{kind: kindBytes, bytes: b} }

// Table passes the address of an array of addresses of NUL-terminated strings, ended
// by a null address, as execve wants argv and envp.
func Table(texts []string) Arg {
	a := Arg{kind: kindTable}
	for _, s := range texts {
		a.table = append(a.table, append([]byte(s), 0))
	}
	return a
}

// Program passes the address of a struct sock_fprog for a BPF filter of 8-byte
// instructions.
func Program(filter []byte) Arg { return Arg{kind: kindProgram, bytes: filter} }

// Answer passes what the op with this index answered (a descriptor, say).
func Answer(index int) Arg { return Arg{kind: kindAnswer, value: int64(index)} }

// Call appends one system call and returns its index for Answer.
func (p *Plan) Call(wall string, call int, args ...Arg) int {
	*p = append(*p, Op{Wall: wall, Call: call, Args: args})
	return len(*p) - 1
}

// Try appends one system call that may fail.
func (p *Plan) Try(wall string, call int, args ...Arg) {
	*p = append(*p, Op{Wall: wall, Call: call, Args: args, MayFail: true})
}

// Fork appends the point where the container's program leaves the first process.
func (p *Plan) Fork() { *p = append(*p, Op{Wall: "init", Fork: true}) }

// Validate refuses what no applier can do.
func (p Plan) Validate() error {
	for i, op := range p {
		if len(op.Args) > 6 {
			return fmt.Errorf("op %d (%s): %d arguments, at most 6", i, op.Wall, len(op.Args))
		}
		for _, a := range op.Args {
			if a.kind == kindAnswer && (a.value < 0 || a.value >= int64(i)) {
				return fmt.Errorf("op %d (%s): refers to op %d, which is not earlier", i, op.Wall, a.value)
			}
		}
	}
	return nil
}

// String shows the call with its numbers and short texts.
func (o Op) String() string {
	text := fmt.Sprintf("call %d", o.Call)
	for _, a := range o.Args {
		text += " " + a.String()
	}
	return text
}

// String shows a number as it is, a short text quoted, and of the rest its kind.
func (a Arg) String() string {
	switch n := len(a.bytes); {
	case a.kind == kindInt:
		return fmt.Sprint(a.value)
	case a.kind == kindAnswer:
		return fmt.Sprintf("=%d", a.value)
	case a.kind == kindTable:
		return fmt.Sprintf("[%d]", len(a.table)) // an environment may hold secrets
	case a.kind == kindProgram:
		return "program"
	case n > 1 && n < 256 && bytes.IndexByte(a.bytes, 0) == n-1:
		return strconv.Quote(string(a.bytes[:n-1]))
	default:
		return fmt.Sprintf("<%d bytes>", n)
	}
}

// Keep is the plan with only the ops that keep says yes to. What it drops must not be
// the source of an Answer that stays; Validate of the result says so.
func (p Plan) Keep(keep func(Op) bool) Plan {
	var kept Plan
	moved := make([]int, len(p)) // old index → new
	for i, op := range p {
		moved[i] = len(kept)
		if !keep(op) {
			moved[i] = -1
			continue
		}
		args := make([]Arg, len(op.Args))
		for j, a := range op.Args {
			if a.kind == kindAnswer && a.value >= 0 && a.value < int64(i) {
				a.value = int64(moved[a.value])
			}
			args[j] = a
		}
		op.Args = args
		kept = append(kept, op)
	}
	return kept
}

// Returning is the plan with an end at which its applier goes on.
func (p Plan) Returning() Plan {
	return append(p[:len(p):len(p)], Op{Wall: "init", Return: true})
}

// BeforeFork is the part of the plan that puts up the walls.
func (p Plan) BeforeFork() Plan {
	for i, op := range p {
		if op.Fork {
			return p[:i]
		}
	}
	return p
}
