package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killBound is how long a killed process may take to be gone: it is over in less
// than a millisecond unless the kernel holds the process in a device or a dead
// network file system.
const killBound = 10 * time.Second

// cgroup is the absolute path of a cgroup v2 folder, "" for none.
type cgroup string

func (c cgroup) child(name string) cgroup { return c + "/" + cgroup(name) }
func (c cgroup) file(name string) string  { return string(c) + "/" + name }

func (c cgroup) make() error {
	if err := os.Mkdir(string(c), 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return nil
}

// newRoot makes the folder of this life beneath our own cgroup and tries it out. It
// returns the folder, and how /proc/PID/cgroup writes it; "" when cgroups cannot be
// used here.
func newRoot(id string) (root cgroup, written string) {
	own, path, err := ownCgroup()
	if err != nil {
		return "", ""
	}
	root = own.child(id)
	if root.make() != nil {
		return "", ""
	}
	if root.try() != nil {
		_ = root.remove()
		return "", ""
	}
	return root, strings.TrimSuffix(path, "/") + "/" + id
}

// try starts a process in the group: kernels before 5.14, read-only mounts and
// filters on clone3 show themselves here.
func (c cgroup) try() error {
	if _, err := os.Stat(c.file("cgroup.kill")); err != nil {
		return err
	}
	f, err := os.Open(string(c))
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.Command("/bin/sh", "-c", ":")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	return cmd.Run()
}

// ownCgroup returns the folder of the v2 cgroup that this process is in, and its path
// in /proc/self/cgroup.
func ownCgroup() (own cgroup, path string, err error) {
	table, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", err
	}
	path = v2Path(table)
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	defer mounts.Close()
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		inside, ok := strings.CutPrefix(path, strings.TrimSuffix(fields[3], "/"))
		if ok && (inside == "" || inside[0] == '/') {
			return cgroup(filepath.Join(unescape(fields[4]), inside)), path, nil
		}
	}
	return "", "", errors.New("no cgroup v2 hierarchy is mounted")
}

// v2Path returns the path in a /proc/PID/cgroup file, without the mark of a
// removed folder.
func v2Path(table []byte) string {
	for line := range bytes.Lines(table) {
		if path, ok := strings.CutPrefix(string(line), "0::"); ok {
			return strings.TrimSuffix(strings.TrimSuffix(path, "\n"), " (deleted)")
		}
	}
	return ""
}

var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// unescape undoes what mountinfo does to paths.
func unescape(path string) string { return octal.Replace(path) }

// populated says whether a live process is in the group or beneath it.
func (c cgroup) populated() (bool, error) {
	events, err := os.ReadFile(c.file("cgroup.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Contains(events, []byte("populated 1")), err
}

// kill ends every process in the group and beneath it and returns when no live
// one is left.
func (c cgroup) kill() error {
	events, err := os.Open(c.file("cgroup.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer events.Close()
	if err := os.WriteFile(c.file("cgroup.kill"), []byte("1"), 0); err != nil {
		return fmt.Errorf("kill cgroup: %w", err)
	}
	deadline := time.Now().Add(killBound)
	buf := make([]byte, 256)
	for {
		n, err := unix.Pread(int(events.Fd()), buf, 0)
		if err != nil {
			return fmt.Errorf("read cgroup.events: %w", err)
		}
		if !bytes.Contains(buf[:n], []byte("populated 1")) {
			return nil
		}
		if err := await(int(events.Fd()), unix.POLLPRI, deadline); err != nil {
			return fmt.Errorf("processes %v of %s outlive SIGKILL: %w", c.procs(), c, err)
		}
	}
}

// await blocks until the descriptor has an event. The kernel tells of a change of
// cgroup.events by POLLPRI and of the end of a pidfd's process by POLLIN.
func await(fd int, event int16, deadline time.Time) error {
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: event}}, int(left/time.Millisecond)+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}

// procs returns the pids in the group itself.
func (c cgroup) procs() []int {
	data, err := os.ReadFile(c.file("cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, field := range bytes.Fields(data) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// remove removes the folder and those beneath it, all of them empty.
func (c cgroup) remove() error {
	entries, err := os.ReadDir(string(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, c.child(e.Name()).remove())
		}
	}
	if e := os.Remove(string(c)); !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}
