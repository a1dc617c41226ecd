package gateway_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkHotPath is one invocation from the HTTP handler to a node in the same
// process and back, without sockets: what the gateway itself costs.
func BenchmarkHotPath(b *testing.B) {
	h := open(b, nil)
	h.tell(snapshot(ready("hello", "uid-1")))
	handler := h.service.Wrap(h.service.Handler())
	body := []byte(`{"name":"Ada"}`)
	b.ReportAllocs()
	for b.Loop() {
		req := httptest.NewRequest(http.MethodPost, helloPath, bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		out := httptest.NewRecorder()
		handler.ServeHTTP(out, req)
		if out.Code != http.StatusOK {
			b.Fatal(out.Code, out.Body)
		}
	}
}
