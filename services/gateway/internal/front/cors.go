package front

import (
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

// Origins says which web pages may call. An entry is an origin
// ("https://app.example"), an origin with any port ("http://localhost:*"), or
// "*" for every page.
type Origins []string

// Allow says whether a page of this origin may call.
func (o Origins) Allow(origin string) bool {
	return slices.ContainsFunc(o, func(entry string) bool {
		if host, ok := strings.CutSuffix(entry, ":*"); ok {
			rest, ok := strings.CutPrefix(origin, host)
			return ok && (rest == "" || rest[0] == ':')
		}
		return entry == "*" || entry == origin
	})
}

const (
	preflightAge = "7200" // seconds
	allowMethods = "POST, GET, OPTIONS"
)

var (
	exposed = strings.Join([]string{
		HeaderInvocationID, HeaderRunUID, "Retry-After",
		"Grpc-Status", "Grpc-Message", "Grpc-Status-Details-Bin",
	}, ", ")
	allowHeaders = strings.Join([]string{
		"Accept", "Authorization", "Content-Type", "Traceparent", HeaderInvocationID, HeaderTimeout,
		"Connect-Protocol-Version", "Connect-Timeout-Ms", "Grpc-Timeout", "X-Grpc-Web", "X-User-Agent",
	}, ", ")
)

// CORS lets pages of the given origins call next, answers their preflights, and
// refuses pages of any other origin: a browser sends a simple POST without asking
// first, so a page that is left to itself could call every function that listens
// on its visitor's machine. Requests without an Origin are no pages and pass.
func (h *Handler) CORS(origins Origins, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		head := w.Header()
		head.Add("Vary", "Origin")
		_, own, _ := strings.Cut(origin, "://")
		if !origins.Allow(origin) && own != r.Host {
			h.fault(w, edge.New(connect.CodePermissionDenied, "ORIGIN_NOT_ALLOWED",
				"pages of this origin may not call; name it in the setting cors-origins", nil))
			return
		}
		head.Set("Access-Control-Allow-Origin", origin)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			head.Set("Access-Control-Allow-Methods", allowMethods)
			head.Set("Access-Control-Allow-Headers", allowHeaders)
			head.Set("Access-Control-Max-Age", preflightAge)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		head.Set("Access-Control-Expose-Headers", exposed)
		next.ServeHTTP(w, r)
	})
}
