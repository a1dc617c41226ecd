package runtimed_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// FetchArchive gives out what the fake has, in pieces; cut breaks off after the
// first.
func (f *controlFake) FetchArchive(_ context.Context, req *hearthv1.FetchArchiveRequest, stream hearthv1connect.NodeServiceFetchArchiveServerStream) error {
	f.mu.Lock()
	packed, cut := f.archives[req.GetSha256()], f.cut
	f.mu.Unlock()
	if packed == nil {
		return edge.New(connect.CodeNotFound, "ARCHIVE_NOT_FOUND", "no such archive", nil)
	}
	for len(packed) > 0 {
		n := min(len(packed), 1000)
		if err := stream.Send(&hearthv1.FetchArchiveResponse{Data: packed[:n]}); err != nil {
			return err
		}
		packed = packed[n:]
		if cut {
			return edge.New(connect.CodeUnavailable, "UNAVAILABLE", "cut", nil)
		}
	}
	return nil
}

// pack returns an archive of one module that does not compress well, and its sum.
func pack(t *testing.T) (packed []byte, sum string) {
	t.Helper()
	code := []byte("# ")
	for range 20_000 {
		code = append(code, byte('a'+rand.N(26)))
	}
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	err := w.WriteHeader(&tar.Header{Name: "pkg/app.py", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(code))})
	_, werr := w.Write(code)
	if err := errors.Join(err, werr, w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(out.Bytes())
	return out.Bytes(), hex.EncodeToString(digest[:])
}

func archived(sum string) *hearthv1.RunSpec {
	spec := function()
	spec.Source = &hearthv1.Source{Kind: &hearthv1.Source_Archive{Archive: &hearthv1.ArchiveSource{Sha256: sum}}}
	return spec
}

// A Run of an uploaded archive: it is fetched, checked and unpacked.
func TestArchiveSource(t *testing.T) {
	packed, sum := pack(t)
	story(t, func(t *testing.T, h *house) {
		h.control.archives = map[string][]byte{sum: packed}
		h.control.assign("run-1", 1, archived(sum), 0)
		h.hear("run-1#1 ready")
		if info, err := os.Stat(filepath.Join(h.cfg.Workspace, "run-1", "pkg", "app.py")); err != nil || info.Size() != 20_002 {
			t.Errorf("%v %v", info, err)
		}
		h.control.assign("run-2", 1, archived(strings.Repeat("0", 64)), 0)
		h.hear("run-2#1 failed SOURCE_INVALID")
		h.control.edit(func() { h.control.cut = true })
		h.control.assign("run-3", 1, archived(sum), 0)
		h.hear("run-3#1 failed SOURCE_UNAVAILABLE")
		h.close()
	})
}
