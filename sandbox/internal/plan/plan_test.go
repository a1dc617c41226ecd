package plan

import (
	"encoding/binary"
	"strings"
	"testing"
)

func sample() Plan {
	var p Plan
	p.Try("a", 1, Int(7))
	fd := p.Call("b", 2, Text("hi"), Table([]string{"x", "yz"}))
	p.Call("b", 3, Answer(fd), Bytes([]byte{1, 2, 3}))
	p.Call("c", 4, Program(make([]byte, 16)))
	p.Fork()
	return p
}

// TestBlob reads the blob as the init program would.
func TestBlob(t *testing.T) {
	blob, err := sample().Blob(9, 8)
	if err != nil {
		t.Fatal(err)
	}
	word := func(at uint64) uint64 { return binary.LittleEndian.Uint64(blob[at-Base:]) }
	op := func(i int) uint64 { return Base + uint64(headerWords+i*opWords)*wordBytes }
	text := func(at uint64) string { s, _, _ := strings.Cut(string(blob[at-Base:]), "\x00"); return s }
	if word(Base) != 9 || word(Base+8) != 8 || word(Base+16) != 5 {
		t.Errorf("header %v", blob[:32])
	}
	if word(op(0)) != 1 || word(op(0)+8) != flagMayFail || word(op(0)+16) != 7 {
		t.Error("op 0")
	}
	if got := text(word(op(1) + 16)); got != "hi" {
		t.Errorf("text %q", got)
	}
	table := word(op(1) + 24)
	if text(word(table)) != "x" || text(word(table+8)) != "yz" || word(table+16) != 0 {
		t.Error("table")
	}
	if word(op(2)+8) != 1 || word(op(2)+16) != op(1)+64 {
		t.Error("an answer is the address of the earlier op's last word")
	}
	if program := word(op(3) + 16); word(program) != 2 || program%8 != 0 || word(program+8)%8 != 0 {
		t.Error("program")
	}
	if int64(word(op(4))) != callFork {
		t.Error("fork")
	}
}

func TestBlobTooBig(t *testing.T) {
	var p Plan
	p.Call("x", 1, Text(strings.Repeat("a", MaxBlob)))
	if _, err := p.Blob(1, 2); err == nil || !strings.Contains(err.Error(), "must fit") {
		t.Errorf("%v", err)
	}
}

func TestKeep(t *testing.T) {
	kept := sample().Keep(func(op Op) bool { return op.Wall == "b" })
	if len(kept) != 2 || kept[1].Args[0].value != 0 || kept.Validate() != nil {
		t.Errorf("%+v", kept)
	}
	torn := sample().Keep(func(op Op) bool { return op.Call == 3 })
	if torn.Validate() == nil {
		t.Error("an answer without its source was taken")
	}
	if n := len(sample().BeforeFork()); n != 4 {
		t.Errorf("%d ops before the fork", n)
	}
}

func TestValidate(t *testing.T) {
	var p Plan
	p.Call("x", 1, Int(1), Int(2), Int(3), Int(4), Int(5), Int(6), Int(7))
	if p.Validate() == nil {
		t.Error("seven arguments were taken")
	}
	if _, err := p.Blob(1, 2); err == nil {
		t.Error("and encoded")
	}
}
