# argv: the path of a secret on the host, the home of the owning user, the names that
# may stand in the root folder.
secret, home, visible = sys.argv[1], sys.argv[2], set(sys.argv[3].split(","))

refused("read /etc/shadow", lambda: open("/etc/shadow").read())
refused("read the host's secret", lambda: open(secret).read())
refused("read it through pid 1's root", lambda: open("/proc/1/root" + secret).read())
refused("read pid 1's environment", lambda: open("/proc/1/environ").read())
refused("read pid 1's memory", lambda: open("/proc/1/mem", "rb").read(1))
refused("read kernel memory", lambda: open("/proc/kcore", "rb").read(1))
refused("list pid 1's descriptors", lambda: os.listdir("/proc/1/fd"))
for path in ("/home", "/var", "/run", "/srv", "/opt", "/boot", "/mnt", "/sys", "/etc/ssh", "/etc/ssl/private", "/dev/kmsg", "/dev/mem", "/dev/vda", "/dev/pts", "/dev/ptmx"):
    if path.split("/")[1] not in visible:
        refused("see " + path, lambda: os.stat(path))
    elif path.count("/") > 1:
        refused("see " + path, lambda: os.stat(path))
for name in (".ssh", ".bashrc", ".profile", ".cache", ".config"):
    refused("see ~/" + name, lambda: os.stat(os.path.join(home, name)))
holds("the root folder shows %s" % sorted(set(os.listdir("/")) - visible), set(os.listdir("/")) <= visible)
for path in ("/x", "/usr/x", "/etc/x", "/dev/x", "/proc/sys/kernel/hostname", "/proc/self/uid_map", "/etc/passwd"):
    refused("write " + path, lambda: open(path, "w"), errno.EROFS, errno.EACCES, errno.EPERM)
refused("climb out with ..", lambda: os.stat("/.." * 40 + secret))
refused("make a device", lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(254, 0)))
os.makedirs("/tmp/own"), open("/tmp/own/file", "w").write("scratch is writable")
verdict()
