package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect/v2"
	"connectrpc.com/otelconnect"
	"connectrpc.com/validate"
	"go.opentelemetry.io/otel/trace"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

// ErrDraining is the cause with which a watch is ended when its server stops.
var ErrDraining = errors.New("the server is shutting down")

// Option changes how NewConnect builds its interceptors.
type Option func(*options)

type options struct {
	tracer trace.TracerProvider
	inside bool
}

// WithTracer traces every call with OpenTelemetry.
func WithTracer(provider trace.TracerProvider) Option {
	return func(o *options) { o.tracer = provider }
}

// Inside is for a dispatcher that is reached from this process alone, by services
// of ours that have checked at their own edge what they pass on: it does not
// validate again.
func Inside() Option {
	return func(o *options) { o.inside = true }
}

// NewConnect returns a dispatcher with the interceptors of every Hearth service,
// outermost first: tracing where asked for, recover, log, stamp (each error has
// an ErrorInfo), drain, validate. Services register on it; Server and
// connectinprocess serve it.
func NewConnect(log *slog.Logger, opts ...Option) (*connect.Server, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	var chain []connect.ServerInterceptor
	if o.tracer != nil {
		traced, err := otelconnect.NewServerInterceptor(otelconnect.WithTracerProvider(o.tracer))
		if err != nil {
			return nil, fmt.Errorf("build tracing: %w", err)
		}
		chain = append(chain, traced)
	}
	chain = append(chain, logged(log), stamped, recovered(log), drained)
	if !o.inside {
		// One validator serves the process: a message's rules are compiled once.
		chain = append(chain, validate.NewServerInterceptor(validate.WithValidator(protovalidate.GlobalValidator), validate.WithoutErrorDetails()))
	}
	return connect.NewServer(chain...), nil
}

// recovered turns a panic of a handler into Internal; the process lives on.
func recovered(log *slog.Logger) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) (err error) {
			defer func() {
				if p := recover(); p != nil {
					log.ErrorContext(ctx, "handler panicked", "procedure", spec.Procedure, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
					err = edge.New(connect.CodeInternal, "INTERNAL", "internal error", nil)
				}
			}()
			return next(ctx, spec, stream)
		}
	}
}

// logged writes one line a call: debug, or warn where the fault is the service's.
func logged(log *slog.Logger) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			start := time.Now()
			err := next(ctx, spec, stream)
			level := slog.LevelDebug
			if ours(err) {
				level = slog.LevelWarn
			}
			if log.Enabled(ctx, level) {
				attrs := []any{"procedure", spec.Procedure, "took", time.Since(start)}
				if err != nil {
					attrs = append(attrs, "code", codeOf(err).String(), "reason", edge.Reason(err), "err", err, "cause", errors.Unwrap(err))
				}
				log.Log(ctx, level, "call", attrs...)
			}
			return err
		}
	}
}

// ours says that an error is a fault of this service: its code says so, and it has
// no reason of the domain (a handler of a user's that failed is Internal too).
func ours(err error) bool {
	switch code := codeOf(err); code {
	case connect.CodeInternal, connect.CodeUnknown, connect.CodeDataLoss:
		return edge.Reason(err) == edge.CodeReason(code)
	default:
		return false
	}
}

func codeOf(err error) connect.Code {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*connect.Error](err); ok {
		return e.Code()
	}
	return connect.CodeUnknown
}

// stamped sees to it that an error has a code and an ErrorInfo, whoever wrote it:
// the validator, the codec or a handler that forgot its table.
func stamped(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		return edge.Table(nil).Error(next(ctx, spec, stream), nil)
	}
}

// drained ends server streams, which are watches, as soon as their server stops;
// calls and two-way streams are given the time of the drain. What was cut off says
// that it was.
func drained(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		draining, ok := ctx.Value(drainKey{}).(<-chan struct{})
		if !ok {
			return next(ctx, spec, stream)
		}
		if spec.StreamType != connect.StreamTypeServer {
			err := next(ctx, spec, stream)
			if err != nil && errors.Is(context.Cause(ctx), ErrDraining) {
				return edge.New(connect.CodeUnavailable, "SHUTTING_DOWN", cutText, nil)
			}
			return err
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stop := make(chan struct{})
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			select {
			case <-draining:
				cancel(ErrDraining)
			case <-stop:
			}
		}()
		err := next(ctx, spec, stream)
		close(stop)
		<-watched
		if err != nil && errors.Is(context.Cause(ctx), ErrDraining) {
			return edge.New(connect.CodeUnavailable, "SHUTTING_DOWN", ErrDraining.Error(), nil)
		}
		return err
	}
}

// cutText is what callers hear whose call took longer than the drain.
const cutText = "the server is shutting down and has cut the call off; whether it took effect is not known"

type drainKey struct{}
