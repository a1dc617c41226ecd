// Command hearth-controlplane runs a control plane.
package main

import (
	"github.com/hearth-run/hearth/internal/kit/daemon"
	"github.com/hearth-run/hearth/services/controlplane"
)

func main() { daemon.Main[controlplane.Process]() }
