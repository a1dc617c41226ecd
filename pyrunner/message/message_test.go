package message_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hearth-run/hearth/pyrunner/message"
)

func TestFieldsThatAreNotThere(t *testing.T) {
	m, err := message.Parse([]byte{1, 0, 0, 0, 1, 'x'})
	if err != nil {
		t.Fatal(err)
	}
	if m.Text(0) != "x" || m.Bytes(1) != nil || m.Text(7) != "" {
		t.Errorf("%v", m)
	}
	for _, i := range []int{0, 1} {
		if _, err := m.Number(i); !errors.Is(err, message.ErrMalformed) {
			t.Errorf("field %d is a number: %v", i, err)
		}
	}
}

// FuzzParse: what can be parsed is packed again as it was.
func FuzzParse(f *testing.F) {
	f.Add([]byte{2})
	f.Add(message.Append(nil, message.Call, 1, "i", 30000, []byte("{}")))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := message.Parse(raw)
		if err != nil {
			if !errors.Is(err, message.ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		fields := make([]any, len(m.Fields))
		for i, field := range m.Fields {
			fields[i] = field
		}
		if packed := message.Append(nil, m.Kind, fields...); !bytes.Equal(packed, raw) {
			t.Fatalf("%x was packed as %x", raw, packed)
		}
	})
}
