package runtimeserver

import (
	"io"

	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/runlog"
)

// sink is a Run's log as a language sees it.
type sink struct{ log *runlog.Log }

func (s sink) Writer(invocationID string, stream Stream) io.WriteCloser {
	return s.log.Stream(invocationID, string(stream))
}

func (s sink) Entry(invocationID, level, message string) {
	s.log.Entry(invocationID, string(Logger), level, message)
}
