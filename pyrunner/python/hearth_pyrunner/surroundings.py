"""What a grown template has of its own: environment, standard streams, working folder."""

from __future__ import annotations

import locale
import os
import time
from typing import Dict, List

from . import message


def take(folder: str, variables: List[message.Bytes], streams: List[int]) -> None:
    """Take the whole environment, descriptors for 1 and 2 (or none, which leaves them),
    and a working folder ("" leaves it)."""
    take_environment(variables)
    for fd, target in zip(streams, (1, 2)):
        os.dup2(fd, target)
    for fd in streams:
        os.close(fd)
    if folder:
        os.chdir(folder)


def take_environment(variables: List[message.Bytes]) -> None:
    """Replace the environment by NAME=VALUE texts, and what was derived from it: the
    time zone and the locale of characters. What the C library or the interpreter has
    read once, at its start (LD_*, MALLOC_*, PYTHON*), stays as it was."""
    wanted = dict(bytes(variable).split(b"=", 1) for variable in variables)
    # Past os.environ, whose way takes a dozen functions for each variable.
    present: Dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
    changed = [name for name in present if name not in wanted]
    for name in changed:
        os.unsetenv(name)
        del present[name]
    for name, value in wanted.items():
        if present.get(name) != value:
            os.putenv(name, value)
            present[name] = value
            changed.append(name)
    if any(name == b"TZ" or name.startswith((b"LC_", b"LANG")) for name in changed):
        _derive()


def _derive() -> None:
    time.tzset()
    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:
        pass  # a locale that is not installed: as an interpreter's own start takes it
