// Package controlplane owns Runs, nodes and their leases: what shall run, where, and
// how it fared.
package controlplane
