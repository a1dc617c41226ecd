"""Descriptor hygiene: our own descriptors lie high, are not inherited, and are known
by what they refer to, not by their number alone."""

from __future__ import annotations

import fcntl
import os
import resource
from typing import Iterable, List, Tuple

Identity = Tuple[int, int]


def raise_high(fd: int) -> int:
    """Move a descriptor to where neither careless code nor a table of 256 meets it."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        soft = 1024
    base = max(24, min(soft - 32, 900))
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, base)
    os.close(fd)
    return high


def duplicate_high(fd: int) -> int:
    """Return a high, uninherited copy of a descriptor."""
    return raise_high(os.dup(fd))


def close_all_but(kept: Iterable[int]) -> None:
    """Close what was inherited by accident, from 3 up."""
    known = set(kept)
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in known:
            try:
                os.close(fd)
            except OSError:
                pass  # the descriptor of the listing itself


def identity(fd: int) -> Identity:
    """Return what the descriptor refers to: inode and device."""
    return os.fstat(fd)[1:3]


def same(fd: int, expected: Identity) -> bool:
    """Say whether the descriptor is open and still refers to the same thing."""
    try:
        return os.fstat(fd)[1:3] == expected
    except OSError:
        return False


def listing(ours: Iterable[int]) -> List[str]:
    """Name every open descriptor from 3 up that is not ours: "5 socket:[123]"."""
    known = set(ours)
    found = []
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd < 3 or fd in known:
            continue
        try:
            found.append((fd, os.readlink(f"/proc/self/fd/{fd}")))
        except OSError:
            pass  # the descriptor of the listing itself
    return [f"{fd} {target}" for fd, target in sorted(found)]
