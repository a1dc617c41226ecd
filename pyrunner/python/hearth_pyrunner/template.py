"""A template process: it does the imports once, never runs a call, and forks the
children that do, or further templates that begin with its imports. Where an import has
left threads alive it must not fork: then the process serves by itself, once."""

from __future__ import annotations

import gc
import os
import sys
import time
from typing import Any, Callable, List, Mapping, Optional, Protocol, Set

from . import birth, channel, descriptors, loader, message, process, reseed, stdio, surroundings

# Loads what a mode needs, from the fields of Load after the mode; what it returns
# has serve(descriptor, streams), which never returns.
Load = Callable[[List[message.Bytes]], Any]


class Door(Protocol):
    """What children enter containers by."""

    def fork(self, fields: List[message.Bytes], files: List[int]) -> int:
        """Fork for an Enter and return the process's number, here alone: the process goes
        through the door and never comes back. Raises OSError."""

    def settle(self) -> None:
        """Do for all forks to come what can be done once the imports are frozen."""

    def forked(self) -> None:
        """Do for the next fork what nobody waits for."""


# How a child ends that cannot speak over its control socket any more; package
# template knows it too.
LOST = 217


class Template:
    """Owns the control socket and the children of one process."""

    def __init__(
        self, control: int, modes: Mapping[str, Load], forks: birth.Forks, door: Optional[Door] = None
    ) -> None:
        """door is what children enter containers by."""
        self._forks = forks
        self._door = door
        self._leads = True  # its session, or shall not
        self._conn = channel.ControlChannel(control)
        self._modes = modes
        self._streams = stdio.Streams()
        self._pid = os.getpid()
        self._children: Set[int] = set()
        self._loaded: Any = None

    def run(self) -> "Template":
        """Do as told until the other side goes; then nothing of ours is left. Returns
        only in a forked process, what that is: a template of its own."""
        try:
            return self._run()
        except (channel.Closed, BrokenPipeError, ConnectionResetError):
            process.end_children()
            os._exit(0)
        except BaseException as error:
            self._abort(error)
            raise

    def _run(self) -> "Template":
        process.adopt_orphans()
        while True:
            kind, fields = self._conn.receive()
            if not self._leads:
                # Who has told us something knows of us. Until then we are in the
                # process group of the template that we come from, and end with it.
                os.setsid()
                self._leads = True
            grown = self._steps[kind](self, fields)
            if grown is not None:
                return grown

    def _load(self, fields: List[message.Bytes]) -> None:
        mode = message.text(fields[0])
        gc.disable()  # until the freeze: a collection would only move pages
        began = time.monotonic()
        try:
            loaded = self._modes[mode](fields[1:])
        except loader.Refused as error:
            self._only_here()
            self._streams.flush()
            self._conn.send(message.REFUSED, error.code, error.text)
            return
        took = time.monotonic() - began
        self._only_here()
        self._loaded = loaded
        self._streams.flush()
        ended = process.end_children()
        gc.collect()
        gc.freeze()
        if self._door is not None:
            self._door.settle()
        ours = [self._conn.fileno(), *self._streams.ours()]
        opened = descriptors.listing(ours)
        self._conn.send(message.LOADED, process.threads(), len(ended), int(took * 1e6), *opened)

    def _only_here(self) -> None:
        """End a child that the import has forked and that came back with it."""
        if os.getpid() != self._pid:
            os._exit(0)

    def _fork(self, _: List[message.Bytes]) -> None:
        control = self._conn.take_descriptor()
        pid = self._forks.fork(birth.CHILD)
        if pid == 0:
            self._become(control)
        os.close(control)
        self._children.add(pid)
        self._conn.send(message.FORKED, pid)

    def _grow(self, fields: List[message.Bytes]) -> Optional["Template"]:
        """Fork a template. The parent answers; the child returns what it is."""
        kin = message.number(fields[0])
        control, *streams = self._conn.take_descriptors()
        gc.freeze()  # before the first load nothing is frozen yet
        parent = os.getpid() if kin == birth.CHILD else os.getppid()
        pid = self._forks.fork(kin)
        if pid == 0:
            return self._grown(control, streams, fields, parent)
        for fd in (control, *streams):
            os.close(fd)
        if kin == birth.CHILD:
            self._children.add(pid)
        self._conn.send(message.FORKED, pid)
        return None

    def _grown(self, control: int, streams: List[int], fields: List[message.Bytes], parent: int) -> "Template":
        """Be a template of our own, with nothing of the other one's but its imports. What
        can be used again is: a new object costs a page."""
        self._leads = message.number(fields[0]) == birth.CHILD
        if self._leads:
            os.setsid()
        process.die_with(parent)
        self._conn.close()
        descriptors.close_all_but([control, *streams])
        surroundings.take(message.text(fields[1]), fields[2:], streams)
        reseed.reseed()
        self._conn.reopen(control)
        self._streams.renew()
        self._pid, self._children, self._loaded = os.getpid(), set(), None
        return self

    def _enter(self, fields: List[message.Bytes]) -> None:
        """Fork a process that enters a container."""
        files = self._conn.take_descriptors()
        if self._door is None:
            raise message.Malformed("this template has no door")
        try:
            self._conn.tell(message.FORKED, self._door.fork(fields, files))
        except OSError as error:
            self._conn.send(message.REFUSED, message.FORK_FAILED, str(error))
        for fd in files:
            os.close(fd)
        self._door.forked()

    def _become(self, control: int) -> None:
        """Be a child: never returns into the template's loop."""
        try:
            os.setsid()
            process.die_with(self._pid)
            process.adopt_orphans()
            self._conn.close()
            reseed.reseed()
        except BaseException as error:
            self._abort(error)
        self._begin(control)

    def _serve(self, _: List[message.Bytes]) -> None:
        """Answer calls here, because the imports have left threads alive."""
        self._begin(self._conn.take_descriptor())

    def _begin(self, control: int) -> None:
        """Answer calls until the other side goes."""
        try:
            gc.enable()
            self._loaded.serve(control, self._streams)
        except (channel.Closed, BrokenPipeError, ConnectionResetError):
            process.end_children()
            os._exit(0)
        except BaseException as error:
            self._abort(error)

    def _abort(self, error: BaseException) -> None:
        try:
            os.write(2, f"hearth: the process cannot go on: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(LOST)

    def _reap(self, fields: List[message.Bytes]) -> None:
        pid = message.number(fields[0])
        if pid not in self._children:
            raise message.Malformed(f"{pid} is no child")
        _, status = os.waitpid(pid, 0)
        self._children.discard(pid)
        ended = process.end_children(self._children)
        self._conn.send(message.REAPED, pid, status, len(ended))

    def _list(self, _: List[message.Bytes]) -> None:
        self._conn.send(message.LISTED, *sorted({name.partition(".")[0] for name in list(sys.modules)}))

    _steps = {
        message.LOAD: _load,
        message.FORK: _fork,
        message.REAP: _reap,
        message.SERVE: _serve,
        message.GROW: _grow,
        message.ENTER: _enter,
        message.LIST: _list,
    }
