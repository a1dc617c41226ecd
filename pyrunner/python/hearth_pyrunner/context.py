"""What a handler is told about its invocation."""

from __future__ import annotations

import logging
import time
from typing import Callable, Dict, Optional

_MAX_ENTRY = 64 << 10

# Takes the level and the text of a log entry.
Emit = Callable[[str, str], None]


class Context:
    """The second argument of handler(event, context)."""

    def __init__(self, run_uid: str, invocation_id: str, milliseconds: int, emit: Emit) -> None:
        self.run_uid = run_uid
        self.invocation_id = invocation_id
        self.outputs: Dict[str, str] = {}
        self._deadline = time.monotonic() + milliseconds / 1000
        self._emit = emit
        self._logger: Optional[logging.Logger] = None

    def remaining_time_ms(self) -> int:
        """Milliseconds until the call is ended, never less than 0."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))

    @property
    def logger(self) -> logging.Logger:
        """A logger whose entries carry this invocation's ID and a level."""
        if self._logger is None:
            self._logger = logging.Logger("hearth", logging.DEBUG)
            self._logger.addHandler(_Handler(self._emit))
        return self._logger

    def __repr__(self) -> str:
        return f"Context(run_uid={self.run_uid!r}, invocation_id={self.invocation_id!r})"


class _Handler(logging.Handler):
    def __init__(self, emit: Emit) -> None:
        super().__init__()
        self._send = emit

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send(_level(record.levelno), self.format(record)[:_MAX_ENTRY])
        except Exception:
            self.handleError(record)


def _level(number: int) -> str:
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warn"
    return "info" if number >= logging.INFO else "debug"
