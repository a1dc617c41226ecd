"""A connected socket that speaks messages, kept safe from the code beside it."""

from __future__ import annotations

import array
import os
import socket
import struct
import threading
from typing import List, Tuple

from . import descriptors, framing, message

Message = Tuple[int, List[message.Bytes]]

# A frame of one chunk: length, kind, length of the field, field; the end.
_ONE_NUMBER = struct.Struct(">QBIqQ")

# As many descriptors as can come along with one message.
MAX_DESCRIPTORS = 253
_ROOM = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)


class Gone(Exception):
    """The socket is no longer ours: user code has closed or replaced its descriptor."""


class Closed(Exception):
    """The other side has gone."""


class Channel:
    """Owns one high, uninherited descriptor. receive belongs to one thread, send to any."""

    def __init__(self, fd: int, limit: int = framing.MAX_MESSAGE) -> None:
        self._open(fd)
        self._reader = framing.Reader(self._socket.recv_into, limit)
        self._lock = threading.Lock()

    def _open(self, fd: int) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptors.raise_high(fd))
        self._socket.setblocking(True)
        self._identity = descriptors.identity(self._socket.fileno())

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._socket.fileno()

    def receive(self) -> Message:
        """Return the next message. Raises Closed."""
        raw = self._reader.read()
        if raw is None:
            raise Closed("the other side has gone")
        return message.unpack(raw)

    def send(self, kind: int, *fields: message.Field) -> None:
        """Send one message whole. Raises Gone when the descriptor is not ours."""
        raw = message.pack(kind, *fields)
        with self._lock:
            if not descriptors.same(self._socket.fileno(), self._identity):
                raise Gone("the control socket was closed or replaced")
            framing.write(self._socket.sendall, raw)

    def tell(self, kind: int, number: int) -> None:
        """Send a message of one number, as send does, by one call and little else: for a
        process whose memory is a copy."""
        os.write(self._socket.fileno(), _ONE_NUMBER.pack(13, kind, 8, number, 0))

    def close(self) -> None:
        """Let go of the socket, in a forked child that must not speak."""
        if descriptors.same(self._socket.fileno(), self._identity):
            os.close(self._socket.detach())
        else:
            self._socket.detach()


class ControlChannel(Channel):
    """The template's channel, over which descriptors come along with messages."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._reader = framing.Reader(self._recv_with_descriptors)
        self._passed: List[int] = []

    def reopen(self, fd: int) -> None:
        """Speak over another socket, once the former is closed."""
        self._open(fd)

    def _recv_with_descriptors(self, view: memoryview) -> int:
        size, ancillary, _, _ = self._socket.recvmsg_into([view], _ROOM, socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds = array.array("i")
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
                self._passed += fds
        return size

    def take_descriptor(self) -> int:
        """Return the descriptor that came with the latest message."""
        if not self._passed:
            raise message.Malformed("no descriptor came along")
        return self._passed.pop(0)

    def take_descriptors(self) -> List[int]:
        """Return all that came with the latest message and were not taken yet."""
        taken, self._passed = self._passed, []
        return taken
