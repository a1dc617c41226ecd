package main

import (
	"fmt"
	"strings"
)

// chart is the series as a Mermaid chart, which a Markdown page shows as a plot:
// resident memory of all processes in MiB, descriptors, threads and processes.
func chart(f flags, looks []held) string {
	lines := []struct {
		name  string
		value func(held) int64
	}{
		{"memory of all processes, MiB", func(h held) int64 { return h.family >> 20 }},
		{"descriptors", func(h held) int64 { return int64(h.descriptors) }},
		{"threads", func(h held) int64 { return int64(h.threads) }},
		{"processes", func(h held) int64 { return int64(h.processes) }},
	}
	var text strings.Builder
	var names []string
	for _, line := range lines {
		names = append(names, line.name)
	}
	fmt.Fprintf(&text, "\n```mermaid\nxychart-beta\n  title \"%s: %s\"\n", f.Plane, strings.Join(names, "; "))
	fmt.Fprintf(&text, "  x-axis \"calls\" %d --> %d\n  y-axis 0 --> %d\n", min(f.Every, f.Calls), f.Calls, ceiling(looks))
	for _, line := range lines {
		values := make([]string, len(looks))
		for i, h := range looks {
			values[i] = fmt.Sprint(line.value(h))
		}
		fmt.Fprintf(&text, "  line [%s]\n", strings.Join(values, ", "))
	}
	return text.String() + "```\n"
}

// ceiling is above every value.
func ceiling(looks []held) int64 {
	top := int64(10)
	for _, h := range looks {
		top = max(top, h.family>>20, int64(h.descriptors), int64(h.threads), int64(h.processes))
	}
	return (top/10 + 2) * 10
}
