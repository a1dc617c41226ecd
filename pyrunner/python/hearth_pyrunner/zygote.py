"""Entry "zygote": a template process of a worker, which imports modules ahead and forks
what enters containers. It keeps root's rights for the sake of its children, which need
them until they are behind their walls, and lends none of them to an import."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import sys
import tempfile
from typing import Dict, Iterator, List

from . import hugepages, loader, message, process, reseed, singlethreaded, texts

_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_SLAVE = 2, 4, 0x4000, 1 << 19
_CAPABILITY_VERSION = 0x20080522
_READ_SEARCH = 1 << 2  # CAP_DAC_READ_SEARCH
_NOBODY = 65534
# A folder that imports may write to: in memory, this process's and what grows from it.
_SCRATCH = b"/dev/shm"

_libc = ctypes.CDLL(None, use_errno=True)


def isolate(network: int) -> None:
    """Enter the network namespace behind a descriptor, which is closed, and a mount
    namespace of our own. Raises OSError."""
    _must(_libc.setns(network, _CLONE_NEWNET))
    os.close(network)
    _must(_libc.unshare(_CLONE_NEWNS))
    _must(_libc.mount(None, b"/", None, _MS_REC | _MS_SLAVE, None))
    if os.path.isdir(_SCRATCH):
        _must(_libc.mount(b"scratch", _SCRATCH, b"tmpfs", _MS_NOSUID | _MS_NODEV, b"size=16m,mode=1777"))


def _must(answer: int) -> None:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Imports:
    """What a zygote has loaded; it runs nothing itself."""

    def __init__(self) -> None:
        # What the imports have put into the environment: a call's own variables are
        # put beside it.
        self.variables: Dict[str, str] = {}

    def load(self, fields: List[message.Bytes]) -> "Imports":
        """Mode "imports": import one module, by name. Raises loader.Refused."""
        name = message.text(fields[0])
        sys.dont_write_bytecode = True
        before = dict(os.environ)
        try:
            with singlethreaded.asked(), _without_rights(), hugepages.gathered():
                importlib.import_module(name)
        except BaseException as error:
            raise loader.Refused(message.LOAD_FAILED, _why(name, error)) from None
        finally:
            tempfile.tempdir = None  # children have one of their own
        shared = _shared_memory()
        if shared:
            raise loader.Refused(message.LOAD_FAILED, f"it maps memory that every process forked from it would share: {shared[0]}")
        reseed.reseed()  # the module may have given a seed
        self.variables.update((n, v) for n, v in os.environ.items() if before.get(n) != v)
        return self

    def serve(self, control: int, streams: object) -> None:
        raise message.Malformed("a zygote is entered from, not forked")


def _why(name: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and (name + ".").startswith(error.name + "."):
        return f"{sys.executable} does not have it"
    return f"the import failed: {type(error).__name__}: {texts.message(error)}"


@contextlib.contextmanager
def _without_rights() -> Iterator[None]:
    """Be nobody while the body runs: a user who may read all files, and write none and
    signal nobody. This guards against what an import does by the way, not against one that means harm: it
    could take the rights back."""
    os.setresgid(_NOBODY, _NOBODY, 0)
    os.setresuid(_NOBODY, _NOBODY, 0)  # which leaves no capability in effect
    _set_capabilities(_READ_SEARCH)
    os.environ["TMPDIR"] = os.fsdecode(_SCRATCH)
    try:
        yield
    finally:
        os.environ.pop("TMPDIR", None)
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        process.set_dumpable()  # a change of user has unset it


def _set_capabilities(effective: int) -> None:
    """Put capabilities, all below 32, in effect; what is permitted stays."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    data = (ctypes.c_uint32 * 6)()
    _must(_libc.capget(header, data))
    data[0], data[3] = effective & data[1], 0
    _must(_libc.capset(header, data))


def _shared_memory() -> List[str]:
    """Name the writable mappings that a fork does not make a copy of."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        split = [line.split(None, 5) for line in maps]
    return [mapping[-1].strip() for mapping in split if mapping[1][1] == "w" and mapping[1][3] == "s"]
