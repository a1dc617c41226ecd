package cli

import (
	"slices"
	"testing"
)

func TestImports(t *testing.T) {
	const source = "import numpy as np, os.path\nfrom pandas.core import x\n  import re\n# import no\nx = 'import no'\n"
	if got, want := imports(source), []string{"numpy", "os", "pandas", "re"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]bytesFlag{"512Mi": 512 << 20, "2G": 2e9, "7": 7, "1Ki": 1024} {
		var got bytesFlag
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Mi", "-1", "1.5Gi", "9999999999Ti", "12x"} {
		var got bytesFlag
		if got.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
