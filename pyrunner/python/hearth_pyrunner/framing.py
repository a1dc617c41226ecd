"""Messages over a byte stream: runs of chunks, each an 8-byte big-endian length and
that many bytes, ended by 8 zero bytes. Limits are checked before allocating.

The Go counterpart is package frame; testdata/frames.json holds the two together.
"""

from __future__ import annotations

import struct
from typing import Callable, List, Optional, Union

MAX_CHUNK = 64 << 20
MAX_MESSAGE = 4 << 30

Bytes = Union[bytes, bytearray]

END = bytes(8)
_LENGTH = struct.Struct(">Q")
_STEP = 4 << 20  # how much memory a length alone can claim
_SMALL = 64 << 10


class FrameError(Exception):
    """The stream is not one of ours, and is useless from here on."""


class Truncated(FrameError):
    """The stream ended before the message's terminator."""


class TooLarge(FrameError):
    """A chunk or a message is over its bound."""


def encode(message: bytes, chunk: int = MAX_CHUNK) -> bytes:
    """Return message as it goes over the stream, in chunks of at most chunk bytes."""
    parts: List[bytes] = []
    for start in range(0, len(message), chunk):
        piece = message[start : start + chunk]
        parts += (_LENGTH.pack(len(piece)), piece)
    parts.append(END)
    return b"".join(parts)


def write(sendall: Callable[[Union[bytes, memoryview]], object], message: bytes) -> None:
    """Write one message: with one system call up to 64 KiB, without a copy above."""
    if len(message) <= _SMALL:
        sendall(encode(message))
        return
    if len(message) > MAX_MESSAGE:
        raise TooLarge(f"a message of {len(message)} bytes, at most {MAX_MESSAGE}")
    view = memoryview(message)
    for start in range(0, len(message), MAX_CHUNK):
        piece = view[start : start + MAX_CHUNK]
        sendall(_LENGTH.pack(len(piece)))
        sendall(piece)
    sendall(END)


class Reader:
    """Reads messages of at most limit bytes.

    recv_into fills a buffer with what there is, at least one byte, and returns how
    many; 0 is the end of the stream.
    """

    def __init__(self, recv_into: Callable[[memoryview], int], limit: int = MAX_MESSAGE, buffer: int = _SMALL) -> None:
        self._recv_into = recv_into
        self._limit = limit
        self._buffer = bytearray(buffer)
        self._view = memoryview(self._buffer)
        self._start = 0  # what is buffered and not consumed lies between the two
        self._end = 0

    def read(self) -> Optional[Bytes]:
        """Return the next message, None at the end of the stream between two."""
        if self._start == self._end and not self._more():
            return None
        start = self._start
        if self._end - start >= 16:
            (size,) = _LENGTH.unpack_from(self._buffer, start)
            stop = start + 8 + size
            if 0 < size <= self._limit and stop + 8 <= self._end and self._buffer[stop : stop + 8] == END:
                self._start = stop + 8
                return bytes(self._view[start + 8 : stop])
        return self._assemble()

    def buffered(self) -> bool:
        """Say whether some of the next message was received already."""
        return self._start < self._end

    def _assemble(self) -> Bytes:
        size = self._length()
        # The usual message is one chunk: its memory is taken once.
        message = bytearray(size if size <= min(_STEP, self._limit) else 0)
        if message:
            self._fill(memoryview(message))
            size = self._length()
        while size:
            if size > MAX_CHUNK:
                raise TooLarge(f"a chunk of {size} bytes, at most {MAX_CHUNK}")
            if len(message) + size > self._limit:
                raise TooLarge(f"a message of more than {self._limit} bytes")
            self._extend(message, size)
            size = self._length()
        return message

    def _length(self) -> int:
        head = bytearray(8)
        self._fill(memoryview(head))
        return int.from_bytes(head, "big")

    def _extend(self, message: bytearray, size: int) -> None:
        """Append size bytes of the stream; memory is taken as they come."""
        while size:
            piece = bytearray(min(size, _STEP))
            self._fill(memoryview(piece))
            message += piece
            size -= len(piece)

    def _fill(self, view: memoryview) -> None:
        """Fill view from the buffer and the stream; much of it without the buffer."""
        at = 0
        while at < len(view):
            if self._start == self._end:
                if len(view) - at > len(self._buffer):
                    got = self._recv_into(view[at:])
                    if not got:
                        raise Truncated("the stream ended inside a message")
                    at += got
                    continue
                if not self._more():
                    raise Truncated("the stream ended inside a message")
            taken = min(len(view) - at, self._end - self._start)
            view[at : at + taken] = self._view[self._start : self._start + taken]
            self._start += taken
            at += taken

    def _more(self) -> int:
        """Refill the empty buffer."""
        self._start = 0
        self._end = 0
        self._end = self._recv_into(self._view)
        return self._end
