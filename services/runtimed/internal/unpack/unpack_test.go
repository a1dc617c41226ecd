package unpack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/services/runtimed/internal/folder"
	"github.com/hearth-run/hearth/services/runtimed/internal/unpack"
)

// pack builds an archive by hand, attacks included.
func pack(t testing.TB, headers ...tar.Header) []byte {
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for _, h := range headers {
		content := h.Linkname
		if h.Typeflag == tar.TypeReg || h.Typeflag == 0 {
			h.Linkname, h.Size = "", int64(len(content))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// file is a regular file with a content.
func file(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Linkname: content}
}

func unpackInto(t testing.TB, dir string, packed []byte, limits folder.Limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return unpack.TarGz(t.Context(), bytes.NewReader(packed), folder.New(root, limits))
}

var usual = folder.Limits{Files: 500, Bytes: 1 << 20}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	run := file("bin/run", "#!/bin/sh\n")
	run.Mode = 0o755
	packed := pack(t, tar.Header{Name: "./", Typeflag: tar.TypeDir}, tar.Header{Name: "empty/", Typeflag: tar.TypeDir},
		file("./a.py", "x = 1\n"), run, file("deep/er/b.txt", ""))
	if err := unpackInto(t, dir, packed, usual); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		info, _ := d.Info()
		rel, _ := filepath.Rel(dir, path)
		got = append(got, fmt.Sprintf("%s %v", rel, info.Mode()))
		return err
	})
	want := []string{". drwx------", "a.py -rw-r--r--", "bin drwxr-xr-x", "bin/run -rwxr-xr-x", "deep drwxr-xr-x", "deep/er drwxr-xr-x", "deep/er/b.txt -rw-r--r--", "empty drwxr-xr-x"}
	if err != nil || strings.Join(got[1:], "\n") != strings.Join(want[1:], "\n") {
		t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
	}
}

// Nothing of these may be written outside, and each is refused with a text that
// says what is wrong.
func TestAttacks(t *testing.T) {
	var many []tar.Header
	for i := range 501 {
		many = append(many, file(fmt.Sprintf("f%d", i), ""))
	}
	for name, tc := range map[string]struct {
		headers []tar.Header
		text    string
	}{
		"parent":          {[]tar.Header{file("../outside", "x")}, `".." part`},
		"hidden parent":   {[]tar.Header{file("a/../../outside", "x")}, `".." part`},
		"absolute":        {[]tar.Header{file("/tmp/outside", "x")}, "absolute"},
		"twice absolute":  {[]tar.Header{file(".//etc/outside", "x")}, "absolute"},
		"symlink":         {[]tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, "is a link"},
		"symlink, then":   {[]tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, file("l/outside", "x")}, "is a link"},
		"hard link":       {[]tar.Header{file("a", "x"), {Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}}, "is a link"},
		"device":          {[]tar.Header{{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}, "neither a file nor a folder"},
		"block device":    {[]tar.Header{{Name: "d", Typeflag: tar.TypeBlock}}, "neither a file nor a folder"},
		"fifo":            {[]tar.Header{{Name: "d", Typeflag: tar.TypeFifo}}, "neither a file nor a folder"},
		"case":            {[]tar.Header{file("App.py", "a"), file("app.py", "b")}, "upper and lower case"},
		"case of folder":  {[]tar.Header{file("Lib/a", "a"), file("lib/b", "b")}, "upper and lower case"},
		"case, not ASCII": {[]tar.Header{file("Ä", "a"), file("ä", "b")}, "upper and lower case"},
		"twice":           {[]tar.Header{file("a", "1"), file("a", "2")}, "comes twice"},
		"file as folder":  {[]tar.Header{file("a", "1"), file("a/b", "2")}, "both a file and a folder"},
		"folder as file":  {[]tar.Header{file("a/b", "1"), file("a", "2")}, "both a file and a folder"},
		"too many":        {many, "more than 500 files"},
		"bomb":            {[]tar.Header{file("zeros", strings.Repeat("\x00", 1<<20+1))}, "more than 1048576 bytes"},
		"bomb in parts":   {[]tar.Header{file("a", strings.Repeat("a", 1<<19)), file("b", strings.Repeat("b", 1<<19+1))}, "more than 1048576 bytes"},
		"control":         {[]tar.Header{file("a\nb", "x")}, "control character"},
		"backslash":       {[]tar.Header{file(`..\outside`, "x")}, "backslash"},
		"not UTF-8":       {[]tar.Header{file("a\xff", "x")}, "not UTF-8"},
		"long name":       {[]tar.Header{file(strings.Repeat("n", 256), "x")}, "more than 255 bytes"},
		"long path":       {[]tar.Header{file(strings.Repeat("nn/", 400)+"n", "x")}, "1 to 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			inner := filepath.Join(outer, "in", "side")
			if err := os.MkdirAll(inner, 0o755); err != nil {
				t.Fatal(err)
			}
			err := unpackInto(t, inner, pack(t, tc.headers...), usual)
			if !errors.Is(err, folder.ErrRefused) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%v, want %q", err, tc.text)
			}
			checkOutside(t, outer, inner)
		})
	}
}

// checkOutside finds whatever was written elsewhere, and what is no plain file.
func checkOutside(t *testing.T, outer, inner string) {
	err := filepath.WalkDir(outer, func(path string, d fs.DirEntry, err error) error {
		if !strings.HasPrefix(path, inner) && path != outer && path != filepath.Dir(inner) {
			t.Errorf("written outside: %s", path)
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			t.Errorf("written as %v: %s", d.Type(), path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBroken(t *testing.T) {
	whole := pack(t, file("a", strings.Repeat("content", 1000)))
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 0xff
	for name, packed := range map[string][]byte{
		"empty": nil, "no gzip": []byte("PK\x03\x04 this is a zip"), "cut off": whole[:len(whole)/2], "flipped": flipped,
	} {
		if err := unpackInto(t, t.TempDir(), packed, usual); !errors.Is(err, folder.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An archive that is called off ends at once.
func TestCalledOff(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if err := unpack.TarGz(ctx, bytes.NewReader(pack(t, file("a", "x"))), folder.New(root, usual)); !errors.Is(err, why) {
		t.Error(err)
	}
}

// Whatever bytes come, nothing is written outside and nothing but plain files.
func FuzzUnpack(f *testing.F) {
	f.Add(pack(f, file("a", "x"), tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}))
	f.Fuzz(func(t *testing.T, packed []byte) {
		outer := t.TempDir()
		inner := filepath.Join(outer, "in", "side")
		if err := os.MkdirAll(inner, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = unpackInto(t, inner, packed, folder.Limits{Files: 100, Bytes: 1 << 16})
		checkOutside(t, outer, inner)
	})
}
