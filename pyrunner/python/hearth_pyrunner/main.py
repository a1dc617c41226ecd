"""The entry: what the process that Go has started becomes.

    main(package, "template")          a template process, control socket on descriptor 3
    main(package, "executor", ...)     an executor: control socket, listener, output limit
"""

from __future__ import annotations

import faulthandler
import sys
from typing import Callable, Dict, List, Optional

CONTROL = 3

Run = Callable[[List[str]], None]


def _template() -> Run:
    from . import descriptors, function, template

    # What a template can load.
    modes = {"function": function.load}

    def run(_: List[str]) -> None:
        descriptors.close_all_but([CONTROL])
        process: Optional[template.Template] = template.Template(CONTROL, modes)
        while process is not None:
            process = process.run()

    return run


def _executor() -> Run:
    from . import executor

    return executor.main


# What is imported is what the entry needs: a start is short.
ENTRIES: Dict[str, Callable[[], Run]] = {"template": _template, "executor": _executor}


def main(package: str, entry: str, *arguments: str) -> None:
    """Become what entry says; package is the folder that this package lies in."""
    run = ENTRIES[entry]()
    sys.path.remove(package)  # everything of ours is imported by now
    faulthandler.enable(file=2)
    run(list(arguments))
