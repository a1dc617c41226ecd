// Package examples owns the example functions, and carries their files for
// `hearth demo`, which works without a checkout.
package examples

import "embed"

// Files has a folder for each language, with a folder for each function.
//
//go:embed python bash exec
var Files embed.FS
