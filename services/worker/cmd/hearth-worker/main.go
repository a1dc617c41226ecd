// Command hearth-worker runs a worker.
package main

import (
	"github.com/hearth-run/hearth/internal/kit/daemon"
	"github.com/hearth-run/hearth/services/worker"
)

func main() { daemon.Main[worker.Process]() }
