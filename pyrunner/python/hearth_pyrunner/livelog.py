"""What a call of the executor prints: captured at descriptor level, sent on while
the call runs, and kept for its envelope, up to a limit.

Descriptors 1 and 2 are one pipe, so that the order of both streams is exact. A
thread reads it while a call runs, and who begins and ends a call reads what is left;
user code that writes faster than the reader of the log takes is slowed down by the
pipe. C code that holds the interpreter's lock and writes more than the pipe's 1 MiB at
one go would wait for ever: its call ends by its deadline.
"""

from __future__ import annotations

import _thread
import codecs
import fcntl
import os
import select
import sys
import threading
from typing import Any, Callable, List, TextIO

from . import descriptors, process

# As _thread.start_new_thread.
BeginThread = Callable[..., Any]

_F_SETPIPE_SZ = 1031
_PIPE = 1 << 20
_READ = 64 << 10


def _stream(fd: int) -> TextIO:
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


class LiveLog:
    """Captures descriptors 1 and 2 from start() on.

    send takes a piece of text of the running call; one piece at a time. begin_thread
    begins the thread that reads: not by threading, which would know of it then and tell
    the call, and whose own part in it costs a forked process as much as the kernel's.
    """

    def __init__(self, send: Callable[[str], None], limit: int, begin_thread: BeginThread = _thread.start_new_thread) -> None:
        self._send = send
        self._limit = limit
        self._lock = threading.Lock()  # guards reading, and what follows
        self._active = False
        self._kept: List[str] = []
        self._size = 0
        self._dropped = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._streams = [_stream(fd) for fd in (1, 2)]
        self._begin_thread = begin_thread

    def start(self) -> None:
        """Take over descriptors 1 and 2 for the life of the process."""
        reader, writer = os.pipe()
        try:
            fcntl.fcntl(writer, _F_SETPIPE_SZ, _PIPE)
        except OSError:
            pass  # an unprivileged user over its pipe quota has a smaller pipe
        self._writer = descriptors.raise_high(writer)
        self._restore()
        self._reader = descriptors.raise_high(reader)
        os.set_blocking(self._reader, False)
        self._begin_thread(self._pump, ())

    def close(self) -> None:
        """Let go of the pipe, which descriptors 1 and 2 still are and nobody reads any more."""
        os.close(self._reader)
        os.close(self._writer)

    def _restore(self) -> None:
        """Put the descriptors and streams right, whatever a call has made of them."""
        os.set_blocking(self._writer, True)
        for at, fd in enumerate((1, 2)):
            os.dup2(self._writer, fd)
            if self._streams[at].closed:
                self._streams[at] = _stream(fd)
        sys.stdout, sys.stderr = self._streams

    def begin(self) -> None:
        """Start the account of a call. What came since the last one is dropped."""
        self._flush()
        with self._lock:
            self._empty()
            self._active = True
            self._kept = []
            self._size = 0
            self._dropped = 0

    def end(self) -> List[str]:
        """Return the lines of the call, all of which were sent on."""
        self._flush()
        self._restore()  # before anything of ours is opened where the call closed
        with self._lock:
            self._empty()
            self._active = False
            if self._dropped:
                marker = f"\n[output cut: {self._dropped} bytes over the limit of {self._limit}]\n"
                self._kept.append(marker)
                self._send(marker)
            return "".join(self._kept).splitlines(keepends=True)

    def _flush(self) -> None:
        for name in ("stdout", "stderr"):
            try:
                getattr(sys, name).flush()
            except Exception:
                pass  # the call closed it, or put anything there
        process.flush_c_streams()

    def _pump(self) -> None:
        while True:
            select.select([self._reader], [], [])
            with self._lock:
                self._take(self._read())

    def _empty(self) -> None:
        """Read what is in the pipe. A flood must not keep a call from ending: one pipe
        full is enough."""
        left = 2 * _PIPE
        while left > 0:
            piece = self._read()
            if not piece:
                return
            left -= len(piece)
            self._take(piece)

    def _read(self) -> bytes:
        try:
            return os.read(self._reader, _READ)
        except BlockingIOError:
            return b""

    def _take(self, piece: bytes) -> None:
        if not self._active:
            return
        room = self._limit - self._size
        self._dropped += max(0, len(piece) - room)
        piece = piece[: max(0, room)]
        self._size += len(piece)
        text = self._decoder.decode(piece)
        if text:
            self._kept.append(text)
            self._send(text)
