package source

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/folder"
)

// MaxInline bounds inline files in all, in bytes.
const MaxInline = 1 << 20

// inline writes the files and returns an identity that depends on their paths,
// contents and modes, not on their order.
func inline(src *hearthv1.InlineSource, out *folder.Folder) (string, error) {
	type file struct {
		Path       string
		SHA256     string
		Executable bool
	}
	files := make([]file, 0, len(src.GetFiles()))
	total := 0
	for _, f := range src.GetFiles() {
		data := content(f)
		if total += len(data); total > MaxInline {
			return "", fmt.Errorf("%w: inline files hold more than %d bytes in all: use an archive or git", ErrInvalid, MaxInline)
		}
		if err := out.File(f.GetPath(), f.GetExecutable(), bytes.NewReader(data)); err != nil {
			return "", err
		}
		sum := sha256.Sum256(data)
		files = append(files, file{f.GetPath(), hex.EncodeToString(sum[:]), f.GetExecutable()})
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.Path, b.Path) })
	list, err := json.Marshal(files)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(list)
	return "inline:" + hex.EncodeToString(sum[:]), nil
}

func content(f *hearthv1.InlineFile) []byte {
	if text, ok := f.GetData().(*hearthv1.InlineFile_Text); ok {
		return []byte(text.Text)
	}
	return f.GetContent()
}
