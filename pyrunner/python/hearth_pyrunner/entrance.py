"""How a process that a zygote has just forked enters a container: it takes the
descriptors that it was given, closes all others, makes the system calls that put up the
walls, and waits for its beginning. Package process of the sandbox states the contract
(Entry)."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import List, Mapping, Optional, Tuple

from . import descriptors, executor, message, reseed, surroundings

# Standard streams, then the executor's own two.
CONTROL, LISTENER = 3, 4

_MAP = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_MAP_FIXED = 0x10

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_long)


class Door:
    """The driver's code that makes the calls of a plan, mapped before the fork."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """variables are those that entrants have besides their own."""
        self.variables = variables
        self._code: Tuple[bytes, int] = (b"", 0)
        self._apply = _FUNCTION()

    def prepare(self, fields: List[message.Bytes]) -> None:
        """Map the code of an Enter, if it is not there yet."""
        code, entry = bytes(fields[2]), message.number(fields[3])
        if (code, entry) == self._code:
            return
        at = _libc.mmap(None, len(code), mmap.PROT_READ | mmap.PROT_WRITE, _MAP, -1, 0)
        ctypes.memmove(at, code, len(code))
        _libc.mprotect(at, len(code), mmap.PROT_READ | mmap.PROT_EXEC)
        self._code, self._apply = (code, entry), _FUNCTION(at + entry)

    def entrant(self, fields: List[message.Bytes], files: List[int]) -> "Entrant":
        """Return what the forked process is."""
        return Entrant(self, fields, files)

    def pass_through(self, steps: bytes, address: int) -> None:
        """Make the calls. One that fails is told by the code, which ends the process."""
        _libc.mmap(address, len(steps), mmap.PROT_READ | mmap.PROT_WRITE, _MAP | _MAP_FIXED, -1, 0)
        ctypes.memmove(address, steps, len(steps))
        self._apply()
        _libc.munmap(address, len(steps))  # it names folders of the host


class Entrant:
    """A forked process on its way to be a container's executor."""

    def __init__(self, door: Door, fields: List[message.Bytes], files: List[int]) -> None:
        self._door, self._files = door, files
        self._steps = bytes(fields[0])
        self._address, self._first_control, self._limit = (message.number(fields[n]) for n in (1, 4, 5))

    def run(self) -> Optional["Entrant"]:
        """Enter and serve until the worker goes. Never returns."""
        try:
            begin = self._place()
            self._door.pass_through(self._steps, self._address)
            os.closerange(self._first_control, begin)
            self._begin(begin)
            executor.serve(CONTROL, LISTENER, self._limit)
        except SystemExit:
            os._exit(0)  # the worker is gone
        except BaseException:
            sys.excepthook(*sys.exc_info())
        os._exit(1)

    def _place(self) -> int:
        """Make the descriptors 0, 1, 2, … in their order, and close all others. Return
        the last, over which the beginning comes."""
        files = self._files
        if any(fd <= target for target, fd in enumerate(files)):  # one would hit a later one
            files = [descriptors.raise_high(fd) for fd in files]
        for target, fd in enumerate(files):
            os.dup2(fd, target, inheritable=target < CONTROL)
        os.closerange(len(files), 1 << 30)
        return len(files) - 1

    def _begin(self, begin: int) -> None:
        """Wait to be known to the worker; until then we end with the zygote's process
        group. The environment comes only now, and comes past the zygote."""
        pieces = []
        while True:
            piece = os.read(begin, 64 << 10)
            if not piece:
                break
            pieces.append(piece)
        os.close(begin)
        if not pieces:
            os._exit(0)  # the worker has given us up
        kind, variables = message.unpack(b"".join(pieces))
        if kind != message.BEGIN:
            raise message.Malformed(f"the beginning is of kind {kind}")
        os.setsid()
        surroundings.take_environment(variables)
        for name, value in self._door.variables.items():
            os.environ.setdefault(name, value)
        reseed.reseed()
