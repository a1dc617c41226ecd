package store

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func commit(t *testing.T, s *Store, c *Changes) {
	t.Helper()
	if err := s.Commit(c); err != nil {
		t.Fatal(err)
	}
}

func source(text string) *hearthv1.Source {
	return &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{Files: []*hearthv1.InlineFile{
		{Path: "a.py", Data: &hearthv1.InlineFile_Text{Text: text}},
	}}}}
}

func run(phase lifecycle.Stage) *record.Run {
	r := &record.Run{UID: "u", Namespace: "default", Name: "f", Seq: 1, Version: 7, Spec: &hearthv1.RunSpec{Runtime: "python"}}
	r.State.Stage = phase
	return r
}

// What is written once is not written again with every change, and goes with its Run.
func TestCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	commit(t, s, &Changes{Version: 7, Seq: 1, Runs: map[string]*record.Run{"u": run(lifecycle.Waiting)}, Sources: map[string]*hearthv1.Source{"u": source("x")}})
	commit(t, s, &Changes{Version: 8, Seq: 1, Runs: map[string]*record.Run{"u": run(lifecycle.Ready)}, Streams: map[string]Streams{"u": {Stdout: "out"}}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	c, err := s.Load()
	if err != nil || c.Version != 8 || c.Seq != 1 || len(c.Runs) != 1 || c.Runs[0].State.Stage != lifecycle.Ready || c.Runs[0].Spec.GetRuntime() != "python" {
		t.Fatalf("loaded %+v, %v", c, err)
	}
	if got, err := s.Source("u"); err != nil || !proto.Equal(got, source("x")) {
		t.Errorf("source %v, %v", got, err)
	}
	if got, err := s.Streams("u"); err != nil || got.Stdout != "out" {
		t.Errorf("streams %v, %v", got, err)
	}
	commit(t, s, &Changes{Version: 9, Seq: 1, Runs: map[string]*record.Run{"u": nil}})
	if got, err := s.Source("u"); err != nil || got != nil {
		t.Errorf("source of a removed Run: %v, %v", got, err)
	}
	if got, err := s.Streams("u"); err != nil || got != (Streams{}) {
		t.Errorf("streams of a removed Run: %v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// One process at a time has the file.
func TestLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "db")
		s := open(t, path)
		if _, err := Open(Options{Path: path}); err == nil || !strings.Contains(err.Error(), "another control plane") {
			t.Errorf("opened twice: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := open(t, path).Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A file of a layout that this program does not know is left alone.
func TestFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(meta).Put(formatKey, []byte("99")) })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Path: path}); err == nil || !strings.Contains(err.Error(), "format 99") {
		t.Errorf("opened: %v", err)
	}
}
