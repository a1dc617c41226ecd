"""How a process that a zygote has just forked enters a container: it makes the system
calls that bring its descriptors into place and put up the walls, and waits for its
beginning. Package process of the sandbox states the contract (Entry)."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import sys
from typing import List, Mapping, Optional, Tuple

from . import birth, descriptors, executor, hugepages, message, reseed, surroundings

# After the standard streams.
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
    """What is the same for all who enter, made before they are forked: whatever a child
    does first costs it the copy of a page."""

    def __init__(self, forks: birth.Forks, variables: Mapping[str, str]) -> None:
        """variables are those that entrants have besides their own."""
        self._forks = forks
        self.variables = variables
        self.executor: Optional[executor.Executor] = None
        self._limit = 0
        self._code: Tuple[bytes, int] = (b"", 0)
        self._apply = _FUNCTION()

    def fork(self, fields: List[message.Bytes], files: List[int]) -> int:
        """Fork for an Enter; see template.Door."""
        address, size, entry, begin, limit = (message.number(fields[n]) for n in (0, 1, 3, 4, 5))
        if self.executor is None or limit != self._limit:
            self.executor, self._limit = executor.Executor(limit), limit
        self._map(bytes(fields[2]), entry)
        entrant = Entrant(self, files, address, size, begin)
        pid = self._forks.fork(birth.FIRST)
        if pid == 0:
            entrant.run()
        return pid

    def settle(self) -> None:
        """Make memory cheap to fork."""
        hugepages.collapse()

    def forked(self) -> None:
        """Give the next one random numbers of its own."""
        reseed.reseed()

    def _map(self, code: bytes, entry: int) -> None:
        """Map the code, if it is not there yet."""
        if (code, entry) == self._code:
            return
        at = _libc.mmap(None, len(code), mmap.PROT_READ | mmap.PROT_WRITE, _MAP, -1, 0)
        ctypes.memmove(at, code, len(code))
        _libc.mprotect(at, len(code), mmap.PROT_READ | mmap.PROT_EXEC)
        self._code, self._apply = (code, entry), _FUNCTION(at + entry)

    def pass_through(self, steps: int, address: int, size: int) -> None:
        """Make the calls. One that fails is told by the code, which ends the process."""
        _libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _MAP_FIXED, steps, 0)
        self._apply()
        _libc.munmap(address, size)  # it names folders of the host


class Entrant:
    """A forked process on its way to be a container's executor."""

    def __init__(self, door: Door, files: List[int], address: int, size: int, begin: int) -> None:
        self._door, self._files, self._address, self._size, self._begin = door, files, address, size, begin
        # Where they usually are: the zygote has nothing else so low.
        self._placed = files == list(range(3, 3 + len(files)))

    def run(self) -> None:
        """Enter and serve until the worker goes. Never returns."""
        try:
            gc.enable()
            if not self._placed:
                self._place()
            self._door.pass_through(self._files[-1], self._address, self._size)
            self._wait()
            assert self._door.executor is not None
            self._door.executor.serve(CONTROL, LISTENER)
        except SystemExit:
            os._exit(0)  # the worker is gone
        except BaseException:
            sys.excepthook(*sys.exc_info())
        os._exit(1)

    def _place(self) -> None:
        """Bring the files to where the steps look for them."""
        high = [descriptors.raise_high(fd) for fd in self._files]
        self._files = [os.dup2(fd, target) for target, fd in enumerate(high, 3)]

    def _wait(self) -> None:
        """Wait to be known to the worker; until then we end with the zygote's process
        group. The environment comes only now, and comes past the zygote."""
        told = b""
        while True:
            piece = os.read(self._begin, 4 << 10)
            if not piece:
                break
            told += piece
        os.close(self._begin)
        if not told:
            os._exit(0)  # the worker has given us up
        kind, variables = message.unpack(told)
        if kind != message.BEGIN:
            raise message.Malformed(f"the beginning is of kind {kind}")
        os.setsid()
        if self._door.variables:
            names = {bytes(variable).partition(b"=")[0] for variable in variables}
            for name, value in self._door.variables.items():
                if os.fsencode(name) not in names:
                    variables.append(os.fsencode(f"{name}={value}"))
        surroundings.take_environment(variables)
