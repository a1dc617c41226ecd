package pep508

import (
	"fmt"
	"slices"
	"strings"
)

// Requirement is one entry.
type Requirement struct {
	// Name is as it was written; Normalize compares names.
	Name string
	// Extras are normalized, sorted and without doubles.
	Extras []string
	// Specifiers are sorted by spelling and without doubles.
	Specifiers []Specifier
	// Marker is the expression with single spaces and double quotes, or "".
	Marker string
}

// Error says which entry is wrong and why.
type Error struct {
	Entry, Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("package %q: %s", e.Entry, e.Problem) }

// Public makes the text fit for the caller.
func (e *Error) Public() string { return e.Error() }

// Normalize is the name under which indexes and installers know a distribution
// (PEP 503): lower case, runs of ".", "-" and "_" as one "-".
func Normalize(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if r == '-' || r == '_' || r == '.' {
			gap = true
			continue
		}
		if gap {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}

// String is the normalized entry, which Parse reads back as the same.
func (r Requirement) String() string {
	var b strings.Builder
	b.WriteString(Normalize(r.Name))
	if len(r.Extras) > 0 {
		b.WriteString("[" + strings.Join(r.Extras, ",") + "]")
	}
	b.WriteString(r.versions())
	if r.Marker != "" {
		b.WriteString(" ; " + r.Marker)
	}
	return b.String()
}

func (r Requirement) versions() string {
	clauses := make([]string, len(r.Specifiers))
	for i, s := range r.Specifiers {
		clauses[i] = s.String()
	}
	return strings.Join(clauses, ",")
}

// Parse reads one entry. Its error is an *Error.
func Parse(entry string) (Requirement, error) {
	p := &parser{rest: entry}
	r, err := p.requirement()
	if err != nil {
		return Requirement{}, &Error{Entry: entry, Problem: err.Error()}
	}
	return r, nil
}

func (p *parser) requirement() (r Requirement, err error) {
	if err := p.refuse(); err != nil {
		return r, err
	}
	p.space()
	if r.Name = p.identifier(); r.Name == "" {
		return r, p.unexpected("a distribution's name")
	}
	p.space()
	if r.Extras, err = p.extras(); err != nil {
		return r, err
	}
	p.space()
	if strings.HasPrefix(p.rest, "@") {
		return r, fmt.Errorf("URLs are not installed: name a distribution and a version")
	}
	if r.Specifiers, err = p.specifiers(); err != nil {
		return r, err
	}
	p.space()
	if p.take(";") {
		if r.Marker, err = p.marker(); err != nil {
			return r, err
		}
		p.space()
	}
	if p.rest != "" {
		return r, p.unexpected("the end of the entry")
	}
	return r, nil
}

// refuse names what people write instead of a requirement, before the grammar
// would say less clearly that it is none.
func (p *parser) refuse() error {
	text := strings.Trim(p.rest, " \t")
	for _, r := range p.rest {
		if r != '\t' && (r < ' ' || r > '~') {
			return fmt.Errorf("only printable ASCII on one line, found %q", r)
		}
	}
	head, _, _ := strings.Cut(text, ";")
	switch {
	case text == "":
		return fmt.Errorf("it is empty: name a distribution")
	case strings.HasPrefix(text, "-"):
		return fmt.Errorf("installer options are not taken: name a distribution")
	case strings.Contains(head, "://"):
		return fmt.Errorf("URLs are not installed: name a distribution and a version")
	case strings.ContainsAny(head, `/\`), strings.HasPrefix(text, "."), strings.HasPrefix(text, "~"):
		return fmt.Errorf("paths are not installed: name a distribution and a version")
	case strings.HasSuffix(strings.ToLower(head), ".whl"), strings.HasSuffix(strings.ToLower(head), ".tar.gz"):
		return fmt.Errorf("files are not installed: name a distribution and a version")
	}
	return nil
}

func (p *parser) extras() ([]string, error) {
	if !p.take("[") {
		return nil, nil
	}
	var extras []string
	for p.space(); !p.take("]"); p.space() {
		if len(extras) > 0 && !p.take(",") {
			return nil, p.unexpected(`"," or "]" in the extras`)
		}
		p.space()
		name := p.identifier()
		if name == "" {
			return nil, p.unexpected("the name of an extra")
		}
		extras = append(extras, Normalize(name))
	}
	slices.Sort(extras)
	return slices.Compact(extras), nil
}

func (p *parser) specifiers() ([]Specifier, error) {
	group := p.take("(")
	var out []Specifier
	for p.space(); ; p.space() {
		if len(out) == 0 && p.ahead(operators) == "" {
			break // none at all
		}
		s, err := p.specifier()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
		p.space()
		if !p.take(",") {
			break
		}
	}
	if group && !p.take(")") {
		return nil, p.unexpected(`")" after the versions`)
	}
	slices.SortFunc(out, func(a, b Specifier) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(out, func(a, b Specifier) bool { return a.String() == b.String() }), nil
}

func (p *parser) specifier() (Specifier, error) {
	op := p.ahead(operators)
	if op == "" {
		return Specifier{}, p.unexpected("a version operator")
	}
	p.take(op)
	p.space()
	// "===" takes any text; the others are checked as versions.
	text := p.run(func(c byte) bool { return c > ' ' && c <= '~' && !strings.ContainsRune(",;()", rune(c)) })
	if text == "" {
		return Specifier{}, p.unexpected(fmt.Sprintf("a version after %q", op))
	}
	return newSpecifier(op, text)
}
