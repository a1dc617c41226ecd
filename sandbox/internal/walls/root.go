//go:build linux && amd64

package walls

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
)

// entry is one thing in the container's tree: exactly one of the fields beside path
// is set, or none for a plain folder.
type entry struct {
	path    string
	bind    string // source on the host
	folder  bool   // the source is a folder
	attrs   uint64 // mount attributes of the bind
	link    string
	content *string
	scratch int64
	proc    bool
}

const (
	readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	writable = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	device   = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// root writes the steps that make the container's tree and leave the host's behind.
func root(p *plan.Plan, spec sandbox.Spec, site Site) error {
	entries, err := tree(spec, site)
	if err != nil {
		return err
	}
	none := plan.Int(0)
	p.Call(Mounts, unix.SYS_MOUNT, none, plan.Text("/"), none, plan.Int(unix.MS_REC|unix.MS_PRIVATE), none)
	p.Call(Root, unix.SYS_MOUNT, plan.Text("root"), plan.Text(site.MountPoint), plan.Text("tmpfs"),
		plan.Int(unix.MS_NOSUID|unix.MS_NODEV), plan.Text("size=1m,nr_inodes=1k,mode=0755"))
	p.Call(Root, unix.SYS_CHDIR, plan.Text(site.MountPoint))
	b := &builder{plan: p, made: map[string]bool{"/": true}}
	for _, e := range entries {
		if link := b.beneathLink(e.path); link != "" {
			return fmt.Errorf("bind or scratch %q lies beneath the link %q: name the folder that it points to", e.path, link)
		}
		b.add(e)
	}
	p.Call(Root, unix.SYS_PIVOT_ROOT, plan.Text("."), plan.Text("."))
	p.Call(Root, unix.SYS_UMOUNT2, plan.Text("."), plan.Int(unix.MNT_DETACH))
	p.Call(Root, unix.SYS_CHDIR, plan.Text("/"))
	setattr(p, Root, "/", readOnly, false)
	return nil
}

// tree lists what the container sees, parents first; what the Spec binds comes
// before the driver's own idea of a path.
func tree(spec sandbox.Spec, site Site) ([]entry, error) {
	byPath := map[string]entry{}
	for _, e := range slices.Concat(devices(), accounts(site.User), resolver(spec.Network), []entry{{path: "/proc", proc: !site.NoProc}}) {
		byPath[e.path] = e
	}
	for _, m := range spec.Scratch {
		byPath[m.Target] = entry{path: m.Target, scratch: m.Bytes}
	}
	for _, b := range spec.Binds {
		e, found, err := bind(b)
		if err != nil {
			return nil, err
		}
		if found {
			byPath[e.path] = e
		}
	}
	entries := make([]entry, 0, len(byPath))
	for _, e := range byPath {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return entries, nil
}

func bind(b sandbox.Bind) (entry, bool, error) {
	info, err := os.Lstat(b.Source)
	if b.Optional && os.IsNotExist(err) {
		return entry{}, false, nil
	}
	if err != nil {
		return entry{}, false, fmt.Errorf("bind: %w", err)
	}
	e := entry{path: b.Inside(), attrs: readOnly}
	if info.Mode()&fs.ModeSymlink != 0 {
		e.link, err = os.Readlink(b.Source)
		return e, true, err
	}
	e.bind, e.folder = b.Source, info.IsDir()
	if b.Writable {
		e.attrs = writable
	}
	return e, true, nil
}

func devices() []entry {
	var all []entry
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		all = append(all, entry{path: "/dev/" + name, bind: "/dev/" + name, attrs: device})
	}
	return append(all,
		entry{path: "/dev/fd", link: "/proc/self/fd"},
		entry{path: "/dev/stdin", link: "/proc/self/fd/0"},
		entry{path: "/dev/stdout", link: "/proc/self/fd/1"},
		entry{path: "/dev/stderr", link: "/proc/self/fd/2"})
}

// accounts are the few files in /etc that programs look names up in.
func accounts(u sandbox.User) []entry {
	file := func(path, content string) entry { return entry{path: path, content: &content} }
	return []entry{
		file("/etc/passwd", fmt.Sprintf("root:x:0:0:root:/:/usr/sbin/nologin\nuser:x:%d:%d:user:/tmp:/bin/sh\n", u.UID, u.GID)),
		file("/etc/group", fmt.Sprintf("root:x:0:\nuser:x:%d:\n", u.GID)),
		file("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
		file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
	}
}

// resolver is how names are looked up on the host's network.
func resolver(n sandbox.Network) []entry {
	if n != sandbox.NetworkHost {
		return nil
	}
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	content := string(text)
	return []entry{{path: "/etc/resolv.conf", content: &content}}
}

// builder writes the steps of entries, in a working folder that is the new root.
type builder struct {
	plan  *plan.Plan
	made  map[string]bool
	bound []string // folders that belong to the host: nothing is made in them
	links []string
}

func (b *builder) add(e entry) {
	here := plan.Text("." + e.path)
	none := plan.Int(0)
	b.folders(path.Dir(e.path))
	switch {
	case e.link != "":
		b.plan.Call(Root, unix.SYS_SYMLINK, plan.Text(e.link), here)
		b.links = append(b.links, e.path)
	case e.content != nil:
		b.file(e)
	case e.proc:
		b.folders(e.path)
		b.plan.Call(Proc, unix.SYS_MOUNT, plan.Text("proc"), here, plan.Text("proc"),
			plan.Int(unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC), none)
	case e.scratch > 0:
		b.folders(e.path)
		b.plan.Call(Root, unix.SYS_MOUNT, plan.Text("scratch"), here, plan.Text("tmpfs"),
			plan.Int(unix.MS_NOSUID|unix.MS_NODEV), plan.Text(scratchOptions(e.scratch)))
	case e.bind != "":
		b.target(e)
		b.plan.Call(Root, unix.SYS_MOUNT, plan.Text(e.bind), here, none, plan.Int(unix.MS_BIND|unix.MS_REC), none)
		setattr(b.plan, Root, "."+e.path, e.attrs, true)
		b.bound = append(b.bound, e.path)
	default:
		b.folders(e.path)
	}
}

// scratchOptions also bounds the number of files, which cost kernel memory that no
// size counts.
func scratchOptions(bytes int64) string {
	return fmt.Sprintf("size=%d,nr_inodes=%d,mode=1777", bytes, bytes/4096+1024)
}

// target makes what a bind is put upon.
func (b *builder) target(e entry) {
	if e.folder {
		b.folders(e.path)
	} else if !b.inBound(e.path) {
		b.plan.Call(Root, unix.SYS_MKNOD, plan.Text("."+e.path), plan.Int(unix.S_IFREG|0o644), plan.Int(0))
	}
}

func (b *builder) file(e entry) {
	fd := b.plan.Call(Root, unix.SYS_OPEN, plan.Text("."+e.path), plan.Int(unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC), plan.Int(0o644))
	content := []byte(*e.content)
	b.plan.Call(Root, unix.SYS_WRITE, plan.Answer(fd), plan.Bytes(content), plan.Int(len(content)))
	b.plan.Call(Root, unix.SYS_CLOSE, plan.Answer(fd))
}

func (b *builder) folders(dir string) {
	if b.made[dir] || b.inBound(dir) {
		return
	}
	b.folders(path.Dir(dir))
	b.made[dir] = true
	b.plan.Call(Root, unix.SYS_MKDIR, plan.Text("."+dir), plan.Int(0o755))
}

func (b *builder) inBound(dir string) bool { return beneath(b.bound, dir) != "" }

func (b *builder) beneathLink(dir string) string { return beneath(b.links, path.Dir(dir)) }

// beneath is the folder that holds dir or is it, or "".
func beneath(folders []string, dir string) string {
	for _, folder := range folders {
		if dir == folder || strings.HasPrefix(dir, folder+"/") {
			return folder
		}
	}
	return ""
}

// setattr uses mount_setattr (Linux 5.12), which alone reaches mounts below a bind.
func setattr(p *plan.Plan, wall, path string, attrs uint64, recursive bool) {
	attr := words64(attrs, 0, 0, 0) // struct mount_attr: set, clear, propagation, userns
	flags := 0
	if recursive {
		flags = unix.AT_RECURSIVE
	}
	cwd := unix.AT_FDCWD
	p.Call(wall, unix.SYS_MOUNT_SETATTR, plan.Int(cwd), plan.Text(path), plan.Int(flags), plan.Bytes(attr), plan.Int(len(attr)))
}
