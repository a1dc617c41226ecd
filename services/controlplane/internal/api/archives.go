package api

import (
	"context"
	"errors"
	"io"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/controlplane/internal/archive"
)

// piece is how much of an archive one message carries, in bytes.
const piece = 256 << 10

// UploadArchive takes an archive in pieces.
func (s *runs) UploadArchive(ctx context.Context, stream hearthv1connect.RunServiceUploadArchiveServerStream) (*hearthv1.UploadArchiveResponse, error) {
	res, err := s.upload(ctx, stream.Receive)
	return answer(res, err, "")
}

func (s *runs) upload(ctx context.Context, receive func() (*hearthv1.UploadArchiveRequest, error)) (res *hearthv1.UploadArchiveResponse, err error) {
	if _, err := s.book(ctx); err != nil {
		return nil, err
	}
	up, err := s.shelf.Begin()
	if err != nil {
		return nil, err
	}
	defer func() {
		// A committed file has its place already: there is nothing left to remove.
		if ended := up.End(); err == nil {
			err = ended
		}
	}()
	want, err := copyIn(up, receive)
	if err != nil {
		return nil, err
	}
	sum, size, err := up.Commit(want)
	if err != nil {
		return nil, err
	}
	return &hearthv1.UploadArchiveResponse{Sha256: sum, SizeBytes: size}, nil
}

// copyIn takes all pieces and returns the sum that the first one announced.
func copyIn(up *archive.Upload, receive func() (*hearthv1.UploadArchiveRequest, error)) (want string, err error) {
	for first := true; ; first = false {
		req, err := receive()
		if errors.Is(err, io.EOF) {
			return want, nil
		}
		if err != nil {
			return "", err
		}
		if first {
			want = req.GetSha256()
		}
		if _, err := up.Write(req.GetData()); err != nil {
			return "", err
		}
	}
}

// FetchArchive gives an archive out in pieces.
func (s *nodeService) FetchArchive(ctx context.Context, req *hearthv1.FetchArchiveRequest, stream hearthv1connect.NodeServiceFetchArchiveServerStream) error {
	return table.Error(s.fetch(ctx, req.GetSha256(), stream.Send), nil)
}

func (s *nodeService) fetch(ctx context.Context, sum string, send func(*hearthv1.FetchArchiveResponse) error) (err error) {
	if _, err := s.book(ctx); err != nil {
		return err
	}
	in, err := s.shelf.Read(sum)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for {
		// A message is the stream's once it was sent: each has a buffer of its own.
		buffer := make([]byte, piece)
		n, err := io.ReadFull(in, buffer)
		if n > 0 {
			if err := send(&hearthv1.FetchArchiveResponse{Data: buffer[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
