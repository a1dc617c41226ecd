"""Texts for people: bounded in bytes, cut on a character boundary."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Optional

MAX_TRACE = 4 << 10
MAX_MESSAGE = 1 << 10
_CUT = "[…]"
_FRAMES = 40  # of a traceback, the innermost


def head(text: str, limit: int) -> str:
    """Keep the beginning of a text, in at most limit bytes of UTF-8."""
    raw = text[:limit].encode("utf-8", "backslashreplace")
    if len(raw) <= limit and len(text) <= limit:
        return raw.decode()
    room = limit - len(_CUT.encode())
    return raw[:room].decode("utf-8", "ignore") + _CUT


def tail(text: str, limit: int) -> str:
    """Keep the end of a text, in at most limit bytes of UTF-8."""
    raw = text[-limit:].encode("utf-8", "backslashreplace")
    if len(raw) <= limit and len(text) <= limit:
        return raw.decode()
    room = limit - len(_CUT.encode())
    return _CUT + raw[-room:].decode("utf-8", "ignore")


def message(error: BaseException) -> str:
    """Return an exception's own words on one line."""
    try:
        words = str(error)
    except BaseException as why:  # a broken __str__ is the user's too
        words = f"<{type(error).__name__} whose text raises {type(why).__name__}>"
    return head(" ".join(words[: 2 * MAX_MESSAGE].split()), MAX_MESSAGE)


def trace(error: BaseException, skip: Optional[TracebackType] = None) -> str:
    """Return the traceback from the user's first frame on, its end if it is long.

    skip is the traceback entry of our own frame that called the user's code.
    """
    tb = skip.tb_next if skip is not None else error.__traceback__
    try:
        lines = traceback.format_exception(type(error), error, tb, limit=-_FRAMES)
        return tail("".join(lines).rstrip(), MAX_TRACE)
    except BaseException:  # an exception that cannot be printed
        return f"{type(error).__name__}: {message(error)}"
