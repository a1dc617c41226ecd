"""JSON in, JSON out, with a defined answer for everything odd.

In: UTF-8 without a byte order mark; the last of duplicate keys counts; NaN and
Infinity are no JSON; a number beyond a double is infinity, an integer of more than
4300 digits and a nesting beyond Python's recursion limit are refused; a lone
surrogate escape stays one. Out: the same, and a lone surrogate goes out as the
escape that it came in as.
"""

from __future__ import annotations

import json
from typing import Any, Union


class Invalid(Exception):
    """The payload is no JSON that can be read; the text says where and why."""


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)
_encoder = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def decode(payload: Union[bytes, memoryview]) -> Any:
    """Return the value of a payload. Raises Invalid."""
    if not payload:
        raise Invalid("the payload is empty: send JSON, null if there is nothing to say")
    try:
        return _decoder.decode(str(payload, "utf-8"))
    except UnicodeDecodeError as error:
        raise Invalid(f"the payload is not UTF-8: byte {error.start} is {payload[error.start]:#04x}") from None
    except RecursionError:
        raise Invalid("the payload is nested too deeply for Python to read") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise Invalid(f"the payload is not JSON: {error.msg} at {where}") from None
    except ValueError as error:
        raise Invalid(f"the payload cannot be read: {error}") from None


def encode(value: Any) -> bytes:
    """Return a value as JSON. Raises TypeError, ValueError or RecursionError."""
    try:
        return _encoder.encode(value).encode("utf-8")
    except UnicodeEncodeError:
        return _ascii.encode(value).encode("ascii")
