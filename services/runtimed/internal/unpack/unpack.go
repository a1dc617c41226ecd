// Package unpack owns how archives are turned into folders: regular files and
// folders, nothing else, within bounds that hold while it reads.
package unpack

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hearth-run/hearth/services/runtimed/internal/folder"
)

// MaxHeaders bounds the entries of any kind, those that make no file included.
const MaxHeaders = 40_000

// TarGz unpacks one gzip stream that holds a tar archive.
// Errors: folder.ErrRefused, those of the reader and the disk, ctx's cause.
func TarGz(ctx context.Context, in io.Reader, out *folder.Folder) error {
	gz, err := gzip.NewReader(in)
	if err != nil {
		return told(err, "it is no gzip stream")
	}
	gz.Multistream(false)
	defer gz.Close()
	return Tar(ctx, gz, out)
}

// Tar unpacks a tar archive. What follows its end is not read.
func Tar(ctx context.Context, in io.Reader, out *folder.Folder) error {
	files := tar.NewReader(in)
	for range MaxHeaders {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return told(err, "it is no whole tar archive")
		}
		if err := entry(h, files, out); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: more than %d entries", folder.ErrRefused, MaxHeaders)
}

func entry(h *tar.Header, content io.Reader, out *folder.Folder) error {
	name := strings.TrimPrefix(strings.TrimSuffix(h.Name, "/"), "./")
	switch h.Typeflag {
	case tar.TypeDir:
		if name == "" {
			name = "."
		}
		return out.Dir(name)
	case tar.TypeReg:
		if h.Size < 0 {
			return fmt.Errorf("%w: %q has a negative size", folder.ErrRefused, h.Name)
		}
		err := out.File(name, h.Mode&0o111 != 0, content)
		if broken(err) {
			return told(err, "it is no whole tar archive")
		}
		return err
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeSymlink, tar.TypeLink:
		return fmt.Errorf("%w: %q is a link: pack the file itself", folder.ErrRefused, h.Name)
	}
	return fmt.Errorf("%w: %q is neither a file nor a folder (type %q)", folder.ErrRefused, h.Name, h.Typeflag)
}

// told makes a refusal of an error that the archive's bytes are to blame for; an
// error of the reader behind it stays what it is.
func told(err error, text string) error {
	if broken(err) {
		return fmt.Errorf("%w: %s: %v", folder.ErrRefused, text, err)
	}
	return fmt.Errorf("read archive: %w", err)
}

func broken(err error) bool {
	for _, known := range []error{gzip.ErrHeader, gzip.ErrChecksum, tar.ErrHeader, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, known) {
			return true
		}
	}
	return err != nil && strings.HasPrefix(err.Error(), "flate: corrupt")
}
