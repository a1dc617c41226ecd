package zygote_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hearth-run/hearth/services/worker/internal/zygote"
)

// TestUnfitImports: what cannot be forked safely never becomes a zygote, is told by the
// module's name and why, and leaves nothing.
func TestUnfitImports(t *testing.T) {
	w := open(t, func(c *zygote.Config) { c.MemoryLimit = 128 << 20 })
	w.write(t, "hearth_fit", "answer = 42\n")
	cases := map[string]string{
		"import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()": "1 threads running",
		"import ctypes, ctypes.util, _thread, time\n_thread.start_new_thread(time.sleep, (1000,))":       "1 threads running",
		"import socket\nkept = socket.socket()":                                                          "socket:[",
		"kept = open('/dev/zero')":                                                                       "/dev/zero",
		"import select\nkept = select.epoll()":                                                           "anon_inode:[eventpoll]",
		"import os\nkept = os.pipe()":                                                                    "pipe:[",
		"import os, time\nif os.fork() == 0: time.sleep(1000)":                                           "1 processes running",
		"import subprocess\nsubprocess.Popen(['setsid', 'sleep', '1000'], start_new_session=True)":       "processes running",
		"import mmap\nkept = mmap.mmap(-1, 4096)":                                                        "maps memory that every process forked from it would share: /dev/zero",
		"raise ValueError('not today')":                                                                  "ValueError: not today",
		"import sys\nsys.exit(3)":                                                                        "SystemExit: 3",
		"import hearth_absent":                                                                           "ModuleNotFoundError: No module named 'hearth_absent'",
		"def":                                                                                            "SyntaxError",
		"import os\nos._exit(3)":                                                                         "its import ends the process",
		"import os\nos.kill(os.getpid(), 9)":                                                             "its import ends the process",
		"kept = [bytearray(b'x') * (1 << 20) for _ in range(1000)]":                                      "more than the 134217728 bytes",
		"open('/etc/hearth-was-here', 'w')":                                                              "PermissionError",
		"import os\nos.kill(os.getppid(), 0)":                                                            "PermissionError",
		"import socket\nsocket.create_connection(('127.0.0.1', 22), 1)":                                  "Network is unreachable",
	}
	want(t, w, cases, "hearth_fit", "hearth_unfit")
	if _, err := w.root.Grow(t.Context(), []string{"hearth_absent.inner"}); err == nil || !strings.Contains(err.Error(), "does not have it") {
		t.Errorf("%v", err)
	}
	z := w.grow(w.root, "hearth_fit")
	if got := w.mustEnter(z, zygote.Begin{}).run(t, "import hearth_fit\ndef call(): return hearth_fit.answer"); got != 42.0 {
		t.Errorf("%v", got)
	}
	// The root, the last zygote and its container.
	w.wantGroups(3)
}

// TestEndlessImports: an import that does not end is ended.
func TestEndlessImports(t *testing.T) {
	w := open(t, func(c *zygote.Config) { c.ImportTimeout = 300 * time.Millisecond })
	want(t, w, map[string]string{
		"import time\ntime.sleep(1000)": "took longer than 300ms",
		"while True: pass":              "took longer than 300ms",
	}, "hearth_unfit")
}

func want(t *testing.T, w *ward, cases map[string]string, modules ...string) {
	t.Helper()
	children := len(childrenOf(t, os.Getpid()))
	for source, why := range cases {
		w.write(t, "hearth_unfit", source+"\n")
		z, err := w.root.Grow(t.Context(), modules)
		var unfit *zygote.UnfitError
		if !errors.As(err, &unfit) || unfit.Module != "hearth_unfit" || !strings.Contains(unfit.Why, why) {
			t.Errorf("%s: %v, want %q", source, err, why)
		}
		if z != nil {
			t.Errorf("%s: became a zygote", source)
		}
		if now := childrenOf(t, os.Getpid()); len(now) != children {
			t.Errorf("%s: %d children were %d: %v", source, len(now), children, now)
		}
	}
}
