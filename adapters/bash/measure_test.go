package bash_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// sizes is what must not grow.
type sizes struct {
	descriptors, goroutines, processes int
	heapKiB                            uint64
	threads                            int
}

func (s sizes) String() string {
	return fmt.Sprintf("fds %d goroutines %d children %d threads %d heap %d KiB", s.descriptors, s.goroutines, s.processes, s.threads, s.heapKiB)
}

func measure(t testing.TB) sizes {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	children := 0
	for _, task := range tasks {
		data, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		children += len(strings.Fields(string(data)))
	}
	return sizes{len(fds), runtime.NumGoroutine(), children, m.HeapAlloc >> 10, len(tasks)}
}

// BenchmarkSoak prints the series; every tenth call leaves a process running: go test ./bash -run - -bench Soak -benchtime
// 100000x -timeout 30m.
func BenchmarkSoak(b *testing.B) {
	f := open(b).register(`handle() { [[ $1 != *0 ]] || sleep 1000 & echo "$1"; }`)
	step := max(b.N/20, 1)
	for done := 0; done < b.N; done += step {
		soak(b, f, min(step, b.N-done))
		fmt.Printf("%7d calls: %v\n", done+step, measure(b))
	}
}
