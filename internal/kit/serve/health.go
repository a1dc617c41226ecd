package serve

import (
	"context"
	"slices"

	connectv1 "connectrpc.com/connect"
	"connectrpc.com/grpchealth"
)

// health answers grpc.health.v1 for the process ("") and each service by name.
type health struct {
	ready    func() error
	services []string
}

func (h *health) Check(_ context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if req.Service != "" && !slices.Contains(h.services, req.Service) {
		return nil, connectv1.NewError(connectv1.CodeNotFound, nil)
	}
	if h.ready() != nil {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
