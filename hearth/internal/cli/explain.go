package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

// notEstablished is what net/http says, in an error that it keeps to itself, of a peer
// that accepted a connection and ended before a request went over it.
const notEstablished = "http2: client conn could not be established"

// explain is an error as its reader needs it: the text that a service wrote,
// its reason in brackets, and what the function left behind.
func explain(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && op.Addr != nil {
		return fmt.Sprintf("cannot reach %s (%v); start Hearth with `hearth up`, or name another address with --control-plane, --gateway or --router", op.Addr, op.Err)
	}
	if strings.Contains(err.Error(), notEstablished) {
		return fmt.Sprintf("cannot reach Hearth (%v); start it with `hearth up`, or name another address: nothing of the call was sent", err)
	}
	if lost(err) {
		return fmt.Sprintf("%v: the connection was lost in the middle of the call; whether it was carried out is not known [CONNECTION_LOST]", err)
	}
	var peer *connect.Error
	if !errors.As(err, &peer) {
		return err.Error()
	}
	text := strings.ReplaceAll(err.Error(), peer.Error(), peer.Message())
	reason := edge.Reason(err)
	if reason == "" && peer.Code() == connect.CodeUnimplemented {
		return text + ": something else answers there; name the right address with --control-plane, --gateway or --router"
	}
	if reason != "" {
		text += " [" + reason + "]"
	}
	if debug := edge.DebugText(err); debug != "" {
		text += "\n" + strings.TrimRight(debug, "\n")
	}
	return text
}

// lost says that a call was cut off: it broke on its way, and no peer said a word
// about it.
func lost(err error) bool {
	if remote(err) {
		return false
	}
	var peer *connect.Error
	errors.As(err, &peer)
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		peer != nil && (peer.Code() == connect.CodeInternal || peer.Code() == connect.CodeCanceled)
}

// remote says that a peer said this itself.
func remote(err error) bool {
	var peer *connect.Error
	return errors.As(err, &peer) && peer.IsRemote()
}

// ofCall is what a call with --timeout failed with; ctx is the call's. A deadline is
// errTimeout too, for the exit code.
func ofCall(ctx context.Context, what string, timeout time.Duration, err error) error {
	switch code := connect.CodeOf(err); {
	case code == connect.CodeDeadlineExceeded && remote(err):
		return fmt.Errorf("%s: %w (%w; --timeout was %v)", what, err, errTimeout, timeout)
	case code == connect.CodeDeadlineExceeded:
		return fmt.Errorf("%s: %w after %v; --timeout gives more", what, errTimeout, timeout)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: interrupted; it was told to end", what)
	}
	return fmt.Errorf("%s: %w", what, err)
}
