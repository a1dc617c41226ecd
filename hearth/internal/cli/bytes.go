package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// bytesFlag is a number of bytes, written with a unit.
type bytesFlag int64

var units = []struct {
	suffix string
	bytes  int64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"", 1},
}

// UnmarshalText reads 512Mi, 2G or 1048576.
func (b *bytesFlag) UnmarshalText(text []byte) error {
	for _, unit := range units {
		digits, ok := strings.CutSuffix(string(text), unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > (1<<62)/unit.bytes {
			return fmt.Errorf("%q: want a size like 512Mi, 2G or 1048576", text)
		}
		*b = bytesFlag(n * unit.bytes)
		return nil
	}
	return nil
}
