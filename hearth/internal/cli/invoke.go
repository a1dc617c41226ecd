package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/hearth/internal/output"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// gatewayFlags lead to a gateway.
type gatewayFlags struct {
	Gateway string `help:"Address of the gateway: HOST:PORT, a URL or unix:PATH." default:"127.0.0.1:8080" placeholder:"ADDRESS"`
}

type invokeCmd struct {
	Name         string        `arg:"" help:"Name of the Run."`
	Data         string        `short:"d" help:"Payload, at most 1 MiB: text, @FILE, or - for standard input." default:"null" placeholder:"DATA" env:"-"`
	ContentType  string        `help:"What the payload is." default:"application/json"`
	Timeout      time.Duration `help:"Time for the call, at most 15m; then the exit code is 124." default:"30s"`
	InvocationID string        `help:"Name of this call in logs and answers; one is made up." placeholder:"ID" env:"-"`
	UID          string        `name:"uid" help:"Call only if the Run has this UID." placeholder:"UID"`
	Output       output.Format `short:"o" help:"raw (the answer as it is), json or yaml (with outputs and IDs)." enum:"raw,json,yaml" default:"raw"`
	namespaceFlag
	gatewayFlags
}

func (c *invokeCmd) Run(ctx context.Context, shell *Shell) error {
	input, err := payload(c.Data, shell.In)
	if err != nil {
		return err
	}
	dialer := dial.New(nil)
	defer dialer.Close()
	client, err := dialer.Client(c.Gateway)
	if err != nil {
		return usagef("--gateway: %w", err)
	}
	// The gateway ends the call; the margin lets it say so.
	ctx, cancel := context.WithTimeout(ctx, c.Timeout+5*time.Second)
	defer cancel()
	res, err := hearthv1connect.NewInvokeServiceClient(client).Invoke(ctx, &hearthv1.InvokeRequest{
		Namespace: c.Namespace, Name: c.Name, RunUid: c.UID, InvocationId: c.InvocationID,
		Input: input, ContentType: c.ContentType, TimeoutMillis: c.Timeout.Milliseconds(),
	})
	if err != nil {
		return ofCall(ctx, "invoke "+c.Name, c.Timeout, err)
	}
	if c.Output != "raw" {
		return output.Message(shell.Out, c.Output, res)
	}
	_, err = shell.Out.Write(res.GetOutput())
	return err
}

const maxPayload = 1 << 20

// payload is what -d says.
func payload(data string, in io.Reader) ([]byte, error) {
	var read []byte
	var err error
	switch file, isFile := strings.CutPrefix(data, "@"); {
	case data == "-":
		read, err = io.ReadAll(io.LimitReader(in, maxPayload+1))
	case isFile:
		read, err = os.ReadFile(file)
	default:
		read = []byte(data)
	}
	if err != nil {
		return nil, usagef("--data: %w", err)
	}
	if len(read) > maxPayload {
		return nil, usagef("--data has more than %d bytes (1 MiB); pass a reference to larger data", maxPayload)
	}
	return read, nil
}
