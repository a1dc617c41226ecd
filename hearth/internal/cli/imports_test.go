package cli

import (
	"slices"
	"testing"
)

func TestImports(t *testing.T) {
	for source, want := range map[string][]string{
		"import numpy as np, os.path\nfrom pandas.core import x\n  import re\n# import no\nx = 'import no'\n": {"numpy", "os", "pandas", "re"},
		"\"\"\"Docs.\n\nimport no\n\"\"\"\nimport a":                                                          {"a"},
		"x = r'''\\\nimport no\n'''; import b":                                                                {"b"},
		"s = 'it\\'s'\nimport c\ns = \"#\"; import d # import no":                                             {"c", "d"},
		"import \\\n  e, \\\n  f as g":                                                                        {"e", "f"},
		"from . import no\nfrom .no import x\nfrom h.i import (j,\n k)":                                       {"h"},
		"try: import k\nexcept ImportError: import l":                                                         {"k", "l"},
		"important = 1\nfromage = 2\nimport\n":                                                                nil,
		"s = 'open\nimport m":                                                                                 {"m"},
		"if x:\n\timport n\nyield_from = 3\n":                                                                 {"n"},
		"def f():\n    yield from o\n    raise E from p\n":                                                    nil,
		"import": nil,
		"'''":    nil,
		"\"\\":   nil,
	} {
		if got := imports(source); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", source, got, want)
		}
	}
}
