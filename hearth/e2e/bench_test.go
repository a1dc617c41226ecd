package e2e

import "testing"

// BenchmarkInvoke is one call over HTTP of a function in each language; with
// -cpuprofile it shows where the time of a whole house goes.
func BenchmarkInvoke(b *testing.B) {
	h := up(b)
	for _, f := range [][3]string{{"python", "app.hello", "hello"}, {"bash", "hello.greet", "hello"}} {
		b.Run(f[0], func(b *testing.B) {
			name := "hello-" + f[0]
			h.run(b, 0, "run", "create", name, "--runtime", f[0], "--handler", f[1], "--source", examples(f[0], f[2]), "--wait")
			b.ReportAllocs()
			for b.Loop() {
				if got := h.call(b, name, `{"name":"Ada"}`); got.status != 200 {
					b.Fatal(got)
				}
			}
			h.run(b, 0, "run", "delete", name, "--wait")
		})
	}
}
