"""Bounds of what a handler puts into context.outputs (CONTRACT.md 1.2)."""

from __future__ import annotations

from typing import Any, List

from . import message

MAX_KEYS = 64
MAX_KEY = 128
MAX_VALUE = 8 << 10
MAX_TOTAL = 64 << 10


class Bad(Exception):
    """The outputs are not what they may be: a code for the wire, and why."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


def fields(outputs: Any) -> List[bytes]:
    """Return the outputs as keys and values in turn. Raises Bad."""
    if type(outputs) is dict and not outputs:
        return []
    if not isinstance(outputs, dict):
        raise Bad(message.OUTPUTS_INVALID, f"context.outputs is a {type(outputs).__name__}, not a dict of strings")
    if len(outputs) > MAX_KEYS:
        raise Bad(message.OUTPUTS_TOO_LARGE, f"context.outputs has {len(outputs)} keys, at most {MAX_KEYS}")
    found: List[bytes] = []
    for key, value in outputs.items():
        found += _pair(key, value)
    total = sum(map(len, found))
    if total > MAX_TOTAL:
        raise Bad(message.OUTPUTS_TOO_LARGE, f"context.outputs has {total} bytes in all, at most {MAX_TOTAL}")
    return found


def _pair(key: Any, value: Any) -> List[bytes]:
    if not isinstance(key, str) or not isinstance(value, str):
        kinds = f"{type(key).__name__} to {type(value).__name__}"
        raise Bad(message.OUTPUTS_INVALID, f"context.outputs[{key!r:.200}] maps {kinds}: use strings")
    try:
        raw = [key.encode("utf-8"), value.encode("utf-8")]
    except UnicodeEncodeError:
        raise Bad(message.OUTPUTS_INVALID, f"context.outputs[{key!r:.200}] is no valid text") from None
    if not raw[0]:
        raise Bad(message.OUTPUTS_INVALID, "context.outputs has an empty key")
    if len(raw[0]) > MAX_KEY:
        raise Bad(message.OUTPUTS_INVALID, f"a key of context.outputs has {len(raw[0])} bytes, at most {MAX_KEY}")
    if len(raw[1]) > MAX_VALUE:
        raise Bad(message.OUTPUTS_TOO_LARGE, f"context.outputs[{key!r}] has {len(raw[1])} bytes, at most {MAX_VALUE}")
    return raw
