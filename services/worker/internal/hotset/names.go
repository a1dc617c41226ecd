package hotset

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Root is the id of the set without imports.
const Root = "z-root"

// maxModules bounds a set: what more a call imports it imports itself.
const maxModules = 64

// Name is the id of a set: the same for the same modules, on every worker.
func Name(modules []string) string {
	if len(modules) == 0 {
		return Root
	}
	sum := sha256.Sum256([]byte(strings.Join(modules, "\n")))
	return "z-" + hex.EncodeToString(sum[:6])
}

var identifier = regexp.MustCompile(`^[\p{L}_][\p{L}\p{Nd}_]{0,127}$`)

// Tops are the top-level modules of import names, sorted, without duplicates and
// without what no module can be called.
func Tops(names []string) []string {
	tops := make([]string, 0, len(names))
	for _, name := range names {
		top, _, _ := strings.Cut(name, ".")
		if identifier.MatchString(top) {
			tops = append(tops, top)
		}
	}
	slices.Sort(tops)
	return slices.Compact(tops)
}

// within says whether every element of the sorted a is in the sorted b.
func within(a, b []string) bool {
	i := 0
	for _, x := range b {
		if i < len(a) && a[i] == x {
			i++
		}
	}
	return i == len(a)
}

// common is what two sorted sets share.
func common(a, b []string) []string {
	var out []string
	for _, x := range a {
		if _, there := slices.BinarySearch(b, x); there {
			out = append(out, x)
		}
	}
	return out
}
