package dial

import (
	"context"
	"io"
	"net/http"
)

// cancelling makes the end of a call's context reach a two-way stream at once. By
// itself net/http notices it only between two reads of the request's body, so that
// after the response's headers a stream whose sender is silent would go on: the
// server would not hear of the cancel, nor a pending Receive return.
type cancelling struct{ *http.Transport }

func (c cancelling) RoundTrip(req *http.Request) (*http.Response, error) {
	pipe, ok := req.Body.(*io.PipeReader)
	if !ok {
		return c.Transport.RoundTrip(req)
	}
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { pipe.CloseWithError(context.Cause(ctx)) })
	req = req.WithContext(ctx) // a copy: a RoundTripper leaves its request as it was
	req.Body = &streamBody{pipe, stop}
	return c.Transport.RoundTrip(req)
}

// streamBody ends the watch over the context together with the body.
type streamBody struct {
	*io.PipeReader
	stop func() bool
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.PipeReader.Read(p)
	if err != nil {
		b.stop()
	}
	return n, err
}

func (b *streamBody) Close() error {
	b.stop()
	return b.PipeReader.Close()
}
