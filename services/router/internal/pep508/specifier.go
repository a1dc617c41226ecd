package pep508

import (
	"fmt"
	"slices"
	"strings"
)

// Specifier is one version clause, such as ">=1.2" or "==1.*".
type Specifier struct {
	// Op is one of ~= == != <= >= < > ===.
	Op string
	// Text is the version as it was written, without a trailing ".*".
	Text string
	// Prefix is set where the version ended in ".*".
	Prefix  bool
	version Version
}

// operators, the longer ones first: "===" begins with "==".
var operators = []string{"===", "~=", "==", "!=", "<=", ">=", "<", ">"}

func newSpecifier(op, text string) (Specifier, error) {
	s := Specifier{Op: op, Text: text}
	if op == "===" {
		return s, nil
	}
	if cut, ok := strings.CutSuffix(text, ".*"); ok {
		if op != "==" && op != "!=" {
			return s, fmt.Errorf("%q: .* goes with == and != only", op+text)
		}
		s.Text, s.Prefix = cut, true
	}
	version, ok := ParseVersion(s.Text)
	if !ok {
		return s, fmt.Errorf("%q is no version (PEP 440)", text)
	}
	s.version = version
	switch {
	case s.Prefix && (version.dev != "" || len(version.local) > 0):
		return s, fmt.Errorf("%q: .* follows neither a dev nor a local version", op+text)
	case len(version.local) > 0 && op != "==" && op != "!=":
		return s, fmt.Errorf("%q: a local version (+…) goes with == and != only", op+text)
	case op == "~=" && len(version.release) < 2:
		return s, fmt.Errorf("%q: ~= needs two parts at least, such as ~=1.0", op+text)
	}
	return s, nil
}

// String is the normalized spelling. Versions that are equal are spelt alike,
// except where the number of parts matters (~= and .*).
func (s Specifier) String() string {
	if s.Op == "===" {
		return s.Op + s.Text
	}
	v := s.version
	if s.Op != "~=" && !s.Prefix {
		v.release = trimZeros(v.release)
	}
	out := s.Op + v.String()
	if s.Prefix {
		out += ".*"
	}
	return out
}

func trimZeros(release []string) []string {
	end := len(release)
	for end > 1 && release[end-1] == "0" {
		end--
	}
	return release[:end]
}

// Match says whether the clause lets v be installed.
func (s Specifier) Match(v Version) bool {
	switch s.Op {
	case "===":
		return strings.EqualFold(s.Text, v.String())
	case "==":
		return s.equal(v)
	case "!=":
		return !s.equal(v)
	case "<=":
		return v.comparePublic(s.version) <= 0
	case ">=":
		return v.comparePublic(s.version) >= 0
	case "<":
		return s.less(v)
	case ">":
		return s.greater(v)
	default: // "~="
		upper := Version{epoch: s.version.epoch, release: s.version.release[:len(s.version.release)-1]}
		return v.comparePublic(s.version) >= 0 && hasPrefix(v, upper)
	}
}

func (s Specifier) equal(v Version) bool {
	if s.Prefix {
		return hasPrefix(v, s.version)
	}
	if len(s.version.local) == 0 {
		return v.comparePublic(s.version) == 0
	}
	return v.Compare(s.version) == 0
}

// less leaves out the pre-releases of the bound itself, unless it is one.
func (s Specifier) less(v Version) bool {
	if v.comparePublic(s.version) >= 0 {
		return false
	}
	sameBase := compareNumbers(v.epoch, s.version.epoch) == 0 && compareRelease(v.release, s.version.release) == 0
	return s.version.Prerelease() || !v.Prerelease() || !sameBase
}

// greater leaves out the post-releases and local versions of the bound itself.
func (s Specifier) greater(v Version) bool {
	if v.comparePublic(s.version) <= 0 {
		return false
	}
	sameBase := compareNumbers(v.epoch, s.version.epoch) == 0 && compareRelease(v.release, s.version.release) == 0
	return !sameBase || s.version.post != "" || v.post == ""
}

// hasPrefix says whether v begins with prefix, v padded with zeros; a prefix with
// a pre or post part wants that part too.
func hasPrefix(v, prefix Version) bool {
	if compareNumbers(v.epoch, prefix.epoch) != 0 {
		return false
	}
	for i, part := range prefix.release {
		if at(v.release, i) != part {
			return false
		}
	}
	if prefix.pre == "" && prefix.post == "" {
		return true
	}
	same := compareRelease(v.release, prefix.release) == 0
	pre := v.pre == prefix.pre && compareNumbers(v.preNum, prefix.preNum) == 0
	return same && pre && (prefix.post == "" || v.post == prefix.post)
}

// fits says whether every clause lets v be installed. A pre-release fits only
// where a clause names one.
func fits(specifiers []Specifier, v Version) bool {
	asked := slices.ContainsFunc(specifiers, func(s Specifier) bool { return s.version.Prerelease() })
	if v.Prerelease() && !asked {
		return false
	}
	return !slices.ContainsFunc(specifiers, func(s Specifier) bool { return !s.Match(v) })
}
