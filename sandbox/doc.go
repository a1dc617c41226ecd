// Package sandbox owns the walls around a process: one driver interface, one suite
// that every driver passes.
package sandbox
