// Package notify owns how readers of files learn that there is more to read: one
// inotify descriptor for all of them, so that nobody polls.
package notify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrStopped says that the watcher runs no more.
var ErrStopped = errors.New("the watcher of files runs no more")

// What is told of a file and of the names in a folder.
const (
	fileMask   = unix.IN_MODIFY
	folderMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_ONLYDIR
)

// Watcher tells of changes of files while it runs: who waits before that hears of them
// then. Safe for concurrent use.
type Watcher struct {
	// opened hands the descriptor to Run, at the first wait: a node whose logs
	// nobody follows has none.
	opened chan *os.File

	mu    sync.Mutex // guards the fields below
	ended bool
	file  *os.File // the inotify descriptor; nil before the first wait
	// marks are who waits for what, by watch descriptor: one inode has one, however
	// often it is added.
	marks map[int32]map[*Waiter]string
}

// New returns a watcher that tells nothing before Run.
func New() *Watcher {
	return &Watcher{opened: make(chan *os.File, 1), marks: map[int32]map[*Waiter]string{}}
}

// Run reads the kernel's events until ctx is done. Once.
// Errors: the kernel's.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.end()
	select {
	case file := <-w.opened:
		return w.read(ctx, file)
	case <-ctx.Done():
		return nil
	}
}

func (w *Watcher) read(ctx context.Context, file *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, 64<<10)
	for {
		n, err := file.Read(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch files: %w", err)
		}
		w.tell(buf[:n])
	}
}

// end wakes who waits, so that they find out.
func (w *Watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wakeAll()
	if w.file != nil {
		w.file.Close() // it was only read from
	}
	w.ended, w.file, w.marks = true, nil, map[int32]map[*Waiter]string{}
}

// tell wakes the waiters of each event in buf, which holds whole events.
func (w *Watcher) tell(buf []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(buf) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(buf))
		mask := binary.NativeEndian.Uint32(buf[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		name := strings.TrimRight(string(buf[unix.SizeofInotifyEvent:end]), "\x00")
		buf = buf[end:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			w.wakeAll()
			continue
		}
		for waiter, wanted := range w.marks[wd] {
			if wanted == "" || wanted == name {
				waiter.wake()
			}
		}
		if mask&unix.IN_IGNORED != 0 { // the inode is gone, and its mark with it
			delete(w.marks, wd)
		}
	}
}

// wakeAll is for when the kernel has lost events.
func (w *Watcher) wakeAll() {
	for _, waiters := range w.marks {
		for waiter := range waiters {
			waiter.wake()
		}
	}
}

// Waiter hears of one file at a time, and of its name in its folder.
type Waiter struct {
	// C gets a value after a change; several changes may be one value.
	C       <-chan struct{}
	c       chan struct{}
	watcher *Watcher
	folder  int32 // watch descriptors, -1 for none
	file    int32
}

func (w *Waiter) wake() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// Wait returns a waiter that hears when dir gets a new file of this name.
// Errors: ErrStopped, those of inotify.
func (w *Watcher) Wait(dir, name string) (*Waiter, error) {
	c := make(chan struct{}, 1)
	waiter := &Waiter{C: c, c: c, watcher: w, folder: -1, file: -1}
	var err error
	waiter.folder, err = w.mark(dir, folderMask, waiter, name)
	return waiter, err
}

// Follow makes the waiter hear also when the open file is written to, in place of
// the one before.
// Errors: ErrStopped, those of inotify.
func (w *Waiter) Follow(file *os.File) error {
	w.watcher.unmark(w.file, w)
	// The descriptor's own name, so that it is this inode whatever its path is by
	// now.
	var err error
	w.file, err = w.watcher.mark(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), fileMask, w, "")
	return err
}

// Err is ErrStopped once there is nobody to tell of changes any more.
func (w *Waiter) Err() error {
	w.watcher.mu.Lock()
	defer w.watcher.mu.Unlock()
	if w.watcher.ended {
		return ErrStopped
	}
	return nil
}

// Close makes the waiter hear nothing more.
func (w *Waiter) Close() {
	w.watcher.unmark(w.file, w)
	w.watcher.unmark(w.folder, w)
}

func (w *Watcher) mark(path string, mask uint32, waiter *Waiter, name string) (int32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.open(); err != nil {
		return -1, err
	}
	wd, err := addWatch(w.file, path, mask)
	if err != nil {
		return -1, fmt.Errorf("watch %s: %w", path, err)
	}
	if w.marks[wd] == nil {
		w.marks[wd] = map[*Waiter]string{}
	}
	w.marks[wd][waiter] = name
	return wd, nil
}

// open makes the descriptor where there is none yet.
func (w *Watcher) open() error {
	if w.ended {
		return ErrStopped
	}
	if w.file != nil {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch files: inotify: %w (see fs.inotify.max_user_instances)", err)
	}
	w.file = os.NewFile(uintptr(fd), "inotify")
	w.opened <- w.file // there is room: it is made once
	return nil
}

func addWatch(file *os.File, path string, mask uint32) (wd int32, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return -1, err
	}
	var n int
	cerr := raw.Control(func(fd uintptr) { n, err = unix.InotifyAddWatch(int(fd), path, mask) })
	return int32(n), errors.Join(cerr, err)
}

func (w *Watcher) unmark(wd int32, waiter *Waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiters := w.marks[wd]
	if _, mine := waiters[waiter]; !mine {
		return
	}
	delete(waiters, waiter)
	if len(waiters) > 0 || w.file == nil {
		return
	}
	delete(w.marks, wd)
	if raw, err := w.file.SyscallConn(); err == nil {
		// That the inode is gone already is as good.
		_ = raw.Control(func(fd uintptr) { _, _ = unix.InotifyRmWatch(int(fd), uint32(wd)) })
	}
}
