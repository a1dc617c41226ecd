"""Randomness after a fork or a restore: siblings must not share their numbers.

What a module made itself at import (random.Random(), numpy's default_rng()) is its
own state and is left as it is.
"""

from __future__ import annotations

import os
import random
import sys
from typing import Any


def reseed() -> None:
    """Give every generator that the process shares with its siblings a seed of its own."""
    random.seed()
    _numpy(sys.modules.get("numpy.random"))
    _uuid(sys.modules.get("uuid"))
    _ssl(sys.modules.get("ssl"))
    _tempfile(sys.modules.get("tempfile"))


def _numpy(module: Any) -> None:
    """The global generator: its whole state at once, which costs a third of a seed."""
    if module is None:
        return
    try:
        words = sys.modules["numpy"].frombuffer(os.urandom(4 * 624), dtype="uint32")
        module.set_state(("MT19937", words, 624))
    except Exception:  # another generator was put in its place
        module.seed(list(os.urandom(64)))


def _uuid(module: Any) -> None:
    """uuid1 counts on from the latest time stamp; uuid4 asks the kernel."""
    if module is not None:
        module._last_timestamp = None


def _ssl(module: Any) -> None:
    if module is not None:
        module.RAND_add(os.urandom(64), 64.0)


def _tempfile(module: Any) -> None:
    if module is not None:
        module._name_sequence = None
