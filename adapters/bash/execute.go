package bash

import (
	"strings"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

var _ runtimeserver.Commander = (*Language)(nil)

// maxArgument is the longest argument that the kernel takes, in bytes.
const maxArgument = 128<<10 - 1

// Command runs a file with arguments; without a file one argument is a script
// for bash -c, "sh -c …" and "bash -c …" are taken as they are, and several
// arguments are the lines of a script.
func (l *Language) Command(_, entrypoint string, args []string) ([]string, error) {
	if entrypoint != "" {
		return append([]string{l.bash, "--norc", "--noprofile", "--", entrypoint}, args...), nil
	}
	if len(args) >= 3 && (args[0] == "sh" || args[0] == "bash") && args[1] == "-c" {
		if args[0] == "bash" {
			return append([]string{l.bash}, args[1:]...), nil
		}
		return append([]string{"/bin/sh"}, args[1:]...), nil
	}
	script := strings.Join(args, "\n")
	if len(script) > maxArgument {
		return nil, edge.Publicf(runtimeserver.ErrHandlerInvalid, "args are a script of %d bytes; at most %d: put it into a file and name it as entrypoint", len(script), maxArgument)
	}
	return []string{l.bash, "--norc", "--noprofile", "-c", script}, nil
}
