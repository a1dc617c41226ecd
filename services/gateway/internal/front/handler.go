package front

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/gateway/internal/invoke"
)

// Headers of an invocation.
const (
	// HeaderInvocationID names the invocation, in and out: at most 128 bytes of
	// printable ASCII.
	HeaderInvocationID = "Hearth-Invocation-Id"
	// HeaderTimeout is the time of the invocation in milliseconds, in.
	HeaderTimeout = "Hearth-Timeout-Millis"
	// HeaderRunUID is the UID of the Run that was called, out.
	HeaderRunUID = "Hearth-Run-Uid"
)

// Invoker makes invocations.
type Invoker interface {
	// Do makes one. Errors: with code and reason, as verdicts of the gateway or of
	// a node.
	Do(ctx context.Context, call invoke.Call) (invoke.Answer, error)
}

// Handler serves the plain routes:
//
//	POST /v1/namespaces/{namespace}/runs/{name}:invoke
//	POST /v1/namespaces/{namespace}/runs/{name}/{uid}:invoke
type Handler struct {
	invoker Invoker
	gate    *invoke.Gate
	log     *slog.Logger
	errors  *connecthttp.ErrorWriter
	mux     *http.ServeMux
}

// New returns a handler that admits calls by gate.
func New(invoker Invoker, gate *invoke.Gate, log *slog.Logger) *Handler {
	h := &Handler{invoker: invoker, gate: gate, log: log, errors: connecthttp.NewErrorWriter(), mux: http.NewServeMux()}
	h.mux.HandleFunc("/v1/namespaces/{namespace}/runs/{name}", func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, r.PathValue("name"), "")
	})
	h.mux.HandleFunc("/v1/namespaces/{namespace}/runs/{name}/{uid}", func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r, r.PathValue("uid"), r.PathValue("name"))
	})
	h.mux.HandleFunc("/", h.unknown)
	return h
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// serve takes the last part of the path, which ends in the verb, and the part
// before it where the last one is a UID.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, last, before string) {
	target, ok := strings.CutSuffix(last, ":invoke")
	if !ok {
		h.unknown(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST, OPTIONS")
		h.faultWith(w, edge.New(connect.CodeUnimplemented, "METHOD_NOT_ALLOWED", "method "+r.Method+": invocations are POST", nil), http.StatusMethodNotAllowed)
		return
	}
	call := invoke.Call{Namespace: r.PathValue("namespace"), Name: target}
	if before != "" {
		call.Name, call.RunUID = before, target
	}
	h.invoke(w, r, call)
}

func (h *Handler) invoke(w http.ResponseWriter, r *http.Request, call invoke.Call) {
	call, err := read(r, call)
	if err != nil {
		h.fault(w, err)
		return
	}
	if err := h.gate.Enter(); err != nil {
		h.fault(w, err)
		return
	}
	defer h.gate.Leave()
	if call.Input, err = payload(w, r); err != nil {
		// What was not read yet is not worth reading.
		w.Header().Set("Connection", "close")
		h.fault(w, err)
		return
	}
	answer, err := h.invoker.Do(r.Context(), call)
	if err != nil {
		h.fault(w, err)
		return
	}
	if err := write(w, r, answer); err != nil {
		h.log.Debug("answer not written", "invocation_id", answer.InvocationID, "cause", err)
	}
}

func (h *Handler) unknown(w http.ResponseWriter, r *http.Request) {
	h.faultWith(w, edge.New(connect.CodeNotFound, "NOT_FOUND",
		"nothing at this path; invocations are POST /v1/namespaces/NAMESPACE/runs/NAME:invoke", nil), http.StatusNotFound)
}
