package controlplane

import (
	"strings"
	"testing"
)

// Every field that cannot be is named, at once.
func TestValidate(t *testing.T) {
	cfg := Default()
	cfg.Data = "x"
	if err := cfg.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	err := Config{}.Validate()
	if err == nil {
		t.Fatal("nothing is set")
	}
	for _, field := range []string{"data", "lease ", "lease_margin", "watch_history", "keep_archives"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("New takes what is not valid")
	}
	cfg.KeepLostNodes = -1
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "keep_lost_nodes") {
		t.Errorf("%v", err)
	}
}
