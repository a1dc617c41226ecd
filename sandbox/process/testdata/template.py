# A template as the driver's tests need one: it reads entries from the unix socket that
# is descriptor 3, forks a child into a new pid namespace for each, and sends the
# child's pidfd back. The child applies the entry's plan and runs the code given to it.
import array, base64, ctypes, errno, json, mmap, os, resource, signal, socket, struct, subprocess, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
CLONE_NEWPID = 0x20000000
home = os.open("/proc/self/ns/pid", os.O_RDONLY)
control = socket.socket(fileno=3)


libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def apply(entry, steps):
    anonymous, private, fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.MAP_PRIVATE, 0x10
    code = base64.b64decode(entry["code"])
    libc.mmap(entry["steps_address"], entry["steps_bytes"], mmap.PROT_READ | mmap.PROT_WRITE, private | fixed, steps, 0)
    at = libc.mmap(None, len(code), mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC, anonymous, -1, 0)
    ctypes.memmove(at, code, len(code))
    return ctypes.CFUNCTYPE(ctypes.c_long)(at + entry["code_entry"])()


def child(entry, files):
    high = [os.dup2(fd, 500 + i) for i, fd in enumerate(files)]
    numbers = [os.dup2(fd, 3 + i) for i, fd in enumerate(high)]
    apply(entry, numbers[-1])
    os.closerange(entry["extra"], 1024)
    sys.argv = ["template"] + (entry["argv"] or [])
    exec(compile(entry["source"], "entry", "exec"), {"__name__": "__main__", "sys": sys})
    os._exit(0)


while True:
    data, ancillary, _, _ = control.recvmsg(1 << 20, socket.CMSG_SPACE(4 * 64))
    if not data:
        break
    files = array.array("i")
    for _, _, body in ancillary:
        files.frombytes(body[: len(body) - len(body) % files.itemsize])
    entry = json.loads(data)
    libc.unshare(CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        child(entry, list(files))
    libc.setns(home, CLONE_NEWPID)
    for fd in files:
        os.close(fd)
    pidfd = os.pidfd_open(pid)
    socket.send_fds(control, [b"p"], [pidfd])
    os.close(pidfd)
    os.waitpid(pid, 0)
