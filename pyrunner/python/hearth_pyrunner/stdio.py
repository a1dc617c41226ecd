"""Standard streams of a child: what anybody writes to descriptor 1 or 2 is captured
there, and the streams are put right again after each call."""

from __future__ import annotations

import io
import os
import sys
from typing import List, TextIO, Tuple

from . import descriptors, process


def _open(fd: int) -> TextIO:
    """A line-buffered stream that takes any text and does not own its descriptor."""
    raw = io.FileIO(fd, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)


class Streams:
    """Descriptors 0 to 2 and sys.stdin, sys.stdout, sys.stderr as they are now."""

    def __init__(self) -> None:
        self._own = _open(1), _open(2)
        self.renew()

    def renew(self) -> None:
        """Be those of a process whose descriptors are new, and that has written nothing."""
        self._kept: List[Tuple[int, int, descriptors.Identity]] = [
            (fd, descriptors.duplicate_high(fd), descriptors.identity(fd)) for fd in (0, 1, 2)
        ]
        if any(stream.closed for stream in self._own):
            self._own = _open(1), _open(2)
        sys.stdout, sys.stderr = self._own
        sys.__stdout__, sys.__stderr__ = self._own  # type: ignore[misc,assignment]
        self._out: TextIO = sys.stdout
        self._err: TextIO = sys.stderr
        self._in = sys.stdin

    def ours(self) -> List[int]:
        """Return the descriptors from 3 up that belong here."""
        return [copy for _, copy, _ in self._kept]

    def adopt(self) -> None:
        """Keep what the module has made of the streams at import."""
        if not sys.stdout.closed:
            self._out = sys.stdout
        if not sys.stderr.closed:
            self._err = sys.stderr
        self._in = sys.stdin

    def flush(self) -> None:
        """Write out what was printed and not written yet, by Python or by C."""
        streams = [self._out, self._err]
        if sys.stdout is not self._out or sys.stderr is not self._err:
            streams += (sys.stdout, sys.stderr)
        for stream in streams:
            try:
                stream.flush()
            except Exception:  # closed, replaced by anything, or its descriptor is closed
                pass
        process.flush_c_streams()

    def restore(self) -> None:
        """Put the descriptors and the streams right."""
        for fd, copy, expected in self._kept:
            if not descriptors.same(fd, expected) and descriptors.same(copy, expected):
                os.dup2(copy, fd)
            if not os.get_blocking(fd):
                os.set_blocking(fd, True)
        if self._out.closed or self._own[0].closed:
            self._out = sys.__stdout__ = _open(1)  # type: ignore[misc,assignment]
        if self._err.closed or self._own[1].closed:
            self._err = sys.__stderr__ = _open(2)  # type: ignore[misc,assignment]
        self._own = (self._out, self._err)
        sys.stdin, sys.stdout, sys.stderr = self._in, self._out, self._err
