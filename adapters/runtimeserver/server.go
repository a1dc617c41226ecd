package runtimeserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/registration"
	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/runlog"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
)

// Attempts of Runs that are gone are remembered so long, and for so many Runs.
const (
	rememberAttempts = time.Hour
	rememberRuns     = 16 << 10
)

// Server is a Runtime Server for one language: executor.v1.Runtime and
// executor.v1.FunctionRuntime.
type Server struct {
	cfg      Config
	log      *slog.Logger
	language Language

	opened  chan struct{} // closed when what follows is set
	over    chan struct{} // closed when Run's context is done
	keeper  *process.Keeper
	root    string // the workspace with symlinks resolved
	logs    *runlog.Folder
	workers sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	runs       map[string]*owner
	attempts   *registration.Attempts
	executions map[string]*execution
	stopped    bool
}

// New checks the configuration and starts nothing.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure runtime server: %w", err)
	}
	if deps.Log == nil || deps.Language == nil {
		return nil, errors.New("configure runtime server: a logger and a language are needed")
	}
	return &Server{
		cfg: cfg.withDefaults(), log: deps.Log, language: deps.Language,
		opened: make(chan struct{}), over: make(chan struct{}),
		runs:       map[string]*owner{},
		attempts:   registration.NewAttempts(rememberAttempts, rememberRuns),
		executions: map[string]*execution{},
	}, nil
}

// Register puts both services on a dispatcher.
func (s *Server) Register(rpc *connect.Server) {
	executorv1connect.RegisterFunctionRuntimeHandler(rpc, &functions{s})
	executorv1connect.RegisterRuntimeHandler(rpc, &executions{s})
}

// Run serves until ctx is done; then every registration is closed, and Run
// returns when no process is left. Calls that arrive before Run has begun wait
// for it.
func (s *Server) Run(ctx context.Context) error {
	if err := s.open(); err != nil {
		return err
	}
	<-ctx.Done()
	s.stop()
	s.workers.Wait()
	return errors.Join(s.closeHost(), s.keeper.Close(), os.RemoveAll(s.tempDir()))
}

// open sweeps what an earlier life has left and makes ready for work.
func (s *Server) open() error {
	if err := os.MkdirAll(s.cfg.Workspace, 0o755); err != nil {
		return fmt.Errorf("make workspace: %w", err)
	}
	root, err := filepath.EvalSymlinks(s.cfg.Workspace)
	if err != nil {
		return fmt.Errorf("resolve workspace: %w", err)
	}
	s.root = root
	s.keeper, err = process.Open(process.Config{Dir: filepath.Join(root, stateDir), Name: s.language.Name(), NoCgroup: s.cfg.NoCgroup})
	if err != nil {
		return fmt.Errorf("open workspace %s: %w", root, err)
	}
	s.logs = runlog.NewFolder(s.logDir(), s.cfg.LogRuns)
	if err := errors.Join(s.openTemp(), s.openHost()); err != nil {
		return errors.Join(err, s.keeper.Close())
	}
	s.log.Info("runtime server is open", "runtime", s.language.Name(), "workspace", root, "cgroups", s.keeper.Cgroups())
	close(s.opened)
	return nil
}

func (s *Server) openHost() error {
	host, ok := s.language.(Host)
	if !ok {
		return nil
	}
	group, err := s.keeper.Group("language")
	if err != nil {
		return err
	}
	return host.Open(group)
}

func (s *Server) closeHost() error {
	if host, ok := s.language.(Host); ok {
		return host.Close()
	}
	return nil
}

func (s *Server) openTemp() error {
	if err := os.RemoveAll(s.tempDir()); err != nil {
		return fmt.Errorf("sweep temporary folders: %w", err)
	}
	return os.MkdirAll(s.tempDir(), 0o700)
}

func (s *Server) tempDir() string {
	return filepath.Join(s.root, stateDir, "tmp-"+s.language.Name())
}

func (s *Server) logDir() string { return filepath.Join(s.root, stateDir, "logs") }

// Ready says why the server cannot take work, nil if it can.
func (s *Server) Ready() error {
	select {
	case <-s.over:
		return errStopping
	default:
	}
	select {
	case <-s.opened:
		return nil
	default:
		return errors.New("the Runtime Server is starting")
	}
}

// admit waits until the server can take work.
func (s *Server) admit(ctx context.Context) error {
	select {
	case <-s.opened:
	case <-s.over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-s.over:
		return errStopping
	default:
		return nil
	}
}

// stop refuses new work and ends what there is.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	close(s.over)
}

// begin runs f as one of the server's goroutines; false when the server stops.
// The lock is held, so that Run waits for what was begun.
func (s *Server) begin(f func()) bool {
	if s.stopped {
		return false
	}
	s.workers.Go(f)
	return true
}
