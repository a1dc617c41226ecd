package worker_test

import (
	"archive/zip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/worker"
)

// wheel writes a pure Python package of one module as a wheel into folder.
func wheel(t *testing.T, folder, name, version, module string) {
	t.Helper()
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s-%s-py3-none-any.whl", name, version)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	info := fmt.Sprintf("%s-%s.dist-info/", name, version)
	for path, text := range map[string]string{
		name + ".py":      module,
		info + "METADATA": fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version),
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":   fmt.Sprintf("%s.py,,\n%sMETADATA,,\n%sWHEEL,,\n%sRECORD,,\n", name, info, info, info),
	} {
		w, err := archive.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

// shop is a worker whose packages come from a folder.
func shop(t *testing.T) *house {
	t.Helper()
	index := t.TempDir()
	wheel(t, index, "greeter", "1.0", "WORD = 'hello'\n")
	wheel(t, index, "greeter", "2.0", "WORD = 'hullo'\n")
	return open(t, func(c *worker.Config) {
		c.InstallArgs = []string{"--no-index", "--find-links", index}
		c.Memory, c.StartTimeout = 64<<30, time.Minute
	})
}

const greet = "def f():\n    import greeter\n    return greeter.WORD, greeter.__file__"

func TestPackagesAreInstalledOnce(t *testing.T) {
	h := shop(t)
	defer h.stop()
	var mu sync.Mutex
	places := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			hd := header(fmt.Sprint("package-", i))
			hd.Packages = []string{"greeter==1.0"}
			a, err := h.execute(t.Context(), hd, greet, "f")
			if err != nil || !a.envelope.OK {
				t.Errorf("call %d: %v %+v", i, err, a.envelope)
				return
			}
			value, _ := a.envelope.Value.([]any)
			if value[0] != "hello" {
				t.Errorf("greeter says %v", value[0])
			}
			mu.Lock()
			places[value[1].(string)] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(places) != 1 {
		t.Errorf("installed to %v", places)
	}
	// Another version is another set; a call that names none sees none.
	hd := header("other")
	hd.Packages = []string{"greeter==2.0"}
	if a, err := h.execute(t.Context(), hd, greet, "f"); err != nil || !strings.Contains(fmt.Sprint(a.envelope.Value), "hullo") {
		t.Errorf("the other version: %v %+v", err, a.envelope)
	}
	if a, err := h.execute(t.Context(), header("none"), greet, "f"); err != nil || a.envelope.ExcType != "ModuleNotFoundError" {
		t.Errorf("a call without packages: %v %+v", err, a.envelope)
	}
	list := "import os\ndef f():\n    return os.listdir('/opt/hearth/packages')"
	if a, err := h.execute(t.Context(), header("list"), list, "f"); err != nil || a.envelope.ExcType != "PermissionError" {
		t.Errorf("what others installed can be listed: %v %+v", err, a.envelope)
	}
}

func TestPackageFailure(t *testing.T) {
	h := shop(t)
	defer h.stop()
	hd := header("bad")
	hd.Packages = []string{"not-there==9"}
	_, err := h.execute(t.Context(), hd, greet, "f")
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || edge.Reason(err) != "PACKAGE_INSTALL_FAILED" || !strings.Contains(err.Error(), "not-there") {
		t.Errorf("got %v", err)
	}
}

// A session gains packages as it goes; an old client names them in its pickle.
func TestPackagesLater(t *testing.T) {
	h := shop(t)
	defer h.stop()
	first, err := h.execute(t.Context(), &serverless.WorkerExecutionRequest{RequestId: "1", SessionId: "s"}, greet, "f")
	if err != nil || first.envelope.ExcType != "ModuleNotFoundError" {
		t.Fatalf("first call: %v %+v", err, first)
	}
	second := &serverless.WorkerExecutionRequest{RequestId: "2", SessionId: "s", ContainerId: &first.container, Packages: []string{"greeter"}}
	if a, err := h.execute(t.Context(), second, greet, "f"); err != nil || !a.envelope.OK {
		t.Errorf("second call: %v %+v", err, a)
	}
	body := pickle(t, "{'func': lambda: __import__('greeter').WORD, 'args': (), 'kwargs': {}, 'packages': ['greeter==1.0']}")
	a, err := h.send(context.Background(), header("old"), body)
	if err != nil || unpickle(t, a.payload) != "(True, 'hello', [])" {
		t.Errorf("an old client: %v %s", err, unpickle(t, a.payload))
	}
}
