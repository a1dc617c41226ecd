package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hearth-run/hearth/hearth/internal/tour"
)

// Every example is created with the command and called over HTTP.
func TestExamples(t *testing.T) {
	h := up(t)
	shown := map[string]bool{}
	for _, stop := range tour.Stops() {
		shown[filepath.FromSlash(stop.Folder)] = true
		t.Run(stop.Name, func(t *testing.T) {
			h.create(t, stop.Name, stop.Runtime, stop.Handler, examples(stop.Folder))
			for _, call := range stop.Calls {
				got := h.call(t, stop.Name, call.Payload)
				if err := call.Right([]byte(got.body)); err != nil || got.status != call.Status {
					t.Errorf("%s: %d %q: want status %d, %v", call.Payload, got.status, got.body, call.Status, err)
				}
			}
		})
	}
	for _, language := range []string{"python", "bash"} {
		folders, err := os.ReadDir(examples(language))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			if !shown[filepath.Join(language, folder.Name())] {
				t.Errorf("the example %s/%s is not on the tour", language, folder.Name())
			}
		}
	}
}
