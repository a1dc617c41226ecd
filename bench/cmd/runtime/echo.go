package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// echo is one function in one language, for all that is measured: what a target
// does beside running it is what it costs.
type echo struct {
	file, code string
	// warm is the floor: a program that loads the file once and answers call after
	// call, with nothing around it.
	warm string
	// once is the program that a process per call runs, payload on stdin.
	once string
}

// The warm Python loop: on descriptor 3 a length of four bytes, then the payload,
// and the same back. As a server must, it decodes JSON and encodes it again.
const warmPython = `
import json, socket, sys
sys.path.insert(0, "")
import app
control = socket.socket(fileno=3)
def take(n):
    data = bytearray(n)
    view = memoryview(data)
    while view:
        got = control.recv_into(view)
        if not got:
            sys.exit()
        view = view[got:]
    return data
while True:
    event = json.loads(take(int.from_bytes(take(4), "big")))
    answer = json.dumps(app.echo(event), separators=(",", ":"), ensure_ascii=False).encode()
    control.sendall(len(answer).to_bytes(4, "big") + answer)
`

// The warm Bash loop: a line on stdin is a call, a subshell answers it from the
// file $1 to the file $2, a line on stdout says that it has ended.
const warmBash = `
source ./app.sh
while IFS= read -r _; do
  (
    LC_ALL=C mapfile -d '' -n 1 -t input <"$1"
    echo_payload "${input[0]-}" >"$2"
  ) &
  wait $!
  echo $?
done
`

var echoes = map[string]echo{
	"python": {
		file: "app.py", code: "def echo(event):\n    return event\n", warm: warmPython,
		once: "import json, sys; sys.path.insert(0, ''); import app; json.dump(app.echo(json.load(sys.stdin.buffer)), sys.stdout, separators=(',', ':'))",
	},
	"bash": {
		file: "app.sh", code: "echo_payload() {\n  printf '%s' \"$1\"\n}\n", warm: warmBash,
		once: "source ./app.sh; LC_ALL=C mapfile -d '' -n 1 -t input; echo_payload \"${input[0]-}\"",
	},
}

// handlers are the echoes by the names that a registration uses.
var handlers = map[string]string{"python": "app.echo", "bash": "app.echo_payload"}

// command is how a language runs a program of one string.
func (f flags) command(language, program string, args ...string) []string {
	if language == "bash" {
		return append([]string{"bash", "--norc", "--noprofile", "-c", program, "bash"}, args...)
	}
	return append([]string{f.Python, "-I", "-c", program}, args...)
}

// write makes a function's folder beneath workspace.
func write(workspace, name, file, code string) (string, error) {
	folder := filepath.Join(workspace, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make folder of a function: %w", err)
	}
	return folder, os.WriteFile(filepath.Join(folder, file), []byte(code), 0o644)
}
