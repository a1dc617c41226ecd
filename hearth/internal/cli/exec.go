package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// execCmd runs a function of a Python file in a sandbox. No Python is needed here:
// the call travels as JSON.
type execCmd struct {
	Target   string        `arg:"" help:"FILE.py:FUNCTION."`
	Args     []string      `arg:"" optional:"" help:"Arguments, each as JSON."`
	Kwargs   string        `help:"Keyword arguments, a JSON object." placeholder:"JSON"`
	Memory   bytesFlag     `help:"Memory to start with: 512Mi, 2Gi or bytes." placeholder:"SIZE"`
	MaxMem   bytesFlag     `name:"max-memory" help:"Memory to grow to." placeholder:"SIZE"`
	Packages []string      `name:"package" help:"PyPI requirement to install first; may be repeated." sep:"none" placeholder:"REQ"`
	Session  string        `help:"Session whose state the call shares." placeholder:"ID"`
	Timeout  time.Duration `help:"Time for the call; then the exit code is 124." default:"5m"`
	Explain  bool          `help:"Say on standard error where and how it ran."`
	routerFlags
}

func (c *execCmd) Run(ctx context.Context, shell *Shell) error {
	file, entry, ok := strings.Cut(c.Target, ":")
	if !ok || entry == "" {
		return usagef("%q: want FILE.py:FUNCTION", c.Target)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return usagef("%w", err)
	}
	config, body, err := c.call(string(source), entry)
	if err != nil {
		return err
	}
	dialer := dial.New(nil)
	defer dialer.Close()
	client, err := dialer.Streams(c.Router)
	if err != nil {
		return usagef("--router: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	answer, last, steps, err := execute(ctx, serverlessconnect.NewProxyServiceClient(client), c.Session, config, body, shell.Err)
	if err != nil {
		return ofCall(ctx, "exec "+c.Target, c.Timeout, err)
	}
	if c.Explain {
		fmt.Fprintln(shell.Err, explainStart(last, steps))
	}
	value, err := open(answer)
	if err != nil {
		return fmt.Errorf("exec %s: %w", c.Target, err)
	}
	_, err = fmt.Fprintf(shell.Out, "%s\n", value)
	return err
}

// execute sends a whole call and returns its answer, the last message of it and its
// steps; what the function prints goes to logs at once.
func execute(ctx context.Context, router serverlessconnect.ProxyServiceClient, session string, config *serverless.ExecutionConfig, body []byte, logs io.Writer) ([]byte, *serverless.ClientExecutionResponse, []*serverless.ExecutionStep, error) {
	stream, err := router.RequestExecution(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	defer stream.Close()
	if err := send(stream, "exec-"+rand.Text(), session, config, body); err != nil {
		return nil, nil, nil, err
	}
	return receive(stream, logs)
}

// call is what the flags say, as the router takes it.
func (c *execCmd) call(source, entry string) (*serverless.ExecutionConfig, []byte, error) {
	args := make([]json.RawMessage, 0, len(c.Args))
	for i, arg := range c.Args {
		if !json.Valid([]byte(arg)) {
			return nil, nil, usagef(`argument %d, %s: not JSON; text needs its quotes: '"%s"'`, i+1, arg, arg)
		}
		args = append(args, json.RawMessage(arg))
	}
	kwargs := json.RawMessage("{}")
	if c.Kwargs != "" {
		if err := json.Unmarshal([]byte(c.Kwargs), &map[string]any{}); err != nil {
			return nil, nil, usagef("--kwargs: want a JSON object: %w", err)
		}
		kwargs = json.RawMessage(c.Kwargs)
	}
	body, err := json.Marshal(map[string]any{"source": source, "entry": entry, "args": args, "kwargs": kwargs})
	config := &serverless.ExecutionConfig{Imports: imports(source), Packages: c.Packages}
	if c.Memory > 0 || c.MaxMem > 0 {
		config.Budgets = []*serverless.ResourceBudget{{
			Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY, Alloc: int64(c.Memory), Max: int64(c.MaxMem),
		}}
	}
	return config, body, err
}

const chunkBytes = 1 << 20

// send sends a whole call: the config alone, then the body in chunks. An error of
// the router's shows when the answer is received.
func send(stream serverlessconnect.ProxyServiceRequestExecutionClientStream, request, session string, config *serverless.ExecutionConfig, body []byte) error {
	message := func(m *serverless.ClientExecutionRequest) error {
		m.RequestId, m.SessionId = request, session
		if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}
	if err := message(&serverless.ClientExecutionRequest{Data: &serverless.ClientExecutionRequest_Config{Config: config}}); err != nil {
		return err
	}
	for chunk := range slices.Chunk(body, chunkBytes) {
		if err := message(&serverless.ClientExecutionRequest{Data: &serverless.ClientExecutionRequest_Payload{Payload: chunk}}); err != nil {
			return err
		}
	}
	return stream.CloseSend()
}

// receive returns the answer, the last message and the steps; what is printed
// meanwhile goes to logs at once.
func receive(stream serverlessconnect.ProxyServiceRequestExecutionClientStream, logs io.Writer) ([]byte, *serverless.ClientExecutionResponse, []*serverless.ExecutionStep, error) {
	var answer []byte
	var last *serverless.ClientExecutionResponse
	var steps []*serverless.ExecutionStep
	for {
		res, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return answer, last, steps, nil
		}
		if err != nil {
			return nil, nil, nil, err
		}
		last = res
		steps = append(steps, res.GetSteps()...)
		answer = append(answer, res.GetPayload()...)
		if _, err := io.WriteString(logs, res.GetLogs()); err != nil {
			return nil, nil, nil, err
		}
	}
}

// open takes the value out of an envelope, or says what the function raised.
func open(answer []byte) (json.RawMessage, error) {
	var envelope struct {
		OK        bool            `json:"ok"`
		Value     json.RawMessage `json:"value"`
		ExcType   string          `json:"exc_type"`
		Message   string          `json:"message"`
		Traceback string          `json:"traceback"`
	}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return nil, fmt.Errorf("the answer is no envelope: %w", err)
	}
	if !envelope.OK {
		return nil, fmt.Errorf("%s: %s\n%s", envelope.ExcType, envelope.Message, envelope.Traceback)
	}
	return envelope.Value, nil
}

// explainStart says where and how a call ran.
func explainStart(last *serverless.ClientExecutionResponse, steps []*serverless.ExecutionStep) string {
	line := fmt.Sprintf("ran on worker %s in container %s, %s", last.GetWorkerId(), last.GetContainerId(), howStarted(last))
	for _, b := range last.GetBudgets() {
		if b.GetKind() == serverless.ResourceKind_RESOURCE_KIND_MEMORY {
			line += fmt.Sprintf(", with %s of memory", mebibytes(b.GetAlloc()))
		}
	}
	return line + explainSteps(steps)
}

// explainSteps lists where the time went, a line each, and the sum.
func explainSteps(steps []*serverless.ExecutionStep) string {
	var text strings.Builder
	var sum time.Duration
	line := func(name string, took time.Duration) {
		fmt.Fprintf(&text, "\n  %-10s %9s", name, took.Round(time.Microsecond))
	}
	for _, step := range steps {
		took := time.Duration(step.GetNanos())
		line(step.GetName(), took)
		sum += took
	}
	if len(steps) > 0 {
		line("in all", sum)
	}
	return text.String()
}

// howStarted says how a call came to its container.
func howStarted(last *serverless.ClientExecutionResponse) string {
	switch last.GetStart() {
	case serverless.ContainerStart_CONTAINER_START_COLD:
		return "started cold"
	case serverless.ContainerStart_CONTAINER_START_CHECKPOINT:
		return "started from " + last.GetCheckpointId()
	case serverless.ContainerStart_CONTAINER_START_POOLED:
		return "which stood ready, started from " + last.GetCheckpointId()
	case serverless.ContainerStart_CONTAINER_START_SESSION:
		return "the session's own"
	default:
		return "and its worker does not say how it started"
	}
}
