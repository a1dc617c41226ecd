"""What an executor does in every container, done before by the process that all of them
are forked from: the interpreter has specialized that code by then and filled its caches,
once for all. Where a forked process does that, each page of it is copied."""

from __future__ import annotations

import gc
import os
import pickle
import socket
import sys
from typing import Any, Dict, List

from . import executor, framing

# As often as code has to run until it is specialized, and then some.
_TIMES = 12
_LIMIT = 1 << 20
_SOURCE = b'{"source": "def f(x):\\n    return x\\n", "entry": "f", "args": [1], "kwargs": {}}'


def _no_thread(*_: Any) -> None:
    """Begin none: a process that forks has one alone."""


def rehearse() -> None:
    """Serve calls. Afterwards the process is what it was."""
    streams = sys.stdout, sys.stderr
    copies = [os.dup(fd) for fd in (1, 2)]
    try:
        for _ in range(_TIMES):
            _serve()
    finally:
        sys.stdout, sys.stderr = streams
        for fd, copy in zip((1, 2), copies):
            os.dup2(copy, fd)
            os.close(copy)
    gc.collect()


def _serve() -> None:
    """Serve two calls; the worker goes during the second, which ends the executor."""
    worker, control = socket.socketpair()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("")  # to a name that the kernel makes up
    listener.listen()
    last: Dict[str, Any] = {"func": _hang_up, "args": (worker.fileno(),), "kwargs": {}}
    calls: List[socket.socket] = [_dial(listener, request) for request in (_SOURCE, pickle.dumps(last))]
    one = executor.Executor(_LIMIT, _no_thread)
    try:
        one.serve(control.detach(), listener.detach())
    except SystemExit:
        pass
    one.close()
    for end in (worker, *calls):
        end.close()


def _dial(listener: socket.socket, request: bytes) -> socket.socket:
    call = socket.socket(socket.AF_UNIX)
    call.connect(listener.getsockname())
    call.sendall(framing.encode(request))
    return call


def _hang_up(fd: int) -> int:
    """Be a call during which the worker goes: it still hears what it does not answer."""
    with socket.socket(fileno=os.dup(fd)) as worker:
        worker.shutdown(socket.SHUT_WR)
    return 1
