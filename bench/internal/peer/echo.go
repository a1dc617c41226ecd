// Package peer owns the processes that are measured: Hearth itself and what it is
// compared with.
package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Echo serves what the floor is made of: a bare net/http server that decodes JSON
// and encodes it again. It prints its address and runs until ctx is done.
func Echo(ctx context.Context, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(echo)}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	fmt.Fprintf(out, "echo http://%s\n", listener.Addr())
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func echo(w http.ResponseWriter, r *http.Request) {
	var value any
	if err := json.NewDecoder(r.Body).Decode(&value); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(value)
}
