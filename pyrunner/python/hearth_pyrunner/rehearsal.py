"""What a grown template does until its handler is loaded, done before by the one that it
grows from: the interpreter has specialized that code by then and filled its caches, once
for all. A rehearsal leaves the process as it was."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
from typing import Iterator

from . import channel, descriptors, framing, loader, message, process, reseed, stdio, surroundings

# As often as code has to run until it is specialized, and then some.
_TIMES = 12
_MODULE, _FUNCTION = "echo", "echo"


def rehearse() -> None:
    """Go through it all. What grows from here does not know of it."""
    with _put_back():
        nobody, other = socket.socketpair()
        with other:
            conn, streams = channel.ControlChannel(nobody.detach()), stdio.Streams()
            conn.close()
            _close(streams)
    environment = [name + b"=" + value for name, value in os.environb.items()]
    for turn in range(_TIMES):
        with _put_back():
            surroundings.take_environment([*environment, b"LANG=C.UTF-8", b"TZ=UTC", b"HEARTH_RUN_UID=%d" % turn])
            reseed.reseed()
            _converse(conn, streams)
    surroundings.take_environment(environment)
    sys.modules.pop(__name__, None)
    gc.collect()


@contextlib.contextmanager
def _put_back() -> Iterator[None]:
    """Undo what loading a handler does to the process."""
    folder, path, arguments, bytecode = os.getcwd(), sys.path[:], sys.argv, sys.dont_write_bytecode
    streams = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
    try:
        yield
    finally:
        os.chdir(folder)
        sys.path[:], sys.argv, sys.dont_write_bytecode = path, arguments, bytecode
        sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc,assignment]
        sys.modules.pop(_MODULE, None)
        sys.path_importer_cache.pop(os.path.dirname(__file__), None)


def _converse(conn: channel.ControlChannel, streams: stdio.Streams) -> None:
    """Be told to load the handler, load it, and say so."""
    ours, theirs = socket.socketpair()
    conn.reopen(ours.detach())
    streams.renew()
    with theirs:
        theirs.sendall(framing.encode(message.pack(message.LOAD, os.path.dirname(__file__), _MODULE, _FUNCTION)))
        _, fields = conn.receive()
        loader.load(*map(message.text, fields))
        streams.flush()
        ended = process.end_children()
        opened = descriptors.listing([conn.fileno(), *streams.ours()])
        conn.send(message.LOADED, process.threads(), len(ended), 0, *opened)
    _close(streams)
    conn.close()


def _close(streams: stdio.Streams) -> None:
    for copy in streams.ours():
        os.close(copy)
