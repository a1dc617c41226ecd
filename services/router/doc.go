// Package router owns the placement of executions on workers, and their sessions.
package router
