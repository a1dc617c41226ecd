// Package config owns how a command reads its settings: flags, then HEARTH_*
// variables, then defaults. A variable that no flag knows is an error, as an
// unknown flag is.
package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Prefix is what the names of our environment variables start with.
const Prefix = "HEARTH"

// given are variables that Hearth itself sets for user code, which may start a
// command of ours.
var given = []string{"HEARTH_OUTPUTS", "HEARTH_RUN_UID", "HEARTH_INVOCATION_ID", "HEARTH_ATTEMPT", "HEARTH_GROUP"}

// Parser returns a kong parser for target whose flags have HEARTH_* variables.
func Parser(target any, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(target, append([]kong.Option{kong.DefaultEnvars(Prefix), kong.UsageOnError()}, options...)...)
}

// CheckEnviron refuses HEARTH_* variables that no flag of the parser reads.
func CheckEnviron(parser *kong.Kong, environ []string) error {
	known := slices.Clone(given)
	collect(parser.Model.Node, &known)
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, Prefix+"_") && !slices.Contains(known, name) {
			return fmt.Errorf("unknown environment variable %s: no setting reads it (see --help)", name)
		}
	}
	return nil
}

func collect(node *kong.Node, names *[]string) {
	for _, flag := range node.Flags {
		*names = append(*names, flag.Envs...)
	}
	for _, child := range node.Children {
		collect(child, names)
	}
}
