package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/record"
)

// Streams are what a task wrote.
type Streams struct{ Stdout, Stderr string }

// Changes are written together or not at all.
type Changes struct {
	Version, Seq int64
	// Runs are new versions; a nil value removes the Run with all that is its.
	Runs map[string]*record.Run
	// Sources are the full sources of Runs that are new; their specs are written too.
	Sources map[string]*hearthv1.Source
	// Streams are the outputs of tasks that have ended.
	Streams map[string]Streams
	// Nodes are new versions; a nil value removes the node.
	Nodes map[string]*record.Node
}

// Empty says whether there is nothing to write.
func (c *Changes) Empty() bool {
	return len(c.Runs) == 0 && len(c.Nodes) == 0 && len(c.Streams) == 0
}

// Commit writes the changes durably: with fsync, unless Options said no.
func (s *Store) Commit(c *Changes) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(meta)
		if err := b.Put(versionKey, bytes(c.Version)); err != nil {
			return err
		}
		if err := b.Put(seqKey, bytes(c.Seq)); err != nil {
			return err
		}
		for uid, run := range c.Runs {
			source, isNew := c.Sources[uid]
			if err := putRun(tx, uid, run, source, isNew); err != nil {
				return fmt.Errorf("run %s: %w", uid, err)
			}
		}
		for uid, st := range c.Streams {
			if err := putJSON(tx.Bucket(streams), uid, st); err != nil {
				return err
			}
		}
		for uid, node := range c.Nodes {
			if err := putNode(tx.Bucket(nodes), uid, node); err != nil {
				return fmt.Errorf("node %s: %w", uid, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func putRun(tx *bbolt.Tx, uid string, run *record.Run, source *hearthv1.Source, isNew bool) error {
	if run == nil {
		for _, name := range [][]byte{runs, specs, sources, streams} {
			if err := tx.Bucket(name).Delete([]byte(uid)); err != nil {
				return err
			}
		}
		return nil
	}
	if isNew {
		if err := putProto(tx.Bucket(specs), uid, run.Spec); err != nil {
			return err
		}
		if source.GetInline() != nil {
			if err := putProto(tx.Bucket(sources), uid, source); err != nil {
				return err
			}
		}
	}
	return putJSON(tx.Bucket(runs), uid, run)
}

func putNode(b *bbolt.Bucket, uid string, node *record.Node) error {
	if node == nil {
		return b.Delete([]byte(uid))
	}
	return putJSON(b, uid, node)
}

func putJSON(b *bbolt.Bucket, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return b.Put([]byte(key), text)
}

func putProto(b *bbolt.Bucket, key string, msg proto.Message) error {
	wire, err := proto.Marshal(msg)
	if err != nil {
		return err
	}
	return b.Put([]byte(key), wire)
}

func bytes(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// Source returns the inline source of a Run with its contents; nil where it has none.
func (s *Store) Source(uid string) (*hearthv1.Source, error) {
	var out *hearthv1.Source
	err := s.db.View(func(tx *bbolt.Tx) error {
		wire := tx.Bucket(sources).Get([]byte(uid))
		if wire == nil {
			return nil
		}
		out = &hearthv1.Source{}
		return proto.Unmarshal(wire, out)
	})
	if err != nil {
		return nil, fmt.Errorf("read source of run %s: %w", uid, err)
	}
	return out, nil
}

// Streams returns what a task wrote, empty where nothing is kept.
func (s *Store) Streams(uid string) (out Streams, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		text := tx.Bucket(streams).Get([]byte(uid))
		if text == nil {
			return nil
		}
		return json.Unmarshal(text, &out)
	})
	if err != nil {
		return out, fmt.Errorf("read streams of run %s: %w", uid, err)
	}
	return out, nil
}
