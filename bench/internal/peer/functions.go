package peer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"

	"github.com/hearth-run/hearth/bench/internal/load"
)

// Function is an echo in one language.
type Function struct {
	Runtime, Handler, File, Code string
}

// Functions are the echoes, by runtime.
func Functions() []Function {
	return []Function{
		{"python", "app.echo", "app.py", "def echo(event):\n    return event\n"},
		{"bash", "app.echo", "app.sh", "echo() {\n    printf '%s' \"$1\"\n}\n"},
	}
}

// readyTime is how long one function may take to get ready.
const readyTime = time.Minute

// Create makes n Runs of a function and returns their names once all are ready.
func Create(ctx context.Context, dialer *dial.Dialer, control string, f Function, n int) ([]string, error) {
	client, err := dialer.Client(control)
	if err != nil {
		return nil, err
	}
	runs := hearthv1connect.NewRunServiceClient(client)
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	var names []string
	waiting := map[string]bool{}
	for i := range n {
		name := fmt.Sprintf("echo-%s-%d", f.Runtime, i)
		res, err := runs.CreateRun(ctx, &hearthv1.CreateRunRequest{Name: name, Spec: f.Spec()})
		if err != nil {
			return nil, fmt.Errorf("create %s: %w", name, err)
		}
		names = append(names, name)
		waiting[res.GetRun().GetUid()] = true
	}
	return names, awaitReady(ctx, runs, waiting)
}

// Spec is that of a Run of the function.
func (f Function) Spec() *hearthv1.RunSpec {
	return &hearthv1.RunSpec{
		Runtime: f.Runtime,
		Source: &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{Files: []*hearthv1.InlineFile{
			{Path: f.File, Data: &hearthv1.InlineFile_Text{Text: f.Code}},
		}}}},
		Mode: &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: f.Handler}},
	}
}

// awaitReady returns once every Run of waiting is ready.
func awaitReady(ctx context.Context, runs hearthv1connect.RunServiceClient, waiting map[string]bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := runs.WatchRuns(ctx, &hearthv1.WatchRunsRequest{})
	if err != nil {
		return err
	}
	defer stream.Close()
	for len(waiting) > 0 {
		event, err := stream.Receive()
		if err != nil {
			return fmt.Errorf("wait for %d Runs: %w", len(waiting), err)
		}
		run := event.GetRun()
		switch phase := run.GetStatus().GetPhase(); {
		case phase == hearthv1.RunPhase_RUN_PHASE_READY:
			delete(waiting, run.GetUid())
		case phase > hearthv1.RunPhase_RUN_PHASE_READY:
			return fmt.Errorf("wait for Run %s, which has ended: %s", run.GetName(), run.GetStatus().GetMessage())
		}
	}
	return nil
}

// Post returns a caller that posts payload to url and checks that it comes back.
func Post(client *http.Client, url string, payload []byte) load.Caller {
	want := bytes.TrimSpace(payload)
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK || !bytes.Equal(bytes.TrimSpace(body), want) {
			return fmt.Errorf("POST %s: status %d, body %q", url, res.StatusCode, body)
		}
		return nil
	}
}
