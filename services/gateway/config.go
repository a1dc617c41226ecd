package gateway

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config is what can be set about a gateway. The tags are for commands.
type Config struct {
	// DefaultTimeout is the time of an invocation that asks for none.
	DefaultTimeout time.Duration `help:"Time of an invocation that asks for none." default:"30s"`
	// MaxTimeout is the longest time that an invocation may ask for, at most 15 min.
	MaxTimeout time.Duration `help:"Longest time that an invocation may ask for, at most 15m." default:"15m"`
	// Settle is how long a call waits for a Run whose node is starting it, before it
	// is refused with 503, RUN_NOT_READY; 0 is not at all. It bridges the moment
	// between the control plane's word that a Run is ready and this gateway's hearing
	// of it.
	Settle time.Duration `help:"How long a call waits for a Run that its node is starting." default:"250ms"`
	// MaxInFlight is how many calls are served at once, over all Runs. The next one
	// is refused with 503, GATEWAY_OVERLOADED. Each may hold 2 MiB of payload.
	MaxInFlight int `help:"Calls served at once over all Runs; the next one is refused with 503." default:"1024"`
	// CORSOrigins are the web pages that may call: an origin, an origin with any
	// port ("http://localhost:*"), or "*". Pages of other origins are refused.
	CORSOrigins []string `name:"cors-origins" help:"Web pages that may call: origins (http://localhost:* for any port), or *." default:"http://localhost:*,http://127.0.0.1:*"`
}

// Default returns the configuration of a gateway that is told nothing.
func Default() Config {
	return Config{
		DefaultTimeout: 30 * time.Second,
		MaxTimeout:     15 * time.Minute,
		Settle:         250 * time.Millisecond,
		MaxInFlight:    1024,
		CORSOrigins:    []string{"http://localhost:*", "http://127.0.0.1:*"},
	}
}

// Validate names every bad field at once.
func (c Config) Validate() error {
	var bad []error
	if c.MaxTimeout < time.Millisecond || c.MaxTimeout > 15*time.Minute {
		bad = append(bad, fmt.Errorf("max timeout is %v: want 1ms to 15m", c.MaxTimeout))
	}
	if c.DefaultTimeout < time.Millisecond || c.DefaultTimeout > c.MaxTimeout {
		bad = append(bad, fmt.Errorf("default timeout is %v: want 1ms to max timeout, %v", c.DefaultTimeout, c.MaxTimeout))
	}
	if c.Settle < 0 || c.Settle > time.Minute {
		bad = append(bad, fmt.Errorf("settle is %v: want 0 to 1m", c.Settle))
	}
	if c.MaxInFlight < 1 {
		bad = append(bad, fmt.Errorf("max in flight is %d: want at least 1", c.MaxInFlight))
	}
	for _, origin := range c.CORSOrigins {
		if scheme, host, ok := strings.Cut(origin, "://"); origin != "*" && (!ok || scheme == "" || host == "" || strings.Contains(host, "/")) {
			bad = append(bad, fmt.Errorf("cors origin %q: want SCHEME://HOST[:PORT], without a path, or *", origin))
		}
	}
	return errors.Join(bad...)
}
