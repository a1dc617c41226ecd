package zygote_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
)

func sched(pid string) (run int64) {
	threads, _ := os.ReadDir("/proc/" + pid + "/task")
	for _, th := range threads {
		text, _ := os.ReadFile("/proc/" + pid + "/task/" + th.Name() + "/schedstat")
		n, _ := strconv.ParseInt(strings.Fields(string(text) + " 0")[0], 10, 64)
		run += n
	}
	return run
}

func faults(pid string) int64 {
	text, _ := os.ReadFile("/proc/" + pid + "/stat")
	f := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	n, _ := strconv.ParseInt(f[7], 10, 64)
	return n
}

func TestAdhoc(t *testing.T) {
	for _, set := range sets {
		w := open(t, nil)
		z := w.grow(w.root, set.modules...)
		zp := strconv.Itoa(z.Facts().Pid)
		var child, zyg, own, flt []int64
		for i := range 60 {
			id := fmt.Sprintf("x%d", i)
			sockets, _ := box.NewSockets(w.run, id)
			o0 := sched("self")
			c, err := w.driver.Create(context.Background(), w.spec(id, sockets.Files))
			if err != nil {
				t.Fatal(err)
			}
			e := box.NewExecutor(sockets)
			z0 := sched(zp)
			if err := z.Enter(context.Background(), c, zygote.Begin{}); err != nil {
				t.Fatal(err)
			}
			z1 := sched(zp)
			sockets.Started()
			if err := e.AwaitReady(context.Background()); err != nil {
				t.Fatal(err)
			}
			o1 := sched("self")
			for _, pid := range childrenOf(t, os.Getpid()) {
				if pid != zp && pid != strconv.Itoa(w.root.Facts().Pid) {
					child = append(child, sched(pid)/1000)
					flt = append(flt, faults(pid))
				}
			}
			zyg, own = append(zyg, (z1-z0)/1000), append(own, (o1-o0)/1000)
			e.Close()
			c.Destroy()
		}
		for _, l := range [][]int64{child, zyg, own, flt} {
			slices.Sort(l)
		}
		fmt.Printf("%s: child %d µs (p10 %d), zygote %d, own %d, child faults %d\n", set.name, child[30], child[6], zyg[30], own[30], flt[30])
		w.close(z)
	}
}
