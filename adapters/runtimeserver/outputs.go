package runtimeserver

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

// CheckOutputs checks the bounds of outputs.
// Errors: ErrOutputsInvalid, ErrOutputsTooLarge, both with a text for the caller.
func CheckOutputs(outputs map[string]string) error {
	if len(outputs) > MaxOutputKeys {
		return edge.Publicf(ErrOutputsTooLarge, "outputs have %d keys; at most %d", len(outputs), MaxOutputKeys)
	}
	total := 0
	for key, value := range outputs {
		total += len(key) + len(value)
		switch {
		case !utf8.ValidString(key) || !utf8.ValidString(value):
			return edge.Publicf(ErrOutputsInvalid, "output %q is not UTF-8", clip(key, MaxOutputKey))
		case key == "" || len(key) > MaxOutputKey:
			return edge.Publicf(ErrOutputsInvalid, "output key %q has %d bytes; a key has 1 to %d", clip(key, MaxOutputKey), len(key), MaxOutputKey)
		case len(value) > MaxOutputValue:
			return edge.Publicf(ErrOutputsTooLarge, "output %q has %d bytes; a value has at most %d", key, len(value), MaxOutputValue)
		}
	}
	if total > MaxOutputsTotal {
		return edge.Publicf(ErrOutputsTooLarge, "outputs have %d bytes in all; at most %d, keys and values counted", total, MaxOutputsTotal)
	}
	return nil
}

// MaxOutputsFile is the largest outputs file that is read: one that holds every
// bound, with its separators, fits.
const MaxOutputsFile = MaxOutputsTotal + 4*MaxOutputKeys

// ParseOutputs reads the file of KEY=VALUE lines that $HEARTH_OUTPUTS names. Empty
// lines are skipped, a later line wins over an earlier one with its key.
// Errors: as CheckOutputs, and ErrOutputsInvalid for a line without "=".
func ParseOutputs(file []byte) (map[string]string, error) {
	if len(file) > MaxOutputsFile {
		return nil, edge.Publicf(ErrOutputsTooLarge, "the outputs file has %d bytes; at most %d", len(file), MaxOutputsFile)
	}
	outputs := map[string]string{}
	number := 0
	for line := range bytes.Lines(file) {
		number++
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(line) == 0 {
			continue
		}
		key, value, ok := bytes.Cut(line, []byte("="))
		if !ok {
			return nil, edge.Publicf(ErrOutputsInvalid, "line %d of the outputs file is not KEY=VALUE: %s", number, clip(fmt.Sprintf("%q", line), 80))
		}
		outputs[string(key)] = string(value)
	}
	if len(outputs) == 0 {
		return nil, nil
	}
	return outputs, CheckOutputs(outputs)
}
