"""Keeps what it has computed: module state lives from one call to the next."""

import time

_started = time.time()
_known = {}


def _slow_square(n):
    time.sleep(0.2)
    return n * n


def lookup(event, context):
    n = int(event["n"])
    cached = n in _known
    if not cached:
        _known[n] = _slow_square(n)
    context.outputs["cached"] = str(cached).lower()
    return {"n": n, "square": _known[n], "cached": cached, "entries": len(_known), "warm_for": round(time.time() - _started, 3)}
