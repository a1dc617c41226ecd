# argv: a process of the host, owned by the test.
host = int(sys.argv[1])
seen = sorted(int(n) for n in os.listdir("/proc") if n.isdigit())
holds("sees processes %s" % seen, len(seen) <= 2)
refused("signal a host process", lambda: os.kill(host, signal.SIGKILL), errno.ESRCH, errno.EPERM)
refused("find a host process", lambda: os.stat("/proc/%d" % host) if host > 100 else os.kill(host, 0))
try:
    os.kill(-1, signal.SIGKILL)  # everything that this process may signal, itself excepted
except OSError:
    pass
os.kill(1, signal.SIGTERM)
refused("trace pid 1", lambda: call(101, 16, 1, 0, 0), errno.EPERM)
iov = (ctypes.c_char * 16)()
refused("read pid 1's memory", lambda: call(310, 1, iov, 1, iov, 1, 0), errno.EPERM)
refused("trace itself", lambda: call(101, 0, 0, 0, 0), errno.EPERM)
refused("write pid 1's memory", lambda: open("/proc/1/mem", "r+b").write(b"x"))
verdict()
