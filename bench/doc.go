// Package bench owns load and cold-start measurements, side by side with a floor
// or a peer in the same run.
package bench
