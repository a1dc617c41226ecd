"""The entry: what the process that Go has started becomes.

    main(package, "template")          a template process, control socket on descriptor 3
"""

from __future__ import annotations

import faulthandler
import sys
from typing import Callable, Dict, List

from . import function, template

CONTROL = 3

# What a template can load.
MODES = {"function": function.load}


def _template(_: List[str]) -> None:
    template.Template(CONTROL, MODES).run()


ENTRIES: Dict[str, Callable[[List[str]], None]] = {"template": _template}


def main(package: str, entry: str, *arguments: str) -> None:
    """Become what entry says; package is the folder that this package lies in."""
    sys.path.remove(package)  # everything of ours is imported by now
    faulthandler.enable(file=2)
    ENTRIES[entry](list(arguments))
