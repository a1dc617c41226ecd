package api

import (
	"context"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/controlplane/internal/admission"
	"github.com/hearth-run/hearth/services/controlplane/internal/ledger"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/store"
)

// ReportAssignment takes a node's word on one of its assignments.
func (s *nodeService) ReportAssignment(ctx context.Context, req *hearthv1.ReportAssignmentRequest) (*hearthv1.ReportAssignmentResponse, error) {
	return answer(&hearthv1.ReportAssignmentResponse{}, s.report(ctx, req), req.GetRunUid())
}

func (s *nodeService) report(ctx context.Context, req *hearthv1.ReportAssignmentRequest) error {
	book, err := s.book(ctx)
	if err != nil {
		return err
	}
	p, err := reportOf(req)
	if err != nil {
		return err
	}
	return book.Report(ctx, p)
}

func reportOf(req *hearthv1.ReportAssignmentRequest) (ledger.Report, error) {
	p := ledger.Report{RunUID: req.GetRunUid(), Event: lifecycle.Event{Attempt: int(req.GetAttempt()), Node: req.GetNodeUid()}}
	e := &p.Event
	switch said := req.GetReport().(type) {
	case *hearthv1.ReportAssignmentRequest_Started:
		e.Kind = lifecycle.Start
	case *hearthv1.ReportAssignmentRequest_Ready:
		e.Kind, e.Identity = lifecycle.Report, said.Ready.GetSourceIdentity()
	case *hearthv1.ReportAssignmentRequest_Failed:
		e.Kind, e.Reason, e.Message = lifecycle.Fail, lifecycle.Reason(said.Failed.GetReason()), said.Failed.GetMessage()
		if !e.Reason.EndsAttempt() {
			return p, edge.Publicf(admission.ErrInvalid, "failed.reason %v does not end an attempt; name the cause of the failure", said.Failed.GetReason())
		}
	case *hearthv1.ReportAssignmentRequest_Released:
		e.Kind = lifecycle.Released
	case *hearthv1.ReportAssignmentRequest_Finished:
		f := said.Finished
		e.Kind, e.ExitCode, e.Message, e.Identity = lifecycle.Finish, int(f.GetExitCode()), f.GetErrorMessage(), f.GetSourceIdentity()
		p.Outputs, p.Streams = f.GetOutputs(), store.Streams{Stdout: f.GetStdout(), Stderr: f.GetStderr()}
		return p, admission.Outputs(f.GetOutputs())
	}
	return p, nil
}
