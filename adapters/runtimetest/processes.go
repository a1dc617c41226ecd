package runtimetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// scan looks through /proc for processes with token as one of their arguments.
// Processes of nested pid namespaces are in it too.
func scan(token string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		args := bytes.Split(line, []byte{0})
		if slices.ContainsFunc(args, func(arg []byte) bool { return string(arg) == token }) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", file, err)
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
