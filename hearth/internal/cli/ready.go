package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/hearth-run/hearth/internal/kit/dial"
)

// ready asks a service whether it can take work.
// Errors: it cannot be reached, or says why not.
func ready(ctx context.Context, dialer *dial.Dialer, address string) error {
	client, base, err := dialer.HTTP(address, false)
	if err != nil {
		return usageError{err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 4096))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not ready: %s", address, strings.TrimSpace(string(text)))
	}
	return nil
}
