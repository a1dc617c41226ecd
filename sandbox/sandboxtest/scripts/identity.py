status = dict(line.split(":", 1) for line in open("/proc/self/status"))
holds("uid 0", 0 not in os.getresuid() and 0 not in os.getresgid())
holds("supplementary groups %s" % os.getgroups(), sys.argv[1] != "own-user" or not os.getgroups())
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    holds(name + status[name], int(status[name], 16) == 0)
holds("no_new_privs", status["NoNewPrivs"].strip() == "1")
holds("seccomp", status["Seccomp"].strip() == "2")
refused("setuid(0)", lambda: os.setuid(0), errno.EPERM, errno.EINVAL)
refused("setgid(0)", lambda: os.setgid(0), errno.EPERM, errno.EINVAL)
refused("setgroups", lambda: os.setgroups([0]), errno.EPERM, errno.EINVAL)
import resource
holds("core files", resource.getrlimit(resource.RLIMIT_CORE) == (1, 1))
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
    broken.append("raised the descriptor limit")
except (ValueError, OSError):
    pass
verdict()
