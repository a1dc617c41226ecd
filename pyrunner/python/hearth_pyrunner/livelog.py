"""What a call of the executor prints: captured at descriptor level, sent on while
the call runs, and kept for its envelope, up to a limit.

Descriptors 1 and 2 are one pipe, so that the order of both streams is exact. A
thread reads it; user code that writes faster than the reader of the log takes is
slowed down by the pipe. C code that holds the interpreter's lock and writes more
than the pipe's 1 MiB at one go would wait for ever: its call ends by its deadline.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import select
import sys
import threading
from typing import Callable, List

from . import descriptors, process

_F_SETPIPE_SZ = 1031
_PIPE = 1 << 20
_READ = 64 << 10


class LiveLog:
    """Captures descriptors 1 and 2 from start() on.

    send takes a piece of text of the running call; it is called by the reading
    thread only.
    """

    def __init__(self, send: Callable[[str], None], limit: int) -> None:
        self._send = send
        self._limit = limit
        self._lock = threading.Lock()  # guards what follows
        self._active = False
        self._kept: List[str] = []
        self._size = 0
        self._dropped = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._drained = threading.Event()
        self._streams = [
            open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False) for fd in (1, 2)
        ]
        self._thread = threading.Thread(target=self._pump, name="hearth-log", daemon=True)

    def start(self) -> None:
        """Take over descriptors 1 and 2 for the life of the process."""
        reader, writer = os.pipe()
        try:
            fcntl.fcntl(writer, _F_SETPIPE_SZ, _PIPE)
        except OSError:
            pass  # an unprivileged user over its pipe quota has a smaller pipe
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        os.close(writer)
        sys.stdout, sys.stderr = self._streams
        self._reader = descriptors.raise_high(reader)
        self._woken, self._wake = (descriptors.raise_high(fd) for fd in os.pipe())
        os.set_blocking(self._reader, False)
        self._thread.start()

    def begin(self) -> None:
        """Start the account of a call. What came since the last one is dropped."""
        self._flush()
        self._drain()
        with self._lock:
            self._active = True
            self._kept = []
            self._size = 0
            self._dropped = 0

    def end(self) -> List[str]:
        """Return the lines of the call, all of which were sent on."""
        self._flush()
        self._drain()
        with self._lock:
            self._active = False
            if self._dropped:
                marker = f"\n[output cut: {self._dropped} bytes over the limit of {self._limit}]\n"
                self._kept.append(marker)
                self._send(marker)
            return "".join(self._kept).splitlines(keepends=True)

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass  # the call closed or replaced it
        process.flush_c_streams()

    def _drain(self) -> None:
        """Wait until the pipe was seen empty."""
        self._drained.clear()
        os.write(self._wake, b"x")
        self._drained.wait()

    def _pump(self) -> None:
        while True:
            ready, _, _ = select.select([self._reader, self._woken], [], [])
            asked = self._woken in ready
            if asked:
                os.read(self._woken, _READ)
            # A flood must not keep a call from ending: one pipe full is enough.
            left = 2 * _PIPE if asked else _READ
            while left > 0:
                try:
                    piece = os.read(self._reader, _READ)
                except BlockingIOError:
                    break
                if not piece:
                    break
                left -= len(piece)
                self._take(piece)
            if asked:
                self._drained.set()

    def _take(self, piece: bytes) -> None:
        with self._lock:
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
