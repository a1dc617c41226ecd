package process

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"
)

// Config says where a driver keeps its state and who its containers run as.
type Config struct {
	// Root is a folder for the driver alone, made where it is missing. One driver
	// at a time uses it; what an earlier one left in it is swept by Open.
	Root string
	// Transient is a folder whose contents, the owner's own, are worth nothing
	// without this process: where it is killed, they are removed with what is left of
	// the containers. Open and Close leave them alone. Empty: none.
	Transient string
	// FirstUID is the first of Users numeric user ids (and equal group ids) that
	// containers run as, each container with one that no other living one has.
	// They must belong to nobody on this machine.
	FirstUID uint32
	// Users bounds the containers that live at one time.
	Users uint32
	// Patience is how long Kill and Destroy wait for processes to die.
	Patience time.Duration
	// Log gets one line for what was swept and for walls that do not stand.
	Log *slog.Logger
}

// Default has every value but Root.
func Default() Config {
	return Config{FirstUID: 2_000_000_000, Users: 65_536, Patience: 10 * time.Second, Log: slog.New(slog.DiscardHandler)}
}

// Validate names every bad field at once.
func (c Config) Validate() error {
	var errs []error
	if !folder(c.Root) {
		errs = append(errs, fmt.Errorf("root %q: must be an absolute, clean folder and not /", c.Root))
	}
	if c.Transient != "" && !folder(c.Transient) {
		errs = append(errs, fmt.Errorf("transient %q: must be empty, or an absolute, clean folder and not /", c.Transient))
	}
	if c.FirstUID < 1000 || c.Users == 0 || uint64(c.FirstUID)+uint64(c.Users) > 1<<32-2 {
		errs = append(errs, fmt.Errorf("first_uid %d, users %d: want at least 1000, at least 1, and an end below 4294967294", c.FirstUID, c.Users))
	}
	if c.Patience <= 0 {
		errs = append(errs, fmt.Errorf("patience %v: must be above 0", c.Patience))
	}
	if c.Log == nil {
		errs = append(errs, errors.New("log: must be set; slog.DiscardHandler drops everything"))
	}
	return errors.Join(errs...)
}

func folder(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/"
}
