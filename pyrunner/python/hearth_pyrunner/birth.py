"""How a process makes another one: a child of its own, or a sibling, which is a child
of its parent, is reaped there, and outlives it."""

from __future__ import annotations

import errno
import os
import signal

try:
    import ctypes

    # Holding the interpreter's lock, as os.fork does.
    _libc = ctypes.PyDLL(None, use_errno=True)
    _libc.syscall.restype = ctypes.c_long
    _libc.syscall.argtypes = [ctypes.c_long] * 6
    _before, _in_parent, _in_child = (
        getattr(ctypes.pythonapi, name) for name in ("PyOS_BeforeFork", "PyOS_AfterFork_Parent", "PyOS_AfterFork_Child")
    )
    for _step in (_before, _in_parent, _in_child):
        _step.restype = None
except (ImportError, OSError):  # an interpreter without libffi
    _libc = None  # type: ignore[assignment]

CHILD = 0
SIBLING = 1
# A sibling that is the first process of a pid namespace of its own.
FIRST = 2

_CLONE_PARENT = 0x00008000
_CLONE_NEWPID = 0x20000000
_CLONE_CHILD_CLEARTID = 0x00200000
_CLONE_CHILD_SETTID = 0x01000000
_PR_GET_TID_ADDRESS = 40
_SYS_CLONE = 56 if os.uname().machine == "x86_64" else None


def _tid_address() -> int:
    """Return where the C library keeps this thread's number, 0 if that cannot be had."""
    address = ctypes.c_long(0)
    return address.value if _libc.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) == 0 else 0


def fork(kin: int) -> int:
    """os.fork of a process that has one thread, which says whose the new one is."""
    return os.fork() if kin == CHILD else _fork_sibling(_CLONE_NEWPID if kin == FIRST else 0)


def _fork_sibling(more: int) -> int:
    """os.fork with CLONE_PARENT: what it does around the system call, and what the C
    library's fork asks of the call, with the same calls."""
    if _SYS_CLONE is None or _libc is None:
        raise OSError(errno.ENOSYS, "siblings need x86_64 and ctypes")
    flags, tid = _CLONE_PARENT | more | signal.SIGCHLD, _tid_address()
    if tid:
        flags |= _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID
    _before()
    pid: int = _libc.syscall(_SYS_CLONE, flags, 0, 0, tid, 0)
    failure = ctypes.get_errno()
    if pid == 0:
        _in_child()
        return 0
    _in_parent()
    if pid < 0:
        raise OSError(failure, os.strerror(failure))
    return pid
