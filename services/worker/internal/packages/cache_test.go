package packages_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/services/worker/internal/packages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, root string, keep int, install func(context.Context, string, []string) error) *packages.Cache {
	t.Helper()
	cache, err := packages.Open(packages.Config{Root: root, MaxSets: keep, Install: install}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func TestOneInstallForMany(t *testing.T) {
	var installs atomic.Int32
	begun, proceed := make(chan struct{}), make(chan struct{})
	cache := open(t, t.TempDir(), 0, func(_ context.Context, folder string, _ []string) error {
		installs.Add(1)
		close(begun)
		<-proceed
		return os.WriteFile(filepath.Join(folder, "x.py"), nil, 0o644)
	})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			requirements := []string{"a", "b==1"}
			if i%2 == 1 {
				requirements = []string{"b==1", "a", "a"}
			}
			folder, release, err := cache.Acquire(t.Context(), requirements)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if _, err := os.Stat(filepath.Join(folder, "x.py")); err != nil {
				t.Error(err)
			}
		})
	}
	<-begun
	// A caller that goes away leaves the installation to the others.
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := cache.Acquire(gone, []string{"a", "b==1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that went away got %v", err)
	}
	close(proceed)
	wg.Wait()
	if n := installs.Load(); n != 1 {
		t.Errorf("%d installations of one set", n)
	}
}

func TestFailureIsTriedAgain(t *testing.T) {
	calls := 0
	cache := open(t, t.TempDir(), 0, func(context.Context, string, []string) error {
		if calls++; calls == 1 {
			return &packages.InstallError{Requirements: []string{"a"}, Tail: "no such version"}
		}
		return nil
	})
	if _, _, err := cache.Acquire(t.Context(), []string{"a"}); !errors.Is(err, packages.ErrInstall) || !strings.Contains(err.Error(), "no such version") {
		t.Errorf("got %v", err)
	}
	_, release, err := cache.Acquire(t.Context(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestRestartKeepsWholeSetsOnly(t *testing.T) {
	root := t.TempDir()
	install := func(context.Context, string, []string) error { return nil }
	_, release, err := open(t, root, 0, install).Acquire(t.Context(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := os.Mkdir(filepath.Join(root, ".installing-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	again := open(t, root, 0, func(context.Context, string, []string) error { return errors.New("installed twice") })
	if _, release, err = again.Acquire(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	release()
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the cache: %v %v", entries, err)
	}
}

func TestEvictionSparesWhatIsUsed(t *testing.T) {
	root := t.TempDir()
	cache := open(t, root, 1, func(context.Context, string, []string) error { return nil })
	used, release, err := cache.Acquire(t.Context(), []string{"used"})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, name := range []string{"a", "b", "c"} {
		_, release, err := cache.Acquire(t.Context(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 2 {
		t.Errorf("kept %d sets, want the used one and one more (%v)", len(entries), err)
	}
	if _, err := os.Stat(used); err != nil {
		t.Error("a set in use was removed")
	}
}
