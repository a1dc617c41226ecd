package bash

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// channels are the files between the server and one warm bash. Both ends stay
// with the server; driver.sh opens its end through /proc, so that no descriptor
// is inherited and a pipe never ends while the server lives.
type channels struct {
	control, status, output, errors pipe
	payload                         *os.File // a memfd
}

type pipe struct{ read, write *os.File }

func newPipe() (pipe, error) {
	read, write, err := os.Pipe()
	return pipe{read, write}, err
}

func (p pipe) close() error {
	if p.read == nil {
		return nil
	}
	return errors.Join(p.read.Close(), p.write.Close())
}

func openChannels() (*channels, error) {
	c := &channels{}
	for _, p := range []*pipe{&c.control, &c.status, &c.output, &c.errors} {
		opened, err := newPipe()
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		*p = opened
	}
	fd, err := unix.MemfdCreate("hearth-payload", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make memfd: %w", err), c.close())
	}
	c.payload = os.NewFile(uintptr(fd), "hearth-payload")
	return c, nil
}

func (c *channels) close() error {
	var errs []error
	for _, p := range []pipe{c.control, c.status, c.output, c.errors} {
		errs = append(errs, p.close())
	}
	if c.payload != nil {
		errs = append(errs, c.payload.Close())
	}
	return errors.Join(errs...)
}

// numbers are the descriptors that driver.sh is told of, in its order.
func (c *channels) numbers() []string {
	var numbers []string
	for _, f := range []*os.File{c.control.read, c.status.write, c.payload, c.output.write, c.errors.write} {
		numbers = append(numbers, strconv.Itoa(int(f.Fd())))
	}
	return numbers
}

// put makes input the payload of the next call.
func (c *channels) put(input []byte) error {
	if _, err := c.payload.WriteAt(input, 0); err != nil {
		return fmt.Errorf("write payload: %w", err)
	}
	// Only what is beyond goes: pages of a memfd cost more than their bytes.
	if err := c.payload.Truncate(int64(len(input))); err != nil {
		return fmt.Errorf("cut payload: %w", err)
	}
	return nil
}

// report reads lines of the status pipe into a channel until the pipe is closed.
func (c *channels) report(lines chan<- string) {
	defer close(lines)
	for in := bufio.NewScanner(c.status.read); in.Scan(); {
		lines <- in.Text()
	}
}
