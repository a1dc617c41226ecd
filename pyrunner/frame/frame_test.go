package frame_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/hearth-run/hearth/pyrunner/frame"
)

func TestWriterAgreesWithAppendAroundItsBorder(t *testing.T) {
	for _, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 5 << 20} {
		message := bytes.Repeat([]byte("ab"), size/2+1)[:size]
		var wire bytes.Buffer
		if err := frame.NewWriter(&wire).Write(message); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(wire.Bytes(), frame.Append(nil, message, 0)) {
			t.Errorf("%d bytes: Writer and Append differ", size)
		}
		r := frame.NewReader(iotest.HalfReader(&wire), 0)
		got, err := r.Read()
		if err != nil || !bytes.Equal(got, message) {
			t.Errorf("%d bytes: read back %d, %v", size, len(got), err)
		}
		if _, err := r.Read(); err != io.EOF {
			t.Errorf("%d bytes: after the message %v", size, err)
		}
	}
}

func TestReaderAllocatesAsBytesCome(t *testing.T) {
	claim := []byte{0, 0, 0, 0, 0x04, 0, 0, 0} // 64 MiB
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := frame.NewReader(bytes.NewReader(claim), 0).Read(); !errors.Is(err, frame.ErrTruncated) {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 16<<20 {
		t.Errorf("a claim of 64 MiB without a byte made the reader allocate %d bytes", allocated)
	}
}

// FuzzReader: whatever comes, the reader answers a message that is written as it
// was read, or an error; both readers agree.
func FuzzReader(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x06hello \x00\x00\x00\x00\x00\x00\x00\x05world\x00\x00\x00\x00\x00\x00\x00\x00"), uint32(1000))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00"), uint32(0))
	f.Add([]byte("\x00\x00\x00\x00\x04\x00\x00\x00a"), uint32(5))
	f.Add([]byte("\xff"), uint32(5))
	f.Fuzz(func(t *testing.T, wire []byte, limit uint32) {
		got, err := frame.NewReader(bytes.NewReader(wire), uint64(limit)).Read()
		if limit > 0 && len(got) > int(limit) {
			t.Fatalf("%d bytes over a limit of %d", len(got), limit)
		}
		if err != nil {
			if got != nil {
				t.Fatalf("a message of %d bytes with %v", len(got), err)
			}
			return
		}
		again, err := frame.NewReader(bytes.NewReader(frame.Append(nil, got, 7)), 0).Read()
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%x came back as %x, %v", got, again, err)
		}
		pieces, err := io.ReadAll(frame.NewChunkReader(bytes.NewReader(wire)))
		if err != nil || !bytes.Equal(pieces, got) {
			t.Fatalf("ChunkReader read %x, %v; Reader %x", pieces, err, got)
		}
	})
}
