//go:build linux && amd64

// Package initcode owns the program that is the first process of a container: a
// static ELF of a few hundred bytes which applies a plan, starts the container's
// program, and reaps until that has ended.
package initcode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unsafe"
)

// codeAddress is where the machine code of init_linux_amd64.s lies in this process.
func codeAddress() uintptr

const (
	loadAddress = 0x400000
	headerBytes = 64 + 2*56
	maxCode     = 4096 - headerBytes
)

var (
	endMark   = []byte("HEARTHWALLS-END!")
	applyMark = []byte("HEARTHAPPLYBEGIN")
)

// ELF is the whole program, ready to be written to a file and executed.
func ELF() ([]byte, error) {
	code, err := machineCode()
	if err != nil {
		return nil, err
	}
	return append(header(uint64(len(code))), code...), nil
}

// Apply is machine code for a process that applies a plan to itself and goes on, and
// the offset at which to enter it: as a C function without arguments, with the blob
// mapped at plan.Base, readable and writable. It can lie at any address.
func Apply() (code []byte, entry int, err error) {
	code, err = machineCode()
	if err != nil {
		return nil, 0, err
	}
	at := bytes.Index(code, applyMark)
	if at < 0 {
		return nil, 0, errors.New("init program: apply mark not found in the text segment")
	}
	return code, at + len(applyMark), nil
}

func machineCode() ([]byte, error) {
	from := codeAddress()
	// The code lies in the text segment of this very binary: reading it is safe for
	// as long as the process lives, and the mark bounds it.
	text := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&from))), maxCode)
	end := bytes.Index(text, endMark)
	if end < 0 {
		return nil, errors.New("init program: end mark not found in the text segment")
	}
	return bytes.Clone(text[:end]), nil
}

// header is an ELF header with two program headers: the whole file, readable and
// executable, and a stack that is not executable.
func header(code uint64) []byte {
	le := binary.LittleEndian
	h := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	h = le.AppendUint16(h, 2)    // ET_EXEC
	h = le.AppendUint16(h, 0x3e) // EM_X86_64
	h = le.AppendUint32(h, 1)
	h = le.AppendUint64(h, loadAddress+headerBytes) // entry
	h = le.AppendUint64(h, 64)                      // program headers
	h = le.AppendUint64(h, 0)                       // no section headers
	h = le.AppendUint32(h, 0)
	for _, v := range []uint16{64, 56, 2, 64, 0, 0} {
		h = le.AppendUint16(h, v)
	}
	size := headerBytes + code
	h = le.AppendUint32(h, 1) // PT_LOAD
	h = le.AppendUint32(h, 5) // R+X
	for _, v := range []uint64{0, loadAddress, loadAddress, size, size, 4096} {
		h = le.AppendUint64(h, v)
	}
	h = le.AppendUint32(h, 0x6474e551) // PT_GNU_STACK
	h = le.AppendUint32(h, 6)          // R+W
	for _, v := range []uint64{0, 0, 0, 0, 0, 16} {
		h = le.AppendUint64(h, v)
	}
	return h
}
