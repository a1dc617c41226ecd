// Command hearth-runtimed runs a runtimed.
package main

import (
	"github.com/hearth-run/hearth/internal/kit/daemon"
	"github.com/hearth-run/hearth/services/runtimed"
)

func main() { daemon.Main[runtimed.Process]() }
