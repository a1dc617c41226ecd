"""Memory that is cheap to fork: a fork copies what maps a process's pages, entry by
entry, and one entry for 2 MiB costs less than 512 of them."""

from __future__ import annotations

import ctypes
import struct
from typing import Iterator, Tuple

_HUGE = 2 << 20
_PAGE = 4096
_PAGES = _HUGE // _PAGE
_MADV_COLLAPSE = 25
_PRESENT, _EXCLUSIVE = 1 << 63, 1 << 56  # of an entry in /proc/self/pagemap
# A chunk is collapsed where this many of its pages are there and nobody else's: what is
# shared with the template that this one grew from stays shared.
_ENOUGH = _PAGES * 3 // 4

_libc = ctypes.CDLL(None, use_errno=True)
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def collapse() -> int:
    """Put memory of this process alone into huge pages where it nearly fills them, and
    return how many that were. Where the kernel does not know how (before 6.1), or has
    none to give, memory stays as it is."""
    collapsed = 0
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
        for start, end in list(_anonymous()):
            for chunk in range(-(-start // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
                pagemap.seek(chunk // _PAGE * 8)
                entries = struct.unpack(f"={_PAGES}Q", pagemap.read(_PAGES * 8))
                own = sum(1 for e in entries if e & _PRESENT and e & _EXCLUSIVE)
                if own >= _ENOUGH and _libc.madvise(chunk, _HUGE, _MADV_COLLAPSE) == 0:
                    collapsed += 1
    return collapsed


def _anonymous() -> Iterator[Tuple[int, int]]:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            addresses, permissions, _, _, inode, *_ = line.split()
            if permissions == "rw-p" and inode == "0":
                start, end = addresses.split("-")
                yield int(start, 16), int(end, 16)
