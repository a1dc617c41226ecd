package violator

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"time"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
)

//go:embed fixtures
var fixtures embed.FS

// Fixtures returns the fixture set in the fake's language.
func Fixtures() (fs.FS, error) { return fs.Sub(fixtures, "fixtures") }

// Settings are the fake's times and its switch.
type Settings struct {
	// Load, Invoke and Drain are the contract's defaults, scaled.
	Load, Invoke, Drain time.Duration
	// Grace is what an execution has between TERM and KILL.
	Grace time.Duration
	// Broken is the clause that is broken; the zero value breaks none.
	Broken Switch
}

// Runtime is the fake. Close ends what still runs in it.
type Runtime struct {
	cfg    Settings
	ctx    context.Context
	cancel context.CancelCauseFunc

	working sync.Mutex // guards closed, and the start of work
	closed  bool
	work    sync.WaitGroup

	mu         sync.Mutex // guards everything below
	regs       map[string]*registration
	highest    map[string]int32
	asked      int               // invocations that wait for a verdict
	calling    int               // invocations that run, of any Run
	known      map[string][]byte // answers by invocation ID, for deduplicates
	executions map[string]*execution
	forgotten  map[string]bool
	processes  map[*process]bool
}

// New returns a fake with no registrations.
func New(cfg Settings) *Runtime {
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &Runtime{cfg: cfg, ctx: ctx, cancel: cancel, processes: map[*process]bool{}}
	r.reset()
	return r
}

func (r *Runtime) reset() {
	r.regs, r.highest, r.known = map[string]*registration{}, map[string]int32{}, map[string][]byte{}
	r.executions, r.forgotten = map[string]*execution{}, map[string]bool{}
}

// Close ends every call, load and execution and returns when they have.
func (r *Runtime) Close() {
	r.cancel(errClosed)
	r.working.Lock()
	r.closed = true
	r.working.Unlock()
	r.work.Wait()
}

// begin says whether a request may begin. Close waits for those that did, so each
// ends with work.Done.
func (r *Runtime) begin() bool {
	r.working.Lock()
	defer r.working.Unlock()
	if !r.closed {
		r.work.Add(1)
	}
	return !r.closed
}

// background runs do until the fake is closed; after that it is not started.
func (r *Runtime) background(do func()) {
	r.working.Lock()
	defer r.working.Unlock()
	if !r.closed {
		r.work.Go(do)
	}
}

var errClosed = errors.New("the fake is closed")

// Register mounts the services.
func (r *Runtime) Register(server *connect.Server) {
	executorv1connect.RegisterRuntimeHandler(server, base{r})
	switch {
	case !r.cfg.Broken.BaseOnly:
		executorv1connect.RegisterFunctionRuntimeHandler(server, functions{r})
	case r.is("half-unsupported"):
		executorv1connect.RegisterFunctionRuntimeHandler(server, half{r: r})
	}
}

// MaxMessage is the largest message that the fake reads, in bytes.
func (r *Runtime) MaxMessage() int {
	if r.is("reads-any-message") {
		return 64 << 20
	}
	return 4 << 20
}

// Crash drops all state, as a killed process does.
func (r *Runtime) Crash() (holds bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	regs := r.regs
	if r.is("crash-holds-calls") {
		r.reset()
		return true
	}
	for _, reg := range regs {
		reg.end(errCrashed)
	}
	if !r.is("crash-leaves-children") {
		clear(r.processes)
	}
	r.reset()
	for uid, reg := range regs {
		if r.is("crash-keeps-registrations") {
			r.regs[uid] = reg
		}
		if r.is("crash-counts-attempts") {
			r.highest[uid] = reg.attempt + 1
		}
	}
	return false
}

var errCrashed = errors.New("the fake crashed")

// is says whether this clause is the broken one.
func (r *Runtime) is(name string) bool { return r.cfg.Broken.Name == name }

// validate enforces the rules of the proto, but for the one to ignore.
func (r *Runtime) validate(msg proto.Message) error {
	err := protovalidate.Validate(msg)
	var broken *protovalidate.ValidationError
	if err == nil || !errors.As(err, &broken) {
		return err
	}
	for _, v := range broken.Violations {
		field, _, _ := strings.Cut(protovalidate.FieldPathString(v.Proto.GetField()), "[")
		rule := field + " " + v.Proto.GetRuleId()
		if v.Proto.GetForKey() {
			rule += " key"
		}
		if ignore := r.cfg.Broken.Ignore; ignore == "" || !strings.HasPrefix(rule, ignore) || strings.HasSuffix(rule, " key") != strings.HasSuffix(ignore, " key") {
			return r.refuse(connect.CodeInvalidArgument, "INVALID_ARGUMENT", "", "", field+": "+v.Proto.GetMessage())
		}
	}
	return nil
}

// refuse is an error as the contract wants it, or as the broken clause has it.
func (r *Runtime) refuse(code connect.Code, reason, uid, invocation, text string, meta ...string) error {
	info := &errdetails.ErrorInfo{Domain: "hearth", Reason: reason, Metadata: map[string]string{}}
	if uid != "" && !r.is("error-without-run") {
		info.Metadata["run_uid"] = uid
	}
	if invocation != "" && !r.is("error-without-invocation") {
		info.Metadata["invocation_id"] = invocation
	}
	for i := 0; i+1 < len(meta); i += 2 {
		info.Metadata[meta[i]] = meta[i+1]
	}
	switch {
	case r.is("error-of-another-domain"):
		info.Domain = "elsewhere"
	case r.is("lower-case-reason"):
		info.Reason = strings.ToLower(reason)
	case r.is("error-without-text"):
		text = ""
	}
	err := connect.NewError(code, text)
	if !r.is("error-without-info") {
		err = withDetail(err, info)
	}
	if r.is("error-with-two-infos") {
		err = withDetail(err, info)
	}
	return err
}

func withDetail(err *connect.Error, msg proto.Message) *connect.Error {
	detail, packed := connectproto.NewErrorDetail(msg)
	if packed != nil {
		return err
	}
	return err.WithDetail(detail)
}

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// ulid is an ID of the right form; its time is not a time.
func ulid() string {
	var raw [26]byte
	_, _ = rand.Read(raw[:]) // never fails
	for i := range raw {
		raw[i] = crockford[raw[i]%32]
	}
	raw[0] = '0'
	return string(raw[:])
}

// half answers Unimplemented to one call of four.
type half struct {
	executorv1connect.UnimplementedFunctionRuntimeHandler
	r *Runtime
}

func (h half) InvokeFunction(context.Context, *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
	return nil, h.r.refuse(connect.CodeInternal, "INTERNAL", "", "", "no function mode")
}
