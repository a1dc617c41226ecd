//go:build linux

package sandboxtest

import (
	"strings"
	"testing"

	"github.com/hearth-run/hearth/sandbox"
)

// missingTests: one wall is left out, and the break-out that it stops has to succeed.
// A suite that passes without a wall proves nothing about it.
func missingTests(f Factory) map[string]func(*testing.T, *suite) {
	if f.Without == nil {
		return nil
	}
	tests := map[string]func(*testing.T, *suite){
		"WithoutRoot":       without(hostFolders, "root-file-system", "proc"),
		"WithoutSeccomp":    without(forbiddenCalls, "seccomp"),
		"WithoutRlimits":    without(descriptors, "rlimits"),
		"WithoutNoNewPrivs": without(identity, "seccomp", "no-new-privileges", "landlock-scopes"),
		"WithoutBounding":   without(identity, "capabilities"),
	}
	tests["HostNetworkWithoutScopes"] = without(hostNetwork, "landlock-scopes")
	if f.OwnUser { // elsewhere each container has a user and a network namespace
		tests["WithoutScopes"] = without(abstractSockets, "landlock-scopes")
		tests["WithoutUser"] = without(identity, "user")
		tests["WithoutNetwork"] = without(network, "network-namespace")
		tests["WithoutCgroup"] = without(forkBomb, "cgroup")
	}
	return tests
}

// without runs a break-out test with the suite's verdict turned round.
func without(test func(*testing.T, *suite), walls ...string) func(*testing.T, *suite) {
	return func(t *testing.T, s *suite) {
		inverted := *s
		inverted.broken = true
		inverted.Open = func(root string) (sandbox.Driver, error) { return s.Without(root, walls...) }
		test(t, &inverted)
	}
}

// hostFolders is hostFiles for a container that may not be able to run Python.
func hostFolders(t *testing.T, s *suite) {
	held(t, s, s.open(t), shell("for d in /var /home /sys /boot; do test -e $d && echo BROKEN $d; done; echo HELD"))
}

// judge compares what a script said with what the suite expects of it.
func (s *suite) judge(t *testing.T, out string, exit sandbox.Exit) {
	t.Helper()
	if s.broken {
		if !strings.Contains(out, "BROKEN") {
			t.Errorf("a wall is missing and nothing was broken: %s\n%+v", out, exit)
		}
		return
	}
	if out != "HELD" || exit != (sandbox.Exit{}) {
		t.Errorf("%s\n%+v", out, exit)
	}
}
