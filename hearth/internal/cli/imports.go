package cli

import (
	"regexp"
	"slices"
	"strings"
)

// imports are the top-level modules that a Python source imports, wherever in it, by
// its text: a hint for a warm start, nothing depends on its being complete. What
// stands in strings and comments does not count, nor do relative imports.
func imports(source string) []string {
	var names []string
	for _, statement := range statements(source) {
		if m := fromImport.FindStringSubmatch(statement); m != nil {
			names = append(names, m[1])
			continue
		}
		m := plainImport.FindStringSubmatch(statement)
		if m == nil {
			continue
		}
		for _, part := range strings.Split(m[1], ",") {
			if m := moduleName.FindStringSubmatch(part); m != nil {
				names = append(names, m[1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var (
	fromImport  = regexp.MustCompile(`^from\s+([\p{L}_][\p{L}\p{Nd}_]*)[\p{L}\p{Nd}_.\s]*\simport\b`)
	plainImport = regexp.MustCompile(`^import\s+(.+)$`)
	moduleName  = regexp.MustCompile(`^\s*([\p{L}_][\p{L}\p{Nd}_]*)`)
	// oneLine leads to a statement on the line of its compound statement.
	oneLine = regexp.MustCompile(`^(?:try|else|finally|with\b.*|if\b.*|except\b.*):\s*`)
)

// statements are the lines of a source, without strings and comments, parted at
// semicolons too; of a compound statement on one line its body as well.
func statements(source string) []string {
	var out []string
	for line := range strings.Lines(code(source)) {
		for _, statement := range strings.Split(line, ";") {
			statement = strings.TrimSpace(statement)
			out = append(out, statement)
			if body := oneLine.ReplaceAllString(statement, ""); body != statement {
				out = append(out, body)
			}
		}
	}
	return out
}

// code is a source without comments, with every string as an empty one, and with the
// lines joined that a backslash joins.
func code(source string) string {
	var out strings.Builder
	for i := 0; i < len(source); {
		switch c := source[i]; {
		case c == '#':
			i += len(comment(source[i:]))
		case c == '"' || c == '\'':
			out.WriteString(`""`)
			i += text(source[i:])
		case strings.HasPrefix(source[i:], "\\\n"):
			out.WriteByte(' ')
			i += 2
		default:
			out.WriteByte(c)
			i++
		}
	}
	return out.String()
}

// comment is the rest of the line.
func comment(source string) string {
	line, _, _ := strings.Cut(source, "\n")
	return line
}

// text is the length of the string literal that a source begins with; one of a single
// line that is not closed ends with its line.
func text(source string) int {
	quote := source[:1]
	if strings.HasPrefix(source, strings.Repeat(quote, 3)) {
		quote = source[:3]
	}
	for i := len(quote); i < len(source); i++ {
		switch {
		case source[i] == '\\':
			i++
		case strings.HasPrefix(source[i:], quote):
			return i + len(quote)
		case len(quote) == 1 && source[i] == '\n':
			return i
		}
	}
	return len(source)
}
