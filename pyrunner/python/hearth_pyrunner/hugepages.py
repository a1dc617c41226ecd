"""Memory that is cheap to fork: a fork copies what maps a process's pages, entry by
entry, and one entry for 2 MiB costs less than 512 of them."""

from __future__ import annotations

import contextlib
import ctypes
import struct
import sys
from typing import Dict, Iterator, Tuple

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

_RAW, _MEMORY, _OBJECTS = 0, 1, 2  # PyMemAllocatorDomain


class _Allocator(ctypes.Structure):
    """PyMemAllocatorEx."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


@contextlib.contextmanager
def gathered() -> Iterator[None]:
    """Have what the body makes lie in one piece, which huge pages can hold: in the C
    library's heap. The interpreter's own arenas, of 1 MiB, lie between the libraries that
    an import maps. Which of both memory belongs to is told by its address when it is
    given back: the interpreter leaves whatever is over 512 bytes to the C library at all
    times."""
    usual = {domain: _allocator(domain) for domain in (_RAW, _MEMORY, _OBJECTS)}
    if not _plain(usual):
        yield
        return
    raw = usual.pop(_RAW)
    for domain, own in usual.items():
        _allocate(domain, _Allocator(None, raw.malloc, raw.calloc, own.realloc, own.free))
    try:
        yield
    finally:
        for domain, own in usual.items():
            _allocate(domain, own)


def _plain(allocators: Dict[int, _Allocator]) -> bool:
    """Say whether the allocators are those that an interpreter has without any flag:
    one that is built without its global lock has others, and hooks (for debugging, for
    tracing) have a context and want to see all or nothing."""
    return sys.implementation.name == "cpython" and not sys.abiflags and not any(a.context for a in allocators.values())


def _allocator(domain: int) -> _Allocator:
    found = _Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(found))
    return found


def _allocate(domain: int, allocator: _Allocator) -> None:
    ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(allocator))


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
