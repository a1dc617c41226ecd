"""Mode "executor": runs pickled and JSON calls, one at a time, for one container.

The worker hands over two descriptors: a control socket, over which the executor
says what the call prints and asks for packages, and a listening socket that the
worker dials for each call. A call's connection carries one message each way:

    request   cloudpickle of {"func", "args", "kwargs"} (+ "packages"), or JSON
              {"source", "entry", "args", "kwargs"}
    answer    in the same encoding {"ok": True, "value", "output"} or
              {"ok": False, "exc_type", "message", "traceback", "output"}

Whatever a call does short of ending the process, the next one works.
"""

from __future__ import annotations

import _thread
import importlib
import json
import pickle
import select
import socket
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, Tuple

from . import descriptors, framing, message, process, reseed
from .livelog import BeginThread, LiveLog

MAX_TRACEBACK = 64 << 10
_PIECE = 256 << 10
_REHEARSAL = '{"source": "def f():\\n    return 1\\n"}'


class BadCall(Exception):
    """A request that is none; the text says what is wrong."""


class PackagesFailed(Exception):
    """The worker could not install what a call asks for."""


class Control:
    """The control socket. send may be called from any thread."""

    def __init__(self) -> None:
        self._reader = framing.Reader(self._recv_into, buffer=4 << 10)
        self._lock = threading.Lock()

    def attach(self, fd: int) -> None:
        """Take the descriptor."""
        self._socket = _unix_socket(fd)

    def _recv_into(self, view: memoryview) -> int:
        try:
            return self._socket.recv_into(view)
        except ConnectionResetError:
            return 0  # the worker went without reading all that we said

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def pending(self) -> bool:
        """Say whether receive would not wait, the end of the stream included."""
        return self._reader.buffered() or bool(select.select([self], [], [], 0)[0])

    def send(self, kind: int, *fields: message.Field) -> None:
        packed = message.pack(kind, *fields)
        with self._lock:
            framing.write(self._socket.sendall, packed)

    def receive(self) -> Tuple[int, List[bytes]]:
        raw = self._reader.read()
        if raw is None:
            raise SystemExit(0)  # the worker is gone
        return message.unpack(raw)


class Executor:
    """Serves the calls of one container."""

    def __init__(self, limit: int, begin_thread: BeginThread = _thread.start_new_thread) -> None:
        """Make what can be made before the descriptors are there: before a fork.
        begin_thread begins the one that reads what calls print."""
        self._control = Control()
        self._log = LiveLog(lambda text: self._control.send(message.LOG, text), limit, begin_thread)
        self._sources: Dict[str, Dict[str, Any]] = {}

    def serve(self, control: int, listener: int) -> None:
        """Serve until the worker closes the control socket or kills us."""
        self._control.attach(control)
        self._listener = _unix_socket(listener)
        # The worker dials while the rest is made.
        self._control.send(message.READY, 0)
        self._log.start()
        if not self._called():  # else it would wait for the rehearsal
            self._rehearse()
        while True:
            select.select([self._control, self._listener], [], [])
            # What the worker said before it dialled counts before the call.
            while self._control.pending():
                kind, fields = self._control.receive()
                if kind == message.USE_PATHS:
                    use_paths(fields)
            if self._called():
                connection, _ = self._listener.accept()
                with connection:
                    self._answer(connection)

    def close(self) -> None:
        """Let go of everything but descriptors 1 and 2."""
        self._log.close()
        self._listener.close()
        self._control.close()

    def _called(self) -> bool:
        """Say whether a call has been dialled."""
        return bool(select.select([self._listener], [], [], 0)[0])

    def _rehearse(self) -> None:
        """Do once what every call does: whatever a forked process does first costs it the
        copies of pages, and one that stands ready has then paid for them."""
        self._log.begin()
        names: Dict[str, Any] = {"__name__": "__hearth__", "__builtins__": __builtins__}
        exec(compile(json.loads(_REHEARSAL)["source"], "<source>", "exec"), names)
        envelope = {"ok": True, "value": names["f"](), "output": self._log.end()}
        encode_json(envelope)
        if "cloudpickle" in sys.modules:
            pickle.loads(encode_pickle(envelope))

    def _answer(self, connection: socket.socket) -> None:
        try:
            request = framing.Reader(connection.recv_into).read()
            if request is None:
                return
        except (framing.FrameError, OSError):
            return  # the worker gave up in the middle of the body
        answer = self._run(request)
        try:
            view = memoryview(answer)
            for start in range(0, len(view), _PIECE):
                piece = view[start : start + _PIECE]
                connection.sendall(len(piece).to_bytes(8, "big"))
                connection.sendall(piece)
            connection.sendall(framing.END)
        except OSError:
            pass  # nobody reads the answer any more

    def _run(self, request: bytes) -> bytes:
        as_json = request[:1] == b"{"
        envelope: Dict[str, Any]
        self._log.begin()
        try:
            prepare = self._json_call if as_json else self._pickled_call
            function, args, kwargs = prepare(request)
            del request
            envelope = {"ok": True, "value": function(*args, **kwargs)}
        except BaseException as error:  # SystemExit and KeyboardInterrupt are answers too
            envelope = failure(error)
        envelope["output"] = self._log.end()
        encode = encode_json if as_json else encode_pickle
        try:
            answer = encode(envelope)
        except BaseException as error:  # the value cannot be carried, or its pickling raised
            answer = encode({**failure(error), "output": envelope["output"]})
        self._control.send(message.EXECUTED)
        return answer

    def _pickled_call(self, request: bytes) -> Tuple[Callable[..., Any], Any, Any]:
        try:
            call = pickle.loads(request)
        except Exception as error:
            if not isinstance(error, (ImportError, AttributeError)):
                raise BadCall(f"the payload is no pickle that can be read here: {error}") from error
            raise
        if not isinstance(call, dict):
            raise BadCall(f"the payload is a pickled {type(call).__name__}, not a dict")
        missing = [key for key in ("func", "args", "kwargs") if key not in call]
        if missing:
            raise BadCall(f"the payload lacks {', '.join(missing)}")
        if call.get("packages"):
            self._fetch([str(requirement) for requirement in call["packages"]])
        return call["func"], call["args"], call["kwargs"]

    def _json_call(self, request: bytes) -> Tuple[Callable[..., Any], Any, Any]:
        try:
            call = json.loads(request)
        except ValueError as error:
            raise BadCall(f"the payload starts like JSON and is none: {error}") from None
        for key, kind in (("source", str), ("entry", str), ("args", list), ("kwargs", dict)):
            if key in ("args", "kwargs"):
                call.setdefault(key, kind())
            if not isinstance(call.get(key), kind):
                raise BadCall(f'the payload needs "{key}", a {kind.__name__}')
        return self._entry(call["source"], call["entry"]), call["args"], call["kwargs"]

    def _entry(self, source: str, entry: str) -> Callable[..., Any]:
        """Return a function of the source, which runs once in a container: what its
        module holds lives on between the calls of a session."""
        names = self._sources.get(source)
        if names is None:
            names = {"__name__": "__hearth__", "__builtins__": __builtins__}
            exec(compile(source, "<source>", "exec"), names)
            self._sources[source] = names
        function = names.get(entry)
        if not callable(function):
            raise BadCall(f"the source has no function {entry!r}")
        return function  # type: ignore[no-any-return]

    def _fetch(self, requirements: List[str]) -> None:
        self._control.send(message.NEED_PACKAGES, *requirements)
        kind, fields = self._control.receive()
        if kind != message.USE_PATHS:
            raise PackagesFailed(message.text(fields[0]) if fields else "no reason given")
        use_paths(fields)


def _unix_socket(fd: int) -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=descriptors.raise_high(fd))


def use_paths(fields: List[bytes]) -> None:
    """Let imports look into folders of installed packages first."""
    for path in map(message.text, fields):
        if path not in sys.path:
            sys.path.insert(0, path)
    importlib.invalidate_caches()


def failure(error: BaseException) -> Dict[str, Any]:
    """Return the envelope of what a call raised."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be had)"
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {"ok": False, "exc_type": type(error).__name__, "message": text, "traceback": trace[-MAX_TRACEBACK:]}


def encode_pickle(envelope: Dict[str, Any]) -> bytes:
    import cloudpickle  # late: a JSON call does not wait for it

    pickled: bytes = cloudpickle.dumps(envelope)
    return pickled


def encode_json(envelope: Dict[str, Any]) -> bytes:
    return json.dumps(envelope, allow_nan=False, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def main(arguments: List[str]) -> None:
    """Serve on the descriptors that the worker hands over: CONTROL LISTEN LIMIT."""
    control, listen, limit = map(int, arguments)
    process.adopt_orphans()
    reseed.reseed()
    Executor(limit).serve(control, listen)
