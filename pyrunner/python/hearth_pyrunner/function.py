"""Mode function: a child that answers calls of one handler, one at a time."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, List, Optional, Tuple

from . import baseline, channel, context, jsoncodec, loader, message, outputs, process, stdio, texts

MAX_RESPONSE = 1 << 20
# A call is a payload of at most 1 MiB and little else.
MAX_CALL = 2 << 20

_Failure = Tuple[str, str, str, str, int]


class Function:
    """What a template has loaded for mode function."""

    def __init__(self, run_uid: str, handler: loader.Handler) -> None:
        self.run_uid = run_uid
        self.handler = handler

    def serve(self, control: int, streams: stdio.Streams) -> None:
        """Answer calls until the other side goes. Never returns."""
        conn = channel.Channel(control, MAX_CALL)
        os.register_at_fork(after_in_child=conn.close)
        _Server(self, conn, streams).run()


def load(fields: List[message.Bytes]) -> Function:
    """Load a handler: run_uid, folder, module, function. Raises loader.Refused."""
    run_uid, folder, module, function = map(message.text, fields)
    return Function(run_uid, loader.load(folder, module, function))


class _Server:
    """Owns the instance's side of its socket. One thread; loggers send from any."""

    def __init__(self, function: Function, conn: channel.Channel, streams: stdio.Streams) -> None:
        self._run_uid = function.run_uid
        self._handler = function.handler
        self._conn = conn
        self._streams = streams
        self._pid = os.getpid()
        streams.adopt()
        self._baseline = baseline.Baseline()

    def run(self) -> None:
        """Answer call after call."""
        self._conn.send(message.READY, self._pid)
        while True:
            kind, fields = self._conn.receive()
            if kind != message.CALL:
                raise message.Malformed(f"kind {kind} is no call")
            self._answer(*fields)
            self._baseline.restore()
            self._streams.restore()

    def _answer(
        self, sequence: message.Bytes, invocation_id: message.Bytes, milliseconds: message.Bytes, payload: message.Bytes
    ) -> None:
        def emit(level: str, text: str) -> None:
            self._conn.send(message.ENTRY, sequence, level, text)

        told = context.Context(
            self._run_uid, message.text(invocation_id), message.number(milliseconds), emit
        )
        result, failure = self._call(payload, told)
        self._streams.flush()
        if process.has_children():
            self._end_leftovers(emit)
        if failure is None:
            self._conn.send(message.ANSWER, sequence, *result)
        else:
            self._conn.send(message.FAILURE, sequence, *failure)

    def _end_leftovers(self, emit: context.Emit) -> None:
        ended = process.end_children()
        if ended:
            emit("warn", "ended what the call left running: " + ", ".join(ended))

    def _call(self, payload: message.Bytes, told: context.Context) -> Tuple[List[message.Bytes], Optional[_Failure]]:
        try:
            event = jsoncodec.decode(payload)
        except jsoncodec.Invalid as error:
            return [], (message.PAYLOAD_INVALID, "", str(error), "", 0)
        try:
            value = self._handler.call(event, told)
        except BaseException as error:
            self._stop_if_forked(error)
            return [], _raised(error)
        self._stop_if_forked(None)
        return self._encode(value, told)

    def _stop_if_forked(self, error: Optional[BaseException]) -> None:
        """A child that the handler forked and that came back here has no answer to give."""
        if os.getpid() == self._pid:
            return
        if error is not None and not isinstance(error, SystemExit):
            os.write(2, "".join(traceback.format_exception(type(error), error, error.__traceback__)).encode())
        os._exit(0 if error is None else _exit_code(error))

    def _encode(self, value: Any, told: context.Context) -> Tuple[List[message.Bytes], Optional[_Failure]]:
        try:
            body = jsoncodec.encode(value)
            pairs = outputs.fields(told.outputs)
        except outputs.Bad as error:
            return [], (error.code, "", str(error), "", 0)
        except BaseException as error:
            why = f"the handler's answer cannot be JSON: {texts.message(error)}"
            if isinstance(error, RecursionError):
                why = "the handler's answer cannot be JSON: it is nested too deeply"
            return [], (message.HANDLER_ERROR, type(error).__name__, why, f"{self._handler.place}: {why}", 0)
        if len(body) > MAX_RESPONSE:
            why = f"the handler answered {len(body)} bytes, at most {MAX_RESPONSE}"
            return [], (message.RESPONSE_TOO_LARGE, "", why, "", 0)
        return [body, *pairs], None


def _raised(error: BaseException) -> _Failure:
    words = texts.message(error)
    if isinstance(error, SystemExit):
        words = f"the handler called sys.exit({error.code!r:.100}): return instead"
    # Two frames are ours: _call and Handler.call.
    skip = error.__traceback__
    if skip is not None and skip.tb_next is not None:
        skip = skip.tb_next
    trace = texts.trace(error, skip)
    return (message.HANDLER_ERROR, type(error).__name__, words, trace, _exit_code(error))


def _exit_code(error: BaseException) -> int:
    """The status that the process would have ended with."""
    if not isinstance(error, SystemExit):
        return 0 if isinstance(error, Exception) else 1
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1
