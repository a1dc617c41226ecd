package edge

import "fmt"

// told is a sentinel with a text for the caller.
type told struct {
	err  error
	text string
}

func (t *told) Error() string  { return t.err.Error() + ": " + t.text }
func (t *told) Unwrap() error  { return t.err }
func (t *told) Public() string { return t.text }

// Publicf wraps a sentinel with a text that was written for the caller: it names
// the field, the bound and the way out.
func Publicf(sentinel error, format string, args ...any) error {
	return &told{err: sentinel, text: fmt.Sprintf(format, args...)}
}
