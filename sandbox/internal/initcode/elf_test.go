//go:build linux && amd64

package initcode

import (
	"bytes"
	"debug/elf"
	"testing"
)

// TestELF: what is executed in every container is a well-formed, static program of
// less than a page, whose only writable memory is a stack that cannot be executed.
func TestELF(t *testing.T) {
	code, err := ELF()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(code))
	if err != nil {
		t.Fatal(err)
	}
	if f.Type != elf.ET_EXEC || f.Machine != elf.EM_X86_64 || f.Entry != loadAddress+headerBytes || len(code) >= 4096 {
		t.Errorf("%+v, %d bytes", f.FileHeader, len(code))
	}
	for _, p := range f.Progs {
		if p.Flags&(elf.PF_W|elf.PF_X) == elf.PF_W|elf.PF_X || p.Type == elf.PT_INTERP {
			t.Errorf("%+v", p.ProgHeader)
		}
	}
	// It begins with the mov that loads argv[1], and what follows the mark is not in it.
	if !bytes.HasPrefix(code[headerBytes:], []byte{0x48, 0x8b, 0x44, 0x24, 0x10}) || bytes.Contains(code, endMark) {
		t.Errorf("% x", code[headerBytes:])
	}
}

// TestApply: the second entry is inside the same code, behind its mark.
func TestApply(t *testing.T) {
	code, entry, err := Apply()
	if err != nil || entry <= len(applyMark) || !bytes.HasPrefix(code[entry:], []byte{0x53, 0x41, 0x54}) { // push rbx, r12
		t.Errorf("%d, %v", entry, err)
	}
}
