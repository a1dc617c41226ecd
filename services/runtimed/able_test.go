package runtimed_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A node whose Runtime Server is still starting registers once it knows what it
// can do: until then Runs wait for a node, not for a mode.
func TestRegistersWhenAble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		h.runtime.down = true
		time.AfterFunc(time.Second, func() { h.runtime.set(func(f *runtimeFake) { f.down = false }) })
		h.start()
		if took := time.Since(h.began); took < time.Second || took > 2*time.Second {
			t.Errorf("registered after %v", took)
		}
		synctest.Wait()
		h.control.mu.Lock()
		if n := h.control.node; !n.GetSupportsFunctions() || !n.GetSupportsTasks() {
			t.Errorf("registered as %v", n)
		}
		h.control.mu.Unlock()
		if err := h.service.Ready(); err != nil {
			t.Error(err)
		}
		h.close()
	})
}

// It does not wait for ever: its earlier Runs are waiting for it.
func TestRegistersUnable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		h.runtime.down = true
		h.start()
		if took := time.Since(h.began); took > 4*time.Second {
			t.Errorf("registered after %v", took)
		}
		synctest.Wait()
		if err := h.service.Ready(); err == nil || !strings.Contains(err.Error(), "supports nothing") {
			t.Errorf("ready without a Runtime Server: %v", err)
		}
		h.runtime.set(func(f *runtimeFake) { f.down = false })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := h.service.Ready(); err != nil {
			t.Error(err)
		}
		h.close()
	})
}
