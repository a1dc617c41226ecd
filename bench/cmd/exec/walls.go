package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/hearth-run/hearth/sandbox/process"
)

// walls prints what each wall adds to a container that starts cold.
func walls(ctx context.Context, rounds int) error {
	costs, err := process.Costs(ctx, rounds)
	if err != nil {
		return fmt.Errorf("measure the walls: %w", err)
	}
	fmt.Printf("\ncost of each wall, /usr/bin/true in a container, %d × each in turns, p10 / median; each row has the walls above it too:\n", rounds)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "up to this wall\tstart\tend")
	for _, c := range costs {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.Walls, spread(c.Start), spread(c.End))
	}
	return table.Flush()
}

// spread is the tenth percentile and the median of sorted times.
func spread(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return ""
	}
	return fmt.Sprintf("%v / %v", sorted[len(sorted)/10].Round(10*time.Microsecond), sorted[len(sorted)/2].Round(10*time.Microsecond))
}
