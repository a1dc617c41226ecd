"""What a process may leave behind, and how it is found and ended."""

from __future__ import annotations

import os
import signal
from typing import AbstractSet, List

try:
    import ctypes

    _libc = ctypes.CDLL(None, use_errno=True)
except (ImportError, OSError):  # an interpreter without libffi: the Go side ends what is left
    _libc = None  # type: ignore[assignment]

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_NAMED = 16  # how many ended processes are named


def adopt_orphans() -> None:
    """Become the parent of every orphan among our descendants, so that a process
    without children has no descendants at all. Not inherited by a fork."""
    if _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int) -> None:
    """Be killed when the parent ends. The kernel watches the thread that forked us:
    right only below a parent that forks from its one thread."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def set_dumpable() -> None:
    """Have /proc/self belong to whom we run as, as after an execve."""
    if _libc is not None:
        _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def flush_c_streams() -> None:
    """Write out what C code has printed."""
    if _libc is not None:
        _libc.fflush(_c_stdout)
        _libc.fflush(_c_stderr)


if _libc is not None:
    try:
        _c_stdout = ctypes.c_void_p.in_dll(_libc, "stdout")
        _c_stderr = ctypes.c_void_p.in_dll(_libc, "stderr")
    except ValueError:  # a C library that spells its streams otherwise
        _c_stdout = _c_stderr = ctypes.c_void_p()  # fflush(NULL): all of them


def threads() -> int:
    """Count the live threads of this process, those of C libraries included."""
    return len(os.listdir("/proc/self/task"))


def has_children() -> bool:
    """Say whether a child is left, running or not reaped. One system call."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end_children(spared: AbstractSet[int] = frozenset()) -> List[str]:
    """Kill and reap every child but the spared, and what falls to us when they die,
    until none is left. Return the first of them as "pid name"."""
    ended: List[str] = []
    while True:
        found = [pid for pid in _children() if pid not in spared]
        if not found:
            return ended
        for pid in found:
            name = _name(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            if len(ended) < _NAMED:
                ended.append(f"{pid} {name}")
        for pid in found:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass  # a thread of the function has reaped it


def _children() -> List[int]:
    found: List[int] = []
    try:
        for task in os.listdir("/proc/self/task"):
            try:
                with open(f"/proc/self/task/{task}/children", "rb") as listing:
                    found += map(int, listing.read().split())
            except ProcessLookupError:
                pass  # the thread has ended
    except FileNotFoundError:
        if os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
            return _children()  # a thread ended while we looked
        return _children_by_walk()
    return found


def _children_by_walk() -> List[int]:
    """The same on a kernel without the children files."""
    found = []
    us = str(os.getpid())
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                    if stat.read().rpartition(")")[2].split()[1] == us:
                        found.append(int(entry))
            except OSError:
                pass
    return found


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            return comm.read().strip()
    except OSError:
        return "?"
