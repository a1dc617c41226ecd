// Package output owns how the command prints what it was asked for: tables for
// people, JSON, YAML and names for programs.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Format is table, json, yaml or name.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
	Name  Format = "name"
)

// View says how messages of one kind look to people.
type View[M proto.Message] struct {
	// Columns are the heads of the table.
	Columns []string
	// Row are the cells of one message.
	Row func(M) []string
	// Name is what -o name prints.
	Name func(M) string
}

// One prints a single message.
func One[M proto.Message](w io.Writer, f Format, view View[M], m M) error {
	if f == JSON || f == YAML {
		return Message(w, f, m)
	}
	return List(w, f, view, []M{m})
}

// List prints messages: a JSON or YAML list of them, or a line each.
func List[M proto.Message](w io.Writer, f Format, view View[M], list []M) error {
	switch f {
	case JSON, YAML:
		items := make([]any, 0, len(list))
		for _, m := range list {
			item, err := plain(m)
			if err != nil {
				return err
			}
			items = append(items, item)
		}
		return Value(w, f, items)
	case Name:
		for _, m := range list {
			if _, err := fmt.Fprintln(w, view.Name(m)); err != nil {
				return err
			}
		}
		return nil
	default:
		rows := make([][]string, len(list))
		for i, m := range list {
			rows[i] = view.Row(m)
		}
		return Rows(w, view.Columns, rows)
	}
}

// Rows prints a table; without columns, its body alone.
func Rows(w io.Writer, columns []string, rows [][]string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	if len(columns) > 0 {
		fmt.Fprintln(tab, strings.Join(columns, "\t"))
	}
	for _, row := range rows {
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(tab, strings.Join(row, "\t"))
	}
	return tab.Flush()
}

// Message prints a message as protobuf JSON or YAML.
func Message(w io.Writer, f Format, m proto.Message) error {
	value, err := plain(m)
	if err != nil {
		return err
	}
	return Value(w, f, value)
}

// Line prints a message as one line of JSON.
func Line(w io.Writer, m proto.Message) error {
	value, err := plain(m)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(value)
}

// Value prints plain data as JSON or YAML.
func Value(w io.Writer, f Format, value any) error {
	if f == YAML {
		encoder := yaml.NewEncoder(w)
		encoder.SetIndent(2)
		if err := encoder.Encode(value); err != nil {
			return err
		}
		return encoder.Close()
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// plain turns a message into maps, lists and scalars. protojson's own text is
// made to differ from build to build, so it never reaches a user.
func plain(m proto.Message) (any, error) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	err = decoder.Decode(&value)
	return value, err
}
