package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// Imports are done ahead on request, calls start from them and say so, and the list
// tells what is kept and how calls came to their containers.
func TestZygotes(t *testing.T) {
	h := workshop(t)
	if out, _ := h.run(t, 0, "zygote", "warm", "decimal,fractions", "-o", "name"); !strings.HasPrefix(out, "z-") {
		t.Fatalf("warm: %s", out)
	}
	if out, _ := h.run(t, 0, "zygote", "pin", "fractions", "decimal"); !strings.Contains(out, "LIVE,PINNED") || !strings.Contains(out, "decimal,fractions") {
		t.Errorf("pin: %s", out)
	}
	source := write(t, "import decimal, json\nfrom fractions import Fraction\ndef f(): return 1\n")
	_, printed := h.run(t, 0, "exec", "--explain", source+":f")
	id := listed(t, h, "decimal fractions")
	if !strings.Contains(printed, "started from "+id) || !strings.Contains(printed, "call ") || !strings.Contains(printed, "in all") {
		t.Errorf("explained: %s", printed)
	}
	if out, _ := h.run(t, 0, "zygote", "list"); !strings.Contains(out, id) || !strings.Contains(out, "z-root") || !strings.Contains(out, "calls cold 0 (0 %)") {
		t.Errorf("list: %s", out)
	}
	if out, _ := h.run(t, 0, "zygote", "unpin", "decimal,fractions"); strings.Contains(out, "PINNED") {
		t.Errorf("unpin: %s", out)
	}
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"ZYGOTE_UNFIT", []string{"warm", "not_there_at_all"}},
		{"ZYGOTE_NOT_PINNED", []string{"unpin", "decimal"}},
		{"MODULES_INVALID", []string{"pin", "os.path"}},
		{"WORKER_UNKNOWN", []string{"list", "--worker", "w-none"}},
	} {
		if _, printed := h.run(t, 1, append([]string{"zygote"}, tc.args...)...); !strings.Contains(printed, tc.want) {
			t.Errorf("%v: %s", tc.args, printed)
		}
	}
	if code := h.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, h.stderr)
	}
	if left := processes(t, h.data); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// listed is the id of the set with these modules, from the list as JSON.
func listed(t *testing.T, h *house, modules string) string {
	t.Helper()
	out, _ := h.run(t, 0, "zygote", "list", "-o", "json")
	var list struct {
		Zygotes []struct {
			ID      string `json:"zygoteId"`
			Modules []string
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, z := range list.Zygotes {
		if strings.Join(z.Modules, " ") == modules {
			return z.ID
		}
	}
	t.Fatalf("no zygote of %s: %s", modules, out)
	return ""
}
