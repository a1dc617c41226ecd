package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/folder"
	"github.com/hearth-run/hearth/services/runtimed/internal/unpack"
)

// MaxArchive bounds a packed archive, in bytes.
const MaxArchive = 64 << 20

// archive unpacks while it fetches; the folder gets its name only if the sum of
// what came is the one that was asked for.
func (p *Preparer) archive(ctx context.Context, src *hearthv1.ArchiveSource, out *folder.Folder) (_ string, err error) {
	if p.cfg.Archives == nil {
		return "", fmt.Errorf("%w: this node has no way to fetch archives: use inline files or git", ErrInvalid)
	}
	in, err := p.cfg.Archives.Open(ctx, src.GetSha256())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	sum := sha256.New()
	bounded := &io.LimitedReader{R: in, N: MaxArchive + 1}
	packed := io.TeeReader(bounded, sum)
	if err := unpack.TarGz(ctx, packed, out); err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return "", err
	}
	if bounded.N == 0 {
		return "", fmt.Errorf("%w: the archive has more than %d bytes", ErrInvalid, MaxArchive)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != src.GetSha256() {
		return "", fmt.Errorf("%w: the archive that came has the SHA-256 %s, not %s", ErrUnavailable, got, src.GetSha256())
	}
	return "archive:" + src.GetSha256(), nil
}
