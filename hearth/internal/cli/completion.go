package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// The scripts ask the command itself, so that they never grow old.
var completions = map[string]string{
	"bash": `_hearth() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _hearth hearth
`,
	"zsh": `#compdef hearth
_hearth() {
    local -a candidates
    candidates=(${(f)"$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${#candidates} )); then compadd -a candidates; else _files; fi
}
compdef _hearth hearth
`,
	"fish": `complete -c hearth -a '(hearth __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

func (c *completionCmd) Run(shell *Shell) error {
	_, err := fmt.Fprint(shell.Out, completions[c.Shell])
	return err
}

type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints what may come in place of the last word, a line each.
func (c *completeCmd) Run(shell *Shell, parser *kong.Kong) error {
	words := slices.DeleteFunc(slices.Clone(c.Words), func(w string) bool { return w == "--" })
	if len(words) == 0 {
		words = []string{""}
	}
	for _, candidate := range candidates(parser.Model.Node, words) {
		fmt.Fprintln(shell.Out, candidate)
	}
	return nil
}

// candidates are the commands or flags that the last word can become.
func candidates(node *kong.Node, words []string) []string {
	last := words[len(words)-1]
	for _, word := range words[:len(words)-1] {
		for _, child := range node.Children {
			if child.Name == word {
				node = child
			}
		}
	}
	var list []string
	if strings.HasPrefix(last, "-") {
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				list = append(list, "--"+flag.Name)
			}
		}
	} else {
		for _, child := range node.Children {
			if !child.Hidden {
				list = append(list, child.Name)
			}
		}
	}
	return slices.DeleteFunc(list, func(s string) bool { return !strings.HasPrefix(s, last) })
}
