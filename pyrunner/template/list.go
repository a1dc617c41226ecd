package template

import (
	"context"
	"fmt"

	"github.com/hearth-run/hearth/pyrunner/message"
)

// List names the top-level modules that the process has loaded, sorted.
func (t *Template) List(ctx context.Context) ([]string, error) {
	m, err := t.ask(ctx, nil, message.List)
	if err == nil && m.Kind != message.Listed {
		err = fmt.Errorf("%w: kind %d", ErrOrder, m.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("list modules of template: %w", err)
	}
	names := make([]string, len(m.Fields))
	for i := range names {
		names[i] = m.Text(i)
	}
	return names, nil
}
