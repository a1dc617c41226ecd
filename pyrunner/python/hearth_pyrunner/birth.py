"""How a process makes another one: a child of its own, or a sibling, which is a child
of its parent, is reaped there, and outlives it."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from typing import Any, Callable, List

try:
    import ctypes

    # Holding the interpreter's lock, as os.fork does.
    _libc = ctypes.PyDLL(None, use_errno=True)
    _libc.syscall.restype = ctypes.c_long
    _libc.syscall.argtypes = [ctypes.c_long] * 6
except (ImportError, OSError):  # an interpreter without libffi
    _libc = None  # type: ignore[assignment]

CHILD = 0
SIBLING = 1
FIRST = 2  # a sibling that is the first process of a pid namespace

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


class Forks:
    """Forks of a process that has one thread. What the interpreter and its library do
    after a fork for the sake of other threads is left out: it touches two hundred pages.
    What modules have registered since the beginning is done (os.register_at_fork)."""

    def __init__(self) -> None:
        self._before: List[Callable[[], Any]] = []
        self._in_child: List[Callable[[], Any]] = []
        self._in_parent: List[Callable[[], Any]] = []
        self._register = os.register_at_fork
        self._main = threading.main_thread()

    def begin(self) -> None:
        """Take note of what modules register from now on."""
        os.register_at_fork = self._note  # type: ignore[assignment]

    def _note(self, **steps: Callable[[], Any]) -> None:
        self._register(**steps)
        if "before" in steps:
            self._before.insert(0, steps["before"])
        if "after_in_child" in steps:
            self._in_child.append(steps["after_in_child"])
        if "after_in_parent" in steps:
            self._in_parent.append(steps["after_in_parent"])

    def fork(self, kin: int) -> int:
        """Return the new process's number, and 0 in it. Raises OSError."""
        if _libc is None and kin == CHILD:
            return os.fork()
        _do(self._before)
        pid: int = _libc.fork() if kin == CHILD else _clone(_CLONE_NEWPID if kin == FIRST else 0)
        if pid == 0:
            self._main._native_id = 1 if kin == FIRST else os.getpid()  # type: ignore[attr-defined]
        _do(self._in_child if pid == 0 else self._in_parent)
        if pid < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return pid


def _do(steps: List[Callable[[], Any]]) -> None:
    for step in steps:
        try:
            step()
        except BaseException:  # told, as os.fork does, which goes on
            sys.excepthook(*sys.exc_info())


def _clone(more: int) -> int:
    """Make the system call of the C library's fork, with CLONE_PARENT and more."""
    if _SYS_CLONE is None or _libc is None:
        raise OSError(errno.ENOSYS, "siblings need x86_64 and ctypes")
    tid = _tid_address()
    flags = _CLONE_PARENT | more | signal.SIGCHLD
    if tid:
        flags |= _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID
    pid: int = _libc.syscall(_SYS_CLONE, flags, 0, 0, tid, 0)
    return pid
