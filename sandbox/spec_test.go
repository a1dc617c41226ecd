package sandbox

import (
	"strings"
	"testing"
)

// TestValidateNamesAll: every bad field is named at once, not the first alone.
func TestValidateNamesAll(t *testing.T) {
	err := Spec{ID: "A", Dir: "x", Limits: Limits{Memory: 1, Pids: 1, MilliCPU: 1}, Network: 7,
		Binds: []Bind{{Source: "x", Target: "/.."}}, Scratch: []Scratch{{Target: "/"}}, User: User{UID: 1}}.Validate()
	if err == nil {
		t.Fatal("taken")
	}
	for _, field := range []string{"id ", "argv", "dir ", "source", "target", "scratch", "user", "memory", "pids", "milli_cpu", "network"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
	good := Spec{ID: "a-1", Argv: []string{"/x"}, Dir: "/tmp", Limits: Limits{Memory: MinMemory, Pids: 2, MilliCPU: 10},
		Binds: []Bind{{Source: "/usr"}}, Scratch: []Scratch{{Target: "/tmp", Bytes: 1}}, User: User{1000, 1000}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

func TestRequireIsolation(t *testing.T) {
	walls := []Wall{{Name: "a", Stands: true, Required: true}, {Name: "b", Detail: "why b"}, {Name: "c", Required: true, Detail: "why c"}}
	err := RequireIsolation(walls)
	if err == nil || !strings.Contains(err.Error(), "c (why c)") || strings.Contains(err.Error(), "why b") {
		t.Errorf("%v", err)
	}
	if err := RequireIsolation(walls[:2]); err != nil {
		t.Error(err)
	}
}
