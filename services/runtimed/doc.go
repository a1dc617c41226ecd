// Package runtimed owns one Runtime Server on behalf of the control plane: it prepares
// sources, registers, fences and invokes.
package runtimed
