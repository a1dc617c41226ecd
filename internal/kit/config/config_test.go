package config_test

import (
	"testing"

	"github.com/hearth-run/hearth/internal/kit/config"
)

type settings struct {
	Listen string `help:"Address."`
	Up     struct {
		DataDir string `help:"Folder."`
	} `cmd:""`
}

func TestEnviron(t *testing.T) {
	t.Setenv("HEARTH_LISTEN", "127.0.0.1:1")
	var s settings
	parser, err := config.Parser(&s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"up"}); err != nil {
		t.Fatal(err)
	}
	if s.Listen != "127.0.0.1:1" {
		t.Errorf("HEARTH_LISTEN was not read: %q", s.Listen)
	}
	for entry, good := range map[string]bool{
		"HEARTH_LISTEN=x": true, "HEARTH_DATA_DIR=x": true, "HEARTH_OUTPUTS=x": true,
		"PATH=x": true, "HEARTHSTONE=x": true, "HEARTH_LISTN=x": false,
	} {
		if err := config.CheckEnviron(parser, []string{entry}); (err == nil) != good {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
