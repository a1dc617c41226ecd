package pep508

import (
	"fmt"
	"slices"
	"strings"
)

// depth bounds the parentheses of a marker, so that an entry cannot exhaust the
// stack.
const depth = 32

type parser struct {
	rest string
	deep int
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

func (p *parser) take(token string) bool {
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

// ahead returns the first of the tokens that comes next, or "".
func (p *parser) ahead(tokens []string) string {
	for _, token := range tokens {
		if strings.HasPrefix(p.rest, token) {
			return token
		}
	}
	return ""
}

func (p *parser) run(in func(byte) bool) string {
	n := 0
	for n < len(p.rest) && in(p.rest[n]) {
		n++
	}
	out := p.rest[:n]
	p.rest = p.rest[n:]
	return out
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// identifier is letters and digits, with ".", "-" and "_" inside.
func (p *parser) identifier() string {
	if p.rest == "" || !alphanumeric(p.rest[0]) {
		return ""
	}
	before := p.rest
	text := p.run(func(c byte) bool { return alphanumeric(c) || c == '.' || c == '-' || c == '_' })
	name := strings.TrimRight(text, ".-_")
	p.rest = before[len(name):]
	return name
}

func (p *parser) unexpected(want string) error {
	if p.rest == "" {
		return fmt.Errorf("want %s, but the entry ends", want)
	}
	return fmt.Errorf("want %s at %q", want, p.rest)
}

var variables = []string{
	"python_version", "python_full_version", "os_name", "sys_platform", "platform_release",
	"platform_system", "platform_version", "platform_machine", "platform_python_implementation",
	"implementation_name", "implementation_version", "extra",
	// Spellings of before PEP 508 that installers still take.
	"os.name", "sys.platform", "platform.version", "platform.machine",
	"platform.python_implementation", "python_implementation",
}

func (p *parser) marker() (string, error) {
	return p.chain("or", func() (string, error) { return p.chain("and", p.term) })
}

// chain reads one or more operands with a word between them.
func (p *parser) chain(word string, operand func() (string, error)) (string, error) {
	out, err := operand()
	for err == nil {
		p.space()
		if !p.word(word) {
			return out, nil
		}
		var next string
		next, err = operand()
		out += " " + word + " " + next
	}
	return "", err
}

// word takes a keyword that is not the beginning of a longer name.
func (p *parser) word(word string) bool {
	rest, ok := strings.CutPrefix(p.rest, word)
	if !ok || rest != "" && (alphanumeric(rest[0]) || rest[0] == '_' || rest[0] == '.') {
		return false
	}
	p.rest = rest
	return true
}

func (p *parser) term() (string, error) {
	p.space()
	if p.take("(") {
		return p.group()
	}
	left, err := p.operand()
	if err != nil {
		return "", err
	}
	p.space()
	op, err := p.operator()
	if err != nil {
		return "", err
	}
	p.space()
	right, err := p.operand()
	if err != nil {
		return "", err
	}
	if left[0] == '"' && right[0] == '"' || left[0] == '\'' && right[0] == '\'' {
		return "", fmt.Errorf("the marker compares two strings, %s and %s: one side must be a variable", left, right)
	}
	return left + " " + op + " " + right, nil
}

func (p *parser) group() (string, error) {
	if p.deep++; p.deep > depth {
		return "", fmt.Errorf("the marker has more than %d parentheses in each other", depth)
	}
	inner, err := p.marker()
	if err != nil {
		return "", err
	}
	p.space()
	if !p.take(")") {
		return "", p.unexpected(`")" in the marker`)
	}
	p.deep--
	return "(" + inner + ")", nil
}

func (p *parser) operator() (string, error) {
	if op := p.ahead(operators); op != "" {
		p.take(op)
		return op, nil
	}
	if p.word("in") {
		return "in", nil
	}
	if p.word("not") {
		p.space()
		if p.word("in") {
			return "not in", nil
		}
		return "", p.unexpected(`"in" after "not"`)
	}
	return "", p.unexpected("a comparison in the marker")
}

// operand is a variable or a string. Strings keep their quotes, double ones
// where the text allows it; there are no escapes in them.
func (p *parser) operand() (string, error) {
	for _, quote := range []string{`"`, `'`} {
		if !p.take(quote) {
			continue
		}
		text, rest, closed := strings.Cut(p.rest, quote)
		if !closed {
			return "", fmt.Errorf("a string in the marker is not closed: %s%s", quote, p.rest)
		}
		if strings.Contains(text, `\`) {
			return "", fmt.Errorf("the marker's string %q holds a backslash", text)
		}
		p.rest = rest
		if !strings.Contains(text, `"`) {
			quote = `"`
		}
		return quote + text + quote, nil
	}
	name := p.run(func(c byte) bool { return alphanumeric(c) || c == '_' || c == '.' })
	if name == "" {
		return "", p.unexpected("a variable or a string in the marker")
	}
	if !slices.Contains(variables, name) {
		return "", fmt.Errorf("%q is no marker variable: use one of %s", name, strings.Join(variables[:12], ", "))
	}
	return name, nil
}
