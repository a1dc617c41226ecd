package runtimeserver

import "github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"

// executions serves executor.v1.Runtime.
type executions struct {
	*Server
	executorv1connect.UnimplementedRuntimeHandler
}

type execution struct{}
