"""What belongs to the process and not to the module is put back after each call:
working folder, umask, environment, signal handlers, timers and mask, locale, soft
limits, settings of the interpreter. Variables of modules stay as the call left them."""

from __future__ import annotations

import _locale
import _signal  # type: ignore[import-not-found]
import gc
import os
import resource
import signal
import sys
from typing import Any, Dict, List

from . import descriptors

# The C functions: their wrappers in signal cost ten times as much.
_getsignal, _setsignal = _signal.getsignal, _signal.signal
# Not the real-time signals: nobody's handler for them disturbs the next call.
_NUMBERS = [n for n in range(1, 32) if n not in (signal.SIGKILL, signal.SIGSTOP)]
# Those that a program sets for itself.
_LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS)
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Baseline:
    """The state of this process at one moment."""

    def __init__(self) -> None:
        folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._folder = descriptors.raise_high(folder)
        self._umask = os.umask(0o22)
        os.umask(self._umask)
        self._environment = dict(os.environ)
        self._raw = self._raw_environment()
        self._handlers = [_getsignal(n) for n in _NUMBERS]
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._locale = _locale.setlocale(_locale.LC_ALL, None)
        self._recursion = sys.getrecursionlimit()
        self._gc = gc.isenabled()
        self._limits = [resource.getrlimit(n) for n in _LIMITS]

    def restore(self) -> None:
        """Put everything back. What cannot be put back is left, not raised."""
        for step in (self._place, self._restore_environment, self._signals, self._interpreter, self._restore_limits):
            try:
                step()
            except Exception:
                pass

    def _place(self) -> None:
        os.umask(self._umask)
        os.fchdir(self._folder)

    def _raw_environment(self) -> Dict[Any, Any]:
        return dict(os.environ._data)  # type: ignore[attr-defined]

    def _restore_environment(self) -> None:
        if os.environ._data == self._raw:  # type: ignore[attr-defined]
            return
        for name in set(os.environ) - set(self._environment):
            del os.environ[name]
        for name, value in self._environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value

    def _signals(self) -> None:
        for timer in _TIMERS:
            _signal.setitimer(timer, 0)
        now: List[Any] = [_getsignal(n) for n in _NUMBERS]
        if now != self._handlers:
            for number, was, is_now in zip(_NUMBERS, self._handlers, now):
                if was is not is_now and was is not None:
                    _setsignal(number, was)
        if signal.pthread_sigmask(signal.SIG_BLOCK, ()) != self._mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _interpreter(self) -> None:
        if _locale.setlocale(_locale.LC_ALL, None) != self._locale:
            _locale.setlocale(_locale.LC_ALL, self._locale)
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)
        if gc.isenabled() != self._gc:
            (gc.enable if self._gc else gc.disable)()
        sys.settrace(None)
        sys.setprofile(None)

    def _restore_limits(self) -> None:
        """A soft limit can be raised again, up to its hard one."""
        for number, (soft, hard) in zip(_LIMITS, self._limits):
            now = resource.getrlimit(number)
            if now != (soft, hard):
                resource.setrlimit(number, (soft if now[1] == hard else now[1], now[1]))
