package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
)

// Bounds of an archive, which the control plane and the nodes hold again: packed,
// unpacked and files.
const (
	maxArchiveBytes  = 64 << 20
	maxUnpackedBytes = 512 << 20
	maxArchiveFiles  = 10_000
	uploadPiece      = 256 << 10
)

// uploadError is what the control plane said about an archive.
type uploadError struct{ error }

func (e uploadError) Unwrap() error { return e.error }

// uploadFile uploads a tar.gz as it is.
func uploadFile(ctx context.Context, runs hearthv1connect.RunServiceClient, name string) (*hearthv1.Source, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, usagef("--source: %w", err)
	}
	defer file.Close()
	return upload(ctx, runs, file)
}

// uploadFolder packs a file, or all beneath a folder, and uploads it.
func uploadFolder(ctx context.Context, runs hearthv1connect.RunServiceClient, fsys fs.FS, root string) (*hearthv1.Source, error) {
	file, err := os.CreateTemp("", "hearth-source-")
	if err != nil {
		return nil, err
	}
	defer func() {
		// What is only a copy may stay behind where it cannot be removed.
		_ = errors.Join(file.Close(), os.Remove(file.Name()))
	}()
	if err := pack(file, fsys, root); err != nil {
		return nil, err
	}
	return upload(ctx, runs, file)
}

// pack writes a tar.gz that is the same for the same files, whenever it is made.
func pack(out io.Writer, fsys fs.FS, root string) error {
	packed := gzip.NewWriter(out)
	p := &packer{fsys: fsys, tar: tar.NewWriter(packed)}
	if err := pieces(fsys, root, p.add); err != nil {
		return err
	}
	return errors.Join(p.tar.Close(), packed.Close())
}

type packer struct {
	fsys  fs.FS
	tar   *tar.Writer
	files int
	bytes int64
}

func (p *packer) add(name, as string) error {
	file, err := p.fsys.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if p.bytes += info.Size(); p.bytes > maxUnpackedBytes {
		return fmt.Errorf("more than %d bytes (512 MiB) in all, reached at %s; leave out what the function does not need", maxUnpackedBytes, name)
	}
	if p.files++; p.files > maxArchiveFiles {
		return fmt.Errorf("more than %d files; leave out what the function does not need", maxArchiveFiles)
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: as, Mode: mode, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(p.tar, file)
	return err
}

// upload sends a file from its beginning, in pieces, under the sum that it has.
func upload(ctx context.Context, runs hearthv1connect.RunServiceClient, file *os.File) (*hearthv1.Source, error) {
	sum, err := sumOf(file)
	if err != nil {
		return nil, err
	}
	stream, err := runs.UploadArchive(ctx)
	if err != nil {
		return nil, uploadError{fmt.Errorf("upload archive: %w", err)}
	}
	if err := sendPieces(stream, file, sum); err != nil {
		return nil, err
	}
	res, err := stream.CloseAndReceive()
	if err != nil {
		return nil, uploadError{fmt.Errorf("upload archive: %w", err)}
	}
	return &hearthv1.Source{Kind: &hearthv1.Source_Archive{Archive: &hearthv1.ArchiveSource{Sha256: res.GetSha256()}}}, nil
}

func sumOf(file *os.File) (string, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return "", err
	}
	if size > maxArchiveBytes {
		return "", fmt.Errorf("the archive has %d bytes: at most %d (64 MiB) are taken; leave out what the function does not need", size, maxArchiveBytes)
	}
	_, err = file.Seek(0, io.SeekStart)
	return hex.EncodeToString(hash.Sum(nil)), err
}

func sendPieces(stream hearthv1connect.RunServiceUploadArchiveClientStream, file io.Reader, sum string) error {
	for {
		piece := make([]byte, uploadPiece) // what was sent belongs to the stream
		n, err := io.ReadFull(file, piece)
		if n > 0 || sum != "" {
			if stream.Send(&hearthv1.UploadArchiveRequest{Sha256: sum, Data: piece[:n]}) != nil {
				return nil // the answer says why
			}
			sum = ""
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
