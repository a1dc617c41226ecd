package controlplane_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// packed is no tar inside, but begins as a gzip does.
func packed(size int) []byte {
	return append([]byte{0x1f, 0x8b}, bytes.Repeat([]byte("x"), size-2)...)
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func (h *house) upload(data []byte, want string, piece int) (*hearthv1.UploadArchiveResponse, error) {
	h.t.Helper()
	stream, err := h.runs.UploadArchive(h.ctx)
	if err != nil {
		return nil, err
	}
	for first := true; len(data) > 0 || first; first = false {
		n := min(piece, len(data))
		req := &hearthv1.UploadArchiveRequest{Data: bytes.Clone(data[:n])}
		if first {
			req.Sha256 = want
		}
		if err := stream.Send(req); err != nil {
			break // the answer says why
		}
		data = data[n:]
	}
	return stream.CloseAndReceive()
}

func (h *house) fetch(sum string) ([]byte, error) {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	stream, err := h.nodes.FetchArchive(ctx, &hearthv1.FetchArchiveRequest{Sha256: sum})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var out []byte
	for {
		e, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, e.GetData()...)
	}
}

func archived(sum string) *hearthv1.RunSpec {
	spec := function()
	spec.Source = &hearthv1.Source{Kind: &hearthv1.Source_Archive{Archive: &hearthv1.ArchiveSource{Sha256: sum}}}
	return spec
}

func TestArchives(t *testing.T) {
	twice(t, func(t *testing.T, h *house) {
		_, err := h.runs.CreateRun(h.ctx, &hearthv1.CreateRunRequest{Name: "early", Spec: archived(sum(nil))})
		refused(t, "create before the upload", err, connect.CodeFailedPrecondition, "ARCHIVE_NOT_FOUND")
		_, err = h.fetch(sum(nil))
		refused(t, "fetch", err, connect.CodeNotFound, "ARCHIVE_NOT_FOUND")

		data := packed(3<<20 + 17)
		for _, want := range []string{"", sum(data)} {
			res, err := h.upload(data, want, 1<<20)
			if err != nil || res.GetSha256() != sum(data) || res.GetSizeBytes() != int64(len(data)) {
				t.Fatalf("upload: %v %v", res, err)
			}
		}
		if got, err := h.fetch(sum(data)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("fetched %d bytes, %v", len(got), err)
		}
		h.create("f", archived(sum(data)))
		n := h.node("n1")
		defer n.end()
		if a := n.serve(); a.GetSpec().GetSource().GetArchive().GetSha256() != sum(data) {
			t.Errorf("assignment %v", a)
		}
	})
}

func TestArchivesRefused(t *testing.T) {
	for _, transport := range []string{"inprocess", "http"} {
		cfg := settings(t)
		h := open(t, cfg, transport)
		for what, tc := range map[string]struct {
			data         []byte
			want, reason string
		}{
			"empty":     {nil, "", "ARCHIVE_INVALID"},
			"one byte":  {[]byte{0x1f}, "", "ARCHIVE_INVALID"},
			"no gzip":   {[]byte("PK..........."), "", "ARCHIVE_INVALID"},
			"other sum": {packed(100), sum(nil), "ARCHIVE_INVALID"},
		} {
			_, err := h.upload(tc.data, tc.want, 1<<20)
			refused(t, transport+" "+what, err, connect.CodeInvalidArgument, tc.reason)
		}
		h.close()
		left, err := os.ReadDir(filepath.Join(cfg.Data, "archives"))
		if err != nil || len(left) != 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}
