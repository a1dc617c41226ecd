package plan

import (
	"encoding/binary"
	"fmt"
)

// The layout that the init program reads (internal/initcode): a header, the ops,
// then the data that arguments point to. Every word is 8 bytes, little-endian, and
// every address is absolute, since the blob is mapped at Base.
const (
	// Base is where the init program maps the blob.
	Base = 0x40000000
	// MaxBlob is the most that it maps, in bytes.
	MaxBlob = 4 << 20

	headerWords = 4
	opWords     = 9
	wordBytes   = 8

	flagMayFail = 1 << 8
	callFork    = -1
	callReturn  = -2
)

// Blob encodes the plan for the init program. failures and status are the numbers of
// the two pipe descriptors that the init program writes to: a failed op (index and
// errno, 8 bytes each), and the wait status of the container's program (4 bytes).
func (p Plan) Blob(failures, status int) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	b := &blob{words: make([]byte, 0, (headerWords+opWords*len(p))*wordBytes)}
	b.data = Base + uint64(cap(b.words))
	b.word(uint64(failures))
	b.word(uint64(status))
	b.word(uint64(len(p)))
	b.word(0)
	for _, op := range p {
		b.op(op)
	}
	out := append(b.words, b.tail...)
	if len(out) > MaxBlob {
		return nil, fmt.Errorf("plan of %d bytes: argv, env and paths together must fit %d", len(out), MaxBlob)
	}
	return out, nil
}

type blob struct {
	words []byte
	tail  []byte
	data  uint64 // where tail begins
}

func (b *blob) word(v uint64) { b.words = binary.LittleEndian.AppendUint64(b.words, v) }

func (b *blob) op(op Op) {
	call, flags := int64(op.Call), uint64(0)
	if op.Fork {
		call = callFork
	}
	if op.Return {
		call = callReturn
	}
	if op.MayFail {
		flags |= flagMayFail
	}
	var args [6]uint64
	for i, a := range op.Args {
		args[i] = b.arg(a)
		if a.kind == kindAnswer {
			flags |= 1 << i
		}
	}
	b.word(uint64(call))
	b.word(flags)
	for _, v := range args {
		b.word(v)
	}
	b.word(0) // the answer goes here
}

func (b *blob) arg(a Arg) uint64 {
	switch a.kind {
	case kindBytes:
		return b.store(a.bytes)
	case kindTable:
		return b.storeTable(a.table)
	case kindProgram:
		return b.storeProgram(a.bytes)
	case kindAnswer:
		return Base + uint64(headerWords+opWords*int(a.value)+opWords-1)*wordBytes
	default:
		return uint64(a.value)
	}
}

func (b *blob) store(data []byte) uint64 {
	for len(b.tail)%wordBytes != 0 {
		b.tail = append(b.tail, 0)
	}
	at := b.data + uint64(len(b.tail))
	b.tail = append(b.tail, data...)
	return at
}

func (b *blob) storeTable(texts [][]byte) uint64 {
	var table []byte
	for _, t := range texts {
		table = binary.LittleEndian.AppendUint64(table, b.store(t))
	}
	return b.store(binary.LittleEndian.AppendUint64(table, 0))
}

// storeProgram writes a struct sock_fprog: a 16-bit count, padding, the address.
func (b *blob) storeProgram(filter []byte) uint64 {
	at := b.store(filter)
	prog := binary.LittleEndian.AppendUint64(nil, uint64(len(filter)/8))
	return b.store(binary.LittleEndian.AppendUint64(prog, at))
}
