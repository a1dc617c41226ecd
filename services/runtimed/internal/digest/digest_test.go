package digest

import (
	"maps"
	"regexp"
	"testing"
)

func TestOf(t *testing.T) {
	base := Inputs{Source: "git:abc", Handler: "app.hello", Env: map[string]string{"A": "1", "B": "<&>"}, IdleTimeoutSeconds: 300}
	first := Of(base)
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(first) {
		t.Errorf("digest %q", first)
	}
	// Pinned: a node of another version must find the registrations of this one.
	if want := "sha256:d7c18a421371c2217d101938a5be2156f1ebd161ed77f046eb028bb147f4279a"; first != want {
		t.Errorf("digest %q, want %q", first, want)
	}
	same := base
	same.Env = maps.Clone(base.Env)
	if Of(same) != first {
		t.Error("equal inputs, unequal digests")
	}
	for name, change := range map[string]func(*Inputs){
		"source":       func(in *Inputs) { in.Source = "git:abd" },
		"subdirectory": func(in *Inputs) { in.Subdirectory = "sub" },
		"handler":      func(in *Inputs) { in.Handler = "app.other" },
		"env value":    func(in *Inputs) { in.Env = map[string]string{"A": "2", "B": "<&>"} },
		"env name":     func(in *Inputs) { in.Env = map[string]string{"C": "1", "B": "<&>"} },
		"no env":       func(in *Inputs) { in.Env = nil },
		"idle timeout": func(in *Inputs) { in.IdleTimeoutSeconds = 301 },
	} {
		other := base
		change(&other)
		if Of(other) == first {
			t.Errorf("%s does not change the digest", name)
		}
	}
}
