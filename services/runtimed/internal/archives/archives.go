// Package archives owns how uploaded archives come from the control plane to a
// node.
package archives

import (
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/runtimed/internal/source"
)

// Shelf is the archives of a control plane.
type Shelf struct {
	control hearthv1connect.NodeServiceClient
}

// New returns the shelf behind a control plane.
func New(control hearthv1connect.NodeServiceClient) Shelf { return Shelf{control} }

// Open begins to fetch an archive. Reads end with ctx; Close ends them too.
// Errors, also of reads: source.ErrInvalid (it was never uploaded, or is gone),
// source.ErrUnavailable.
func (s Shelf) Open(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	stream, err := s.control.FetchArchive(ctx, &hearthv1.FetchArchiveRequest{Sha256: sha256})
	if err != nil {
		return nil, told(sha256, err)
	}
	return &reader{sum: sha256, stream: stream}, nil
}

// reader is one stream read as bytes.
type reader struct {
	sum    string
	stream hearthv1connect.NodeServiceFetchArchiveClientStream
	rest   []byte
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		msg, err := r.stream.Receive()
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, told(r.sum, err)
		}
		r.rest = msg.GetData()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *reader) Close() error { return r.stream.Close() }

// told makes one of the two verdicts on a source of what the control plane said.
func told(sum string, err error) error {
	if connect.CodeOf(err) == connect.CodeNotFound {
		return fmt.Errorf("%w: no archive %s was uploaded, or it was removed because no Run named it", source.ErrInvalid, sum)
	}
	return fmt.Errorf("%w: fetch archive %s: %w", source.ErrUnavailable, sum, err)
}
