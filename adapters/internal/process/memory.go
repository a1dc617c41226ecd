package process

import (
	"bytes"
	"os"
	"strconv"
)

// Memory returns how many bytes the group's processes hold. A page that several
// of them share is divided among them where the kernel says so, and counted for
// each where it does not.
func (g *Group) Memory() int64 {
	var total int64
	for _, pid := range g.pids() {
		total += memoryOf(pid)
	}
	return total
}

func (g *Group) pids() []int {
	var pids []int
	if g.dir != "" {
		for _, dir := range g.dir.tree() {
			pids = append(pids, dir.procs()...)
		}
		return pids
	}
	for _, p := range g.members() {
		pids = append(pids, p.pid)
	}
	return pids
}

func memoryOf(pid int) int64 {
	dir := "/proc/" + strconv.Itoa(pid)
	if data, err := os.ReadFile(dir + "/smaps_rollup"); err == nil {
		for line := range bytes.Lines(data) {
			if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "Pss:" {
				kib, _ := strconv.ParseInt(string(f[1]), 10, 64)
				return kib << 10
			}
		}
	}
	data, err := os.ReadFile(dir + "/statm")
	if err != nil {
		return 0
	}
	if f := bytes.Fields(data); len(f) > 1 {
		pages, _ := strconv.ParseInt(string(f[1]), 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}
