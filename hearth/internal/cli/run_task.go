package cli

import (
	"fmt"
	"strings"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// command is what a task runs, as its Runtime is told. Bash runs one argument as
// a script: so what the user's shell took apart is quoted together again, but for
// a shell that is called by name, which the Runtime knows.
func (c *runCreateCmd) command() []string {
	if c.Runtime != "bash" || c.Entrypoint != "" || len(c.Command) < 2 {
		return c.Command
	}
	if (c.Command[0] == "bash" || c.Command[0] == "sh") && c.Command[1] == "-c" {
		return c.Command
	}
	quoted := make([]string, len(c.Command))
	for i, word := range c.Command {
		quoted[i] = quote(word)
	}
	return []string{strings.Join(quoted, " ")}
}

// quote writes a word so that a shell reads it as it is.
func quote(word string) string {
	plain := func(r rune) bool {
		return r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r))
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// exitError ends the command with the exit code of a task.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

// verdict adds a task's own exit code to what a wait for it failed with.
func verdict(r *hearthv1.Run, err error) error {
	if err == nil || r.GetSpec().GetTask() == nil || !ended(r.GetStatus().GetPhase()) {
		return err
	}
	if code := r.GetStatus().GetExitCode(); code > 0 && code < 256 {
		return exitError{fmt.Errorf("%w (exit code %d)", err, code), int(code)}
	}
	return err
}

// aim is what a wait for a Run is for: a task is waited for to its end.
func aim(r *hearthv1.Run, toItsEnd bool) goal {
	if toItsEnd || r.GetSpec().GetTask() != nil {
		return toEnd
	}
	return toReady
}
