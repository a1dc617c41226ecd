// Package logs owns how a process writes its log: tint on a terminal, one JSON
// object a line elsewhere. Only main calls it.
package logs

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// Config says what is logged.
type Config struct {
	// Level is debug, info, warn or error.
	Level string `help:"Least level to log: debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`
	// Format is auto (text on a terminal), text or json.
	Format string `help:"auto, text or json." default:"auto" enum:"auto,text,json"`
}

// New returns a logger that writes to file.
func New(file *os.File, cfg Config) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		return nil, fmt.Errorf("log level %q: use debug, info, warn or error", cfg.Level)
	}
	terminal := term.IsTerminal(int(file.Fd()))
	if cfg.Format == "text" || (cfg.Format != "json" && terminal) {
		return slog.New(tint.NewTextHandler(file, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !terminal})), nil
	}
	return slog.New(slog.NewJSONHandler(file, &slog.HandlerOptions{Level: level})), nil
}
