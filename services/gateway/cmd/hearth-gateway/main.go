// Command hearth-gateway runs a gateway.
package main

import (
	"github.com/hearth-run/hearth/internal/kit/daemon"
	"github.com/hearth-run/hearth/services/gateway"
)

func main() { daemon.Main[gateway.Process]() }
