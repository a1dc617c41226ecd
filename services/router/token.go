package router

import (
	"context"
	"crypto/subtle"
	"strings"

	"connectrpc.com/connect/v2"
)

// checkToken errors: errToken, where a token is wanted and another or none shown.
func checkToken(ctx context.Context, want string) error {
	if want == "" {
		return nil
	}
	info, ok := connect.CallInfoForServerContext(ctx)
	if !ok {
		return errToken
	}
	shown := info.RequestHeader().Get("Authorization")
	scheme, token, _ := strings.Cut(shown, " ")
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare([]byte(strings.TrimSpace(token)), []byte(want)) != 1 {
		return errToken
	}
	return nil
}
