# argv: "make" or "find". System V shared memory under one key; files under one name.
def shmget(flags):
    return call(29, 4711, 4096, flags)


if sys.argv[1] == "make":
    shmget(0o1666)
    open("/tmp/mine", "w").close(), open("/dev/shm/mine", "w").close()
    print("ready", flush=True)
    sys.stdin.read()
refused("shared memory of another container", lambda: shmget(0o666), errno.ENOENT)
refused("its scratch", lambda: os.stat("/tmp/mine"), errno.ENOENT)
refused("its shared memory files", lambda: os.stat("/dev/shm/mine"), errno.ENOENT)
verdict()
