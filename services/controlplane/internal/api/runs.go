package api

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"time"

	"github.com/oklog/ulid/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/controlplane/internal/admission"
	"github.com/hearth-run/hearth/services/controlplane/internal/archive"
	"github.com/hearth-run/hearth/services/controlplane/internal/ledger"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"

	"google.golang.org/protobuf/proto"
)

// runs is RunService.
type runs struct{ *Server }

var _ hearthv1connect.RunServiceHandler = (*runs)(nil)

func namespace(given string) string {
	if given == "" {
		return "default"
	}
	return given
}

// CreateRun answers once the Run is durable.
func (s *runs) CreateRun(ctx context.Context, req *hearthv1.CreateRunRequest) (*hearthv1.CreateRunResponse, error) {
	r, err := s.create(ctx, req)
	if err != nil {
		return answer[hearthv1.CreateRunResponse](nil, err, "")
	}
	return &hearthv1.CreateRunResponse{Run: r.Proto()}, nil
}

func (s *runs) create(ctx context.Context, req *hearthv1.CreateRunRequest) (*record.Run, error) {
	book, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	if err := admission.Spec(req.GetSpec()); err != nil {
		return nil, err
	}
	if source := req.GetSpec().GetSource().GetArchive(); source != nil {
		release, err := s.shelf.Hold(source.GetSha256())
		if errors.Is(err, archive.ErrNotFound) {
			err = errArchiveMissing
		}
		if err != nil {
			return nil, err
		}
		defer release()
	}
	uid, err := ulid.New(ulid.Timestamp(time.Now()), rand.Reader)
	if err != nil {
		return nil, err
	}
	draft := record.Run{
		UID: uid.String(), Namespace: namespace(req.GetNamespace()), Name: req.GetName(), Labels: maps.Clone(req.GetLabels()),
		Spec: record.Light(req.GetSpec()), Policy: record.PolicyOf(req.GetSpec()),
	}
	return book.Create(ctx, draft, req.GetSpec().GetSource(), proto.Size(req))
}

// GetRun answers with all that is known of a Run, contents and streams included.
func (s *runs) GetRun(ctx context.Context, req *hearthv1.GetRunRequest) (*hearthv1.GetRunResponse, error) {
	run, err := s.get(ctx, req)
	return answer(&hearthv1.GetRunResponse{Run: run}, err, req.GetUid())
}

func (s *runs) get(ctx context.Context, req *hearthv1.GetRunRequest) (*hearthv1.Run, error) {
	book, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	r, err := book.Named(namespace(req.GetNamespace()), req.GetName(), req.GetUid())
	if err != nil {
		return nil, err
	}
	out := r.Proto()
	if err := fill(book, r, out.GetSpec()); err != nil {
		return nil, err
	}
	if r.State.ExitCode != nil {
		streams, err := book.Streams(r.UID)
		if err != nil {
			return nil, err
		}
		out.Status.Stdout, out.Status.Stderr = streams.Stdout, streams.Stderr
	}
	return out, nil
}

// fill gives a spec the contents of its source. Errors: ErrRunNotFound where the
// Run was removed meanwhile.
func fill(book *ledger.Ledger, r *record.Run, spec *hearthv1.RunSpec) error {
	if spec.GetSource().GetInline() == nil {
		return nil
	}
	source, err := book.Source(r.UID)
	if err != nil {
		return err
	}
	if source == nil {
		return ledger.ErrRunNotFound
	}
	spec.Source = source
	return nil
}

// CancelRun asks for the end.
func (s *runs) CancelRun(ctx context.Context, req *hearthv1.CancelRunRequest) (*hearthv1.CancelRunResponse, error) {
	r, err := s.end(ctx, req.GetNamespace(), req.GetName(), req.GetUid(), lifecycle.Cancel)
	if err != nil {
		return answer[hearthv1.CancelRunResponse](nil, err, req.GetUid())
	}
	return &hearthv1.CancelRunResponse{Run: r.Proto()}, nil
}

// DeleteRun asks for the end and the removal.
func (s *runs) DeleteRun(ctx context.Context, req *hearthv1.DeleteRunRequest) (*hearthv1.DeleteRunResponse, error) {
	r, err := s.end(ctx, req.GetNamespace(), req.GetName(), req.GetUid(), lifecycle.Delete)
	if err != nil {
		return answer[hearthv1.DeleteRunResponse](nil, err, req.GetUid())
	}
	return &hearthv1.DeleteRunResponse{Run: r.Proto()}, nil
}

func (s *runs) end(ctx context.Context, ns, name, uid string, kind lifecycle.Kind) (*record.Run, error) {
	book, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	return book.End(ctx, namespace(ns), name, uid, kind)
}
