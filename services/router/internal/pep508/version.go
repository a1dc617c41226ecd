package pep508

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Version is a PEP 440 version. The zero value is version 0.
type Version struct {
	epoch   string
	release []string
	pre     string // "", "a", "b" or "rc"
	preNum  string
	post    string // "" when absent
	dev     string // "" when absent
	local   []string
}

// Numbers are kept as digits without leading zeros: PEP 440 sets no bound on them.

var versionForm = regexp.MustCompile(`^v?(?:([0-9]+)!)?([0-9]+(?:\.[0-9]+)*)` +
	`(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?([0-9]+)?)?` +
	`(?:-([0-9]+)|[-_.]?(post|rev|r)[-_.]?([0-9]+)?)?` +
	`(?:[-_.]?(dev)[-_.]?([0-9]+)?)?` +
	`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)

var preNames = map[string]string{"alpha": "a", "a": "a", "beta": "b", "b": "b", "c": "rc", "rc": "rc", "pre": "rc", "preview": "rc"}

// ParseVersion reads a version in any of PEP 440's spellings; ok is false for
// anything else.
func ParseVersion(text string) (v Version, ok bool) {
	m := versionForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return Version{}, false
	}
	v.epoch = number(m[1])
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, number(part))
	}
	if m[3] != "" {
		v.pre, v.preNum = preNames[m[3]], number(m[4])
	}
	switch {
	case m[5] != "":
		v.post = number(m[5])
	case m[6] != "":
		v.post = number(m[7])
	}
	if m[8] != "" {
		v.dev = number(m[9])
	}
	if m[10] != "" {
		v.local = strings.FieldsFunc(m[10], func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	}
	return v, true
}

func number(digits string) string {
	if trimmed := strings.TrimLeft(digits, "0"); trimmed != "" {
		return trimmed
	}
	return "0"
}

// String is the normalized spelling.
func (v Version) String() string {
	var b strings.Builder
	if v.epoch != "0" && v.epoch != "" {
		b.WriteString(v.epoch + "!")
	}
	b.WriteString(strings.Join(v.release, "."))
	b.WriteString(v.pre + v.preNum)
	if v.post != "" {
		b.WriteString(".post" + v.post)
	}
	if v.dev != "" {
		b.WriteString(".dev" + v.dev)
	}
	if len(v.local) > 0 {
		b.WriteString("+" + strings.Join(v.local, "."))
	}
	return b.String()
}

// Prerelease says whether the version is one that installers do not choose
// unless asked to.
func (v Version) Prerelease() bool { return v.pre != "" || v.dev != "" }

// Compare orders versions as PEP 440 does: dev before pre before final before
// post, a local version after the same one without.
func (v Version) Compare(w Version) int {
	return cmp.Or(v.comparePublic(w), compareLocal(v.local, w.local))
}

func (v Version) comparePublic(w Version) int {
	return cmp.Or(
		compareNumbers(v.epoch, w.epoch),
		compareRelease(v.release, w.release),
		cmp.Compare(v.preRank(), w.preRank()),
		compareNumbers(v.preNum, w.preNum),
		compareOptional(v.post, w.post, -1),
		compareOptional(v.dev, w.dev, 1),
	)
}

// preRank puts a dev release of a final version before its alphas.
func (v Version) preRank() int {
	switch {
	case v.pre == "a":
		return 1
	case v.pre == "b":
		return 2
	case v.pre == "rc":
		return 3
	case v.post == "" && v.dev != "":
		return 0
	default:
		return 4
	}
}

func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// compareOptional orders numbers that may be absent; absent says where an absent
// one stands.
func compareOptional(a, b string, absent int) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return absent
	case b == "":
		return -absent
	default:
		return compareNumbers(a, b)
	}
}

// compareRelease pads the shorter one with zeros.
func compareRelease(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if c := compareNumbers(at(a, i), at(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

func at(parts []string, i int) string {
	if i < len(parts) {
		return parts[i]
	}
	return "0"
}

// compareLocal orders local labels: numbers after words, more parts after fewer.
func compareLocal(a, b []string) int {
	return slices.CompareFunc(a, b, func(x, y string) int {
		xNum, yNum := digits(x), digits(y)
		switch {
		case xNum && yNum:
			return compareNumbers(number(x), number(y))
		case xNum:
			return 1
		case yNum:
			return -1
		default:
			return cmp.Compare(x, y)
		}
	})
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
