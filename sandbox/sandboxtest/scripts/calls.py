NS = {"mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}
buf = ctypes.create_string_buffer(4096)
denied = {
    "mount": (165, b"none", b"/tmp", b"tmpfs", 0, 0), "umount2": (166, b"/tmp", 2), "pivot_root": (155, b"/tmp", b"/tmp"),
    "chroot": (161, b"/tmp"), "open_tree": (428, -100, b"/tmp", 1), "move_mount": (429, -100, b"/tmp", -100, b"/tmp", 0),
    "fsopen": (430, b"tmpfs", 0), "fsmount": (432, 0, 0, 0), "fspick": (433, -100, b"/tmp", 0), "mount_setattr": (442, -100, b"/tmp", 0, buf, 32),
    "swapon": (167, b"/tmp/x", 0), "ptrace": (101, 0, 0, 0, 0), "process_vm_readv": (310, 1, buf, 1, buf, 1, 0),
    "process_vm_writev": (311, 1, buf, 1, buf, 1, 0), "pidfd_getfd": (438, 0, 0, 0), "kcmp": (312, 1, 1, 0, 0, 0),
    "keyctl": (250, 0, -3, 0), "add_key": (248, b"user", b"k", b"v", 1, -3), "request_key": (249, b"user", b"k", 0, -3),
    "bpf": (321, 0, buf, 32), "perf_event_open": (298, buf, 0, -1, -1, 0), "userfaultfd": (323, 1), "fanotify_init": (300, 0, 0),
    "memfd_secret": (447, 0), "init_module": (175, buf, 16, b""), "finit_module": (313, 0, b"", 0), "delete_module": (176, b"x", 0),
    "kexec_load": (246, 0, 0, 0, 0), "kexec_file_load": (320, -1, -1, 0, 0, 0), "reboot": (169, 0xfee1dead, 672274793, 0, 0),
    "settimeofday": (164, buf, 0), "clock_settime": (227, 0, buf), "adjtimex": (159, buf), "iopl": (172, 3), "ioperm": (173, 0, 8, 1),
    "acct": (163, 0), "syslog": (103, 3, buf, 16), "sethostname": (170, b"x", 1), "name_to_handle_at": (303, -100, b"/tmp", buf, buf, 0),
    "open_by_handle_at": (304, -1, buf, 0), "personality": (135, 0x40000), "modify_ldt": (154, 0, buf, 16), "quotactl": (179, 0, 0, 0, 0),
    "move_pages": (279, 1, 0, 0, 0, 0, 0), "setns": (308, 0, 0), "TIOCSTI": (16, 0, 0x5412, buf),
}
for name, (number, *args) in denied.items():
    refused_apart(name, lambda: call(number, *args), errno.EPERM)
for name, flag in NS.items():
    refused_apart("unshare " + name, lambda: call(272, flag), errno.EPERM)

    def cloned():
        pid = call(56, flag | 17, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        return pid
    refused_apart("clone " + name, cloned, errno.EPERM)
refused_apart("clone3", lambda: call(435, buf, 88), errno.ENOSYS)
for name, number in (("io_uring_setup", 425), ("io_uring_enter", 426), ("io_uring_register", 427)):
    refused_apart(name, lambda: call(number, 4, buf, 0), errno.ENOSYS)
refused_apart("an x32 call", lambda: call(0x40000000 + 39), errno.ENOSYS)
for family in (3, 15, 16, 17, 29, 31, 38, 40):  # ax25, key, netlink, packet, can, bluetooth, alg, vsock
    refused_apart("socket family %d" % family, lambda: socket.socket(family, socket.SOCK_RAW), errno.EAFNOSUPPORT)

# A call by the i386 convention (int 0x80) ends the process: its numbers mean other calls.
import mmap
pid = os.fork()
if pid == 0:
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    os._exit(0)
status = os.waitpid(pid, 0)[1]
holds("an i386 call was served", os.WIFSIGNALED(status))
import threading  # threads, subprocesses and sockets go on working
t = threading.Thread(target=lambda: None)
t.start(), t.join()
import subprocess
holds("subprocess", subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode == 3)
a, b = socket.socketpair()
verdict()
