package bash_test

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkWarmCall calls within the process: what the driver itself costs.
func BenchmarkWarmCall(b *testing.B) {
	for _, size := range []int{100, 10 << 10, 200 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f := open(b).register(`handle() { printf '%s' "$1"; }`)
			input := strings.Repeat("x", size)
			for b.Loop() {
				f.call(input)
			}
		})
	}
}
