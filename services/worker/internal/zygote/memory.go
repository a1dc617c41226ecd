package zygote

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memoryOf is what a process has in memory, alone and with others, in bytes; 0 where the
// kernel does not tell.
func memoryOf(pid int) (private, shared int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch {
		case err != nil:
		case strings.HasPrefix(name, "Private_"):
			private += kib << 10
		case strings.HasPrefix(name, "Shared_"):
			shared += kib << 10
		}
	}
	return private, shared
}
