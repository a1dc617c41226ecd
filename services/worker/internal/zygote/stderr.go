package zygote

import (
	"bufio"
	"context"
	"log/slog"
	"os"
)

// ear hands what the processes of a tree print to the log, a line at a time, until the
// last of them has ended. Over-long lines are cut.
type ear struct {
	read *os.File
	log  *slog.Logger
}

// listen returns an ear, and what the root's descriptors 1 and 2 shall be.
func listen(log *slog.Logger) (*ear, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &ear{read, log}, write, nil
}

func (e *ear) start() { go e.run() }

func (e *ear) run() {
	defer e.read.Close()
	lines := bufio.NewReaderSize(e.read, 4<<10)
	for {
		line, cut, err := lines.ReadLine()
		if err != nil {
			return
		}
		if !e.log.Enabled(context.Background(), slog.LevelInfo) {
			continue
		}
		e.log.Info("zygote printed", "text", string(line), "cut", cut)
	}
}
