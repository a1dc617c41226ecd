package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"

	"google.golang.org/protobuf/proto"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

const (
	defaultPage = 100
	// pageBytes ends a page early; the specs of 1 000 Runs could be 128 MiB.
	pageBytes = 2 << 20
)

// ListRuns answers with one page.
func (s *runs) ListRuns(ctx context.Context, req *hearthv1.ListRunsRequest) (*hearthv1.ListRunsResponse, error) {
	res, err := s.list(ctx, req)
	return answer(res, err, "")
}

func (s *runs) list(ctx context.Context, req *hearthv1.ListRunsRequest) (*hearthv1.ListRunsResponse, error) {
	book, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	after, err := readToken(req.GetPageToken(), req.GetFilter())
	if err != nil {
		return nil, err
	}
	limit := int(req.GetPageSize())
	if limit == 0 {
		limit = defaultPage
	}
	found, version := book.Runs(after, limit+1, matcher(req.GetFilter()))
	res := &hearthv1.ListRunsResponse{ResourceVersion: version}
	size := 0
	for i, r := range found {
		if i == limit || size > pageBytes {
			res.NextPageToken = writeToken(found[i-1].Key(), req.GetFilter())
			break
		}
		run := r.Proto()
		size += proto.Size(run)
		res.Runs = append(res.Runs, run)
	}
	return res, nil
}

// token is a page token before its encoding: the key of the last Run that was
// shown, so that Runs that come and go move no other, and what the filter was.
type token struct {
	After  string `json:"a"`
	Filter []byte `json:"f"`
}

func writeToken(after string, f *hearthv1.RunFilter) string {
	text, err := json.Marshal(token{after, fingerprint(f)})
	if err != nil { // a struct of a string and bytes always marshals
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func readToken(given string, f *hearthv1.RunFilter) (after string, err error) {
	if given == "" {
		return "", nil
	}
	var t token
	text, err := base64.RawURLEncoding.DecodeString(given)
	if err != nil || json.Unmarshal(text, &t) != nil || t.After == "" || string(t.Filter) != string(fingerprint(f)) {
		return "", errPageToken
	}
	return t.After, nil
}

func fingerprint(f *hearthv1.RunFilter) []byte {
	if f == nil {
		f = &hearthv1.RunFilter{}
	}
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(f)
	if err != nil { // only invalid UTF-8 fails, which the decoder has refused
		return nil
	}
	sum := sha256.Sum256(wire)
	return sum[:8]
}

// matcher says which Runs a filter lets through.
func matcher(f *hearthv1.RunFilter) func(*record.Run) bool {
	return func(r *record.Run) bool {
		switch {
		case f == nil:
			return true
		case f.GetNamespace() != "" && r.Namespace != f.GetNamespace(),
			f.GetRuntime() != "" && r.Spec.GetRuntime() != f.GetRuntime(),
			f.GetNodeUid() != "" && r.State.Node != f.GetNodeUid(),
			len(f.GetPhases()) > 0 && !slices.Contains(f.GetPhases(), hearthv1.RunPhase(r.State.Phase())):
			return false
		}
		for key, value := range f.GetLabels() {
			if got, ok := r.Labels[key]; !ok || got != value {
				return false
			}
		}
		return true
	}
}
