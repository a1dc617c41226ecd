// Package worker owns containers: it creates them in sandboxes, runs executions in
// them, and destroys them.
package worker
