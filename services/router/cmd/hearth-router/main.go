// Command hearth-router runs a router.
package main

import (
	"github.com/hearth-run/hearth/internal/kit/daemon"
	"github.com/hearth-run/hearth/services/router"
)

func main() { daemon.Main[router.Process]() }
