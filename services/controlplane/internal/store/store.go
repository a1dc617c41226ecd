// Package store owns the one file in which the control plane remembers: what was
// committed is there after kill -9 and after a loss of power.
package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

// The buckets. What changes often (runs) is apart from what is written once and
// may be large (specs without contents, sources with them) and from what is read
// rarely (streams: a task's stdout and stderr).
var (
	runs    = []byte("runs")
	specs   = []byte("specs")
	sources = []byte("sources")
	streams = []byte("streams")
	nodes   = []byte("nodes")
	meta    = []byte("meta")

	versionKey = []byte("version")
	seqKey     = []byte("seq")
	formatKey  = []byte("format")
)

// format is the layout's number; a file with another is refused.
const format = "1"

// Options say how to open a store.
type Options struct {
	// Path is the file; its folder exists.
	Path string
	// NoSync leaves out fsync: kill -9 still loses nothing, a loss of power may.
	NoSync bool
}

// Store is safe for concurrent use; commits come one at a time.
type Store struct{ db *bbolt.DB }

// Open opens or makes the file and takes its lock.
// Errors: another process has it, or it is of another format.
func Open(o Options) (*Store, error) {
	db, err := bbolt.Open(o.Path, 0o600, &bbolt.Options{
		Timeout: 2 * time.Second, NoSync: o.NoSync, FreelistType: bbolt.FreelistMapType, NoFreelistSync: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open store %s (does another control plane use it?): %w", o.Path, err)
	}
	if err := db.Update(prepare); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", o.Path, err), db.Close())
	}
	return &Store{db: db}, nil
}

func prepare(tx *bbolt.Tx) error {
	for _, name := range [][]byte{runs, specs, sources, streams, nodes, meta} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	b := tx.Bucket(meta)
	switch found := b.Get(formatKey); {
	case found == nil:
		return b.Put(formatKey, []byte(format))
	case string(found) != format:
		return fmt.Errorf("format %s, this program knows %s", found, format)
	}
	return nil
}

// Close gives the file back.
func (s *Store) Close() error { return s.db.Close() }

// Contents is all that a store remembers but for sources and streams.
type Contents struct {
	Version, Seq int64
	Runs         []*record.Run
	Nodes        []*record.Node
}

// Load reads the contents.
func (s *Store) Load() (*Contents, error) {
	c := &Contents{}
	err := s.db.View(func(tx *bbolt.Tx) error {
		c.Version, c.Seq = number(tx.Bucket(meta).Get(versionKey)), number(tx.Bucket(meta).Get(seqKey))
		light := tx.Bucket(specs)
		err := tx.Bucket(runs).ForEach(func(uid, value []byte) error {
			run, err := decode(value, light.Get(uid))
			if err != nil {
				return fmt.Errorf("run %s: %w", uid, err)
			}
			c.Runs = append(c.Runs, run)
			return nil
		})
		if err != nil {
			return err
		}
		return tx.Bucket(nodes).ForEach(func(uid, value []byte) error {
			node := &record.Node{}
			if err := json.Unmarshal(value, node); err != nil {
				return fmt.Errorf("node %s: %w", uid, err)
			}
			c.Nodes = append(c.Nodes, node)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("load store: %w", err)
	}
	return c, nil
}

func decode(hot, light []byte) (*record.Run, error) {
	run := &record.Run{Spec: &hearthv1.RunSpec{}}
	if err := json.Unmarshal(hot, run); err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(light, run.Spec); err != nil {
		return nil, err
	}
	run.Policy = record.PolicyOf(run.Spec)
	return run, nil
}

func number(value []byte) int64 {
	if len(value) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(value))
}
