"""The entry: what the process that Go has started becomes.

    main(package, "template")          a template process, control socket on descriptor 3
    main(package, "base")              the same, of which many others grow
    main(package, "executor", ...)     an executor: control socket, listener, output limit
    main(package, "zygote", network)   a worker's template process: the same, and a network
                                       namespace to join
"""

from __future__ import annotations

import faulthandler
import sys
from typing import TYPE_CHECKING, Callable, Dict, List

if TYPE_CHECKING:
    from . import template

CONTROL = 3

Run = Callable[[List[str]], None]


def _template() -> Run:
    from . import birth, descriptors, function, template

    # What a template can load.
    modes = {"function": function.load}

    def run(_: List[str]) -> None:
        descriptors.close_all_but([CONTROL])
        forks = birth.Forks()
        forks.begin()
        _live(template.Template(CONTROL, modes, forks))

    return run


def _base() -> Run:
    from . import rehearsal

    become = _template()

    def run(arguments: List[str]) -> None:
        rehearsal.rehearse()
        become(arguments)

    return run


def _zygote() -> Run:
    from . import hugepages

    with hugepages.gathered():
        import cloudpickle  # noqa: F401  what every child has

        from . import birth, descriptors, entrance, rehearsedcalls, template, zygote

    def run(arguments: List[str]) -> None:
        network = int(arguments[0])
        descriptors.close_all_but([CONTROL, network])
        zygote.isolate(network)
        rehearsedcalls.rehearse()
        imports, forks = zygote.Imports(), birth.Forks()
        forks.begin()
        _live(template.Template(CONTROL, {"imports": imports.load}, forks, entrance.Door(forks, imports.variables)))

    return run


def _live(process: template.Template) -> None:
    """Be a template, and after a fork the one that was grown."""
    while True:
        process = process.run()


def _executor() -> Run:
    from . import executor

    return executor.main


# What is imported is what the entry needs: a start is short.
ENTRIES: Dict[str, Callable[[], Run]] = {"template": _template, "base": _base, "executor": _executor, "zygote": _zygote}


def main(package: str, entry: str, *arguments: str) -> None:
    """Become what entry says; package is the folder that this package lies in."""
    run = ENTRIES[entry]()
    sys.path.remove(package)  # everything of ours is imported by now
    faulthandler.enable(file=2)
    run(list(arguments))
