package pep508

import (
	"fmt"
	"slices"
	"strings"
)

// Base is what an image carries: normalized name to version.
type Base map[string]Version

// Resolve parses the entries and joins those of one distribution, keeping the
// order of first mention. Entries that differ in their extras only become one
// with all of them; entries that differ in versions or marker are an *Error,
// since to drop one of them silently would lose what its author asked for.
func Resolve(entries []string) ([]Requirement, error) {
	var out []Requirement
	first := map[string]int{}
	for _, entry := range entries {
		r, err := Parse(entry)
		if err != nil {
			return nil, err
		}
		name := Normalize(r.Name)
		i, seen := first[name]
		if !seen {
			first[name] = len(out)
			out = append(out, r)
			continue
		}
		kept := &out[i]
		if kept.versions() != r.versions() || kept.Marker != r.Marker {
			return nil, &Error{Entry: entry, Problem: fmt.Sprintf("%s is asked for as %q too: write one entry that says both", name, kept.String())}
		}
		kept.Extras = append(slices.Clone(kept.Extras), r.Extras...)
		slices.Sort(kept.Extras)
		kept.Extras = slices.Compact(kept.Extras)
	}
	return out, nil
}

// Without returns the normalized entries that the image does not carry in a
// fitting version. An entry with extras stays: the image says nothing of them.
func Without(requirements []Requirement, base Base) []string {
	var out []string
	for _, r := range requirements {
		version, carried := base[Normalize(r.Name)]
		if carried && len(r.Extras) == 0 && fits(r.Specifiers, version) {
			continue
		}
		out = append(out, r.String())
	}
	return out
}

// ParseBase reads name → version as a catalogue states it.
func ParseBase(packages map[string]string) (Base, error) {
	base := Base{}
	for name, text := range packages {
		version, ok := ParseVersion(text)
		if !ok {
			return nil, fmt.Errorf("package %q: %q is no version (PEP 440)", name, text)
		}
		if strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("a package without a name")
		}
		base[Normalize(name)] = version
	}
	return base, nil
}
