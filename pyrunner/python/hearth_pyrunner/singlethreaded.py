"""Imports that start no threads of their own, as far as libraries can be told.

A process with threads cannot be forked safely, and numerical libraries start one a
core when they are loaded, unless the environment says otherwise. What the function's
author has set is left alone.
"""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

NAMES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@contextlib.contextmanager
def asked() -> Iterator[None]:
    """Ask for one thread while the body runs; afterwards the environment is as before."""
    ours = [name for name in NAMES if name not in os.environ]
    for name in ours:
        os.environ[name] = "1"
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)
