// Package pyrunner owns the Python side of both planes: an embedded Python package
// and the Go counterpart of its protocol, held together by golden vectors.
package pyrunner
