package sandbox

import (
	"fmt"
	"strings"
)

// Wall is one protection and whether this machine lets a driver build it.
type Wall struct {
	// Name is a stable word: pid-namespace, seccomp, memory-limit, …
	Name string
	// Stands says that it was tried and held.
	Stands bool
	// Required walls are those that RequireIsolation insists on.
	Required bool
	// Detail says how it is built, or why it cannot be and what would help.
	Detail string
}

// WallError is a wall that could not be built, so that nothing ran.
type WallError struct {
	Wall  string
	Cause error
}

func (e *WallError) Error() string { return fmt.Sprintf("build wall %s: %v", e.Wall, e.Cause) }
func (e *WallError) Unwrap() error { return e.Cause }

// StartError is a program that could not be executed behind walls that all stood.
type StartError struct {
	Path  string
	Cause error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("execute %s in the container: %v", e.Path, e.Cause)
}
func (e *StartError) Unwrap() error { return e.Cause }

// RequireIsolation refuses, with the list, when a required wall does not stand.
func RequireIsolation(walls []Wall) error {
	var missing []string
	for _, w := range walls {
		if w.Required && !w.Stands {
			missing = append(missing, w.Name+" ("+w.Detail+")")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("isolation is required, but this machine does not allow: %s", strings.Join(missing, "; "))
}
