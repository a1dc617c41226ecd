"""What is said over a frame stream: a kind, then fields, each a 4-byte big-endian
length and its bytes. Numbers are 8-byte big-endian.

The Go counterpart, with the meaning of every kind and field, is package message;
testdata/messages.json holds the two together.
"""

from __future__ import annotations

import struct
from typing import List, Tuple, Union

LOAD = 1
FORK = 2
REAP = 3
SERVE = 4
GROW = 5
ENTER = 6
LIST = 7

LOADED = 17
REFUSED = 18
FORKED = 19
REAPED = 20
LISTED = 21

CALL = 33

READY = 49
ANSWER = 50
FAILURE = 51
ENTRY = 52

LOG = 65
EXECUTED = 66
NEED_PACKAGES = 67

USE_PATHS = 81
PACKAGES_FAILED = 82
BEGIN = 83

HANDLER_INVALID = "HANDLER_INVALID"
LOAD_FAILED = "LOAD_FAILED"
FORK_FAILED = "FORK_FAILED"

HANDLER_ERROR = "HANDLER_ERROR"
PAYLOAD_INVALID = "PAYLOAD_INVALID"
RESPONSE_TOO_LARGE = "RESPONSE_TOO_LARGE"
OUTPUTS_INVALID = "OUTPUTS_INVALID"
OUTPUTS_TOO_LARGE = "OUTPUTS_TOO_LARGE"

Bytes = Union[bytes, memoryview]
Field = Union[bytes, memoryview, str, int]

_LARGE = 64 << 10
_SIZE = struct.Struct(">I")
_NUMBER = struct.Struct(">Iq")
_INT = struct.Struct(">q")


class Malformed(Exception):
    """The lengths of a message do not add up, or it lacks a field."""


def pack(kind: int, *fields: Field) -> bytes:
    """Return a message of kind with fields; a text goes as UTF-8."""
    parts: List[Bytes] = [bytes((kind,))]
    for field in fields:
        if isinstance(field, int):
            parts.append(_NUMBER.pack(8, field))
            continue
        if isinstance(field, str):
            field = field.encode("utf-8", "backslashreplace")
        parts.append(_SIZE.pack(len(field)))
        parts.append(field)
    return b"".join(parts)


def unpack(raw: Union[bytes, bytearray]) -> Tuple[int, List[Bytes]]:
    """Take a message apart into its kind and its fields; those of a large message
    share its memory."""
    if not raw:
        raise Malformed("empty message")
    fields: List[Bytes] = []
    at, end = 1, len(raw)
    whole: Bytes = bytes(raw) if end <= _LARGE else memoryview(raw)
    while at < end:
        if end - at < 4:
            raise Malformed(f"{end - at} bytes after the last field")
        (size,) = _SIZE.unpack_from(raw, at)
        at += 4
        if size > end - at:
            raise Malformed(f"a field of {size} bytes, {end - at} are there")
        fields.append(whole[at : at + size])
        at += size
    return raw[0], fields


def number(field: Bytes) -> int:
    """Return a field as the number that it is."""
    if len(field) != 8:
        raise Malformed("a number has 8 bytes")
    value: int = _INT.unpack(field)[0]
    return value


def text(field: Bytes) -> str:
    """Return a field as text; what is not UTF-8 stays visible."""
    return str(field, "utf-8", "backslashreplace")
