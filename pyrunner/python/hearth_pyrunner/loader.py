"""Loading a handler: module.function, the module a file beneath the working folder."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any, Callable, Tuple

from . import message, singlethreaded, texts

MAX_TEXT = 4 << 10


class Refused(Exception):
    """No handler: a code for the wire and a text for the function's author."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Handler:
    """A function that can be called with an event."""

    def __init__(self, function: Callable[..., Any], takes_context: bool, place: str) -> None:
        self.function = function
        self.takes_context = takes_context
        self.place = place  # file:line

    def call(self, event: Any, context: Any) -> Any:
        """Call the function with as much as it takes."""
        return self.function(event, context) if self.takes_context else self.function(event)


def load(folder: str, module: str, function: str) -> Handler:
    """Import the module and return its function. Raises Refused."""
    _prepare(folder, module)
    return _handler(_import(folder, module), module, function)


def _prepare(folder: str, module: str) -> None:
    os.chdir(folder)
    top = module.partition(".")[0]
    if top in sys.modules or top in sys.builtin_module_names:
        raise Refused(
            message.HANDLER_INVALID,
            f"module {top}: the name is taken by a module of Python itself: give {top}.py another name",
        )
    vendor = os.path.join(folder, "vendor")
    sys.path[:0] = [folder, vendor] if os.path.isdir(vendor) else [folder]
    sys.argv = [os.path.join(folder, *module.split(".")) + ".py"]
    # A .pyc is checked by second and size only: sources that were replaced within a
    # second would run as they were before.
    sys.dont_write_bytecode = True


def _import(folder: str, name: str) -> Any:
    try:
        with singlethreaded.asked():
            module = importlib.import_module(name)
    except BaseException as error:
        raise Refused(message.LOAD_FAILED, _import_failed(folder, name, error)) from None
    path = os.path.realpath(getattr(module, "__file__", None) or "/")
    if not path.startswith(folder.rstrip("/") + "/"):
        raise Refused(message.HANDLER_INVALID, f"module {name} is {path}: it must be a file beneath {folder}")
    return module


def _import_failed(folder: str, name: str, error: BaseException) -> str:
    hint = _way_out(folder, name, error)
    room = MAX_TEXT - len(hint.encode("utf-8", "replace")) - 1
    return hint + "\n" + texts.tail(_without_importlib(error), room)


def _way_out(folder: str, name: str, error: BaseException) -> str:
    where = _where(folder, error)
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] != name.partition(".")[0]:
        return texts.head(
            f"{where}: module {error.name} is not there for {sys.executable}: put it beside the handler "
            f"(python3 -m pip install --target . {error.name.partition('.')[0]}) or name an interpreter that has it",
            MAX_TEXT // 2,
        )
    if isinstance(error, SyntaxError):
        return texts.head(f"{error.filename or where}:{error.lineno}: {error.msg}: correct the line", MAX_TEXT // 2)
    if isinstance(error, SystemExit):
        return f"{where}: the module called sys.exit({error.code!r:.100}) while it was imported: put that under if __name__ == '__main__'"
    return texts.head(f"{where}: {type(error).__name__} while module {name} was imported: {texts.message(error)}", MAX_TEXT // 2)


def _where(folder: str, error: BaseException) -> str:
    """Return file:line of the innermost frame that is the user's own."""
    where = folder
    tb = error.__traceback__
    while tb is not None:
        path = tb.tb_frame.f_code.co_filename
        if path.startswith(folder):
            where = f"{path}:{tb.tb_lineno}"
        tb = tb.tb_next
    return where


def _without_importlib(error: BaseException) -> str:
    """Return the traceback without the frames of ours and of the import system."""
    skip = error.__traceback__
    while skip is not None and skip.tb_next is not None:
        path = skip.tb_next.tb_frame.f_code.co_filename
        if "importlib" not in path and os.path.dirname(path) != os.path.dirname(__file__):
            break
        skip = skip.tb_next
    return texts.trace(error, skip)


def _handler(module: Any, name: str, function: str) -> Handler:
    path = module.__file__
    if not hasattr(module, function):
        raise Refused(message.HANDLER_INVALID, f"{path} has no function {function}: {_names(module, name)}")
    found = getattr(module, function)
    if isinstance(found, type) or not callable(found):
        kind = "a class" if isinstance(found, type) else f"of type {type(found).__name__}"
        raise Refused(message.HANDLER_INVALID, f"{path}: {function} is {kind}, not a function: def {function}(event):")
    if inspect.iscoroutinefunction(found):
        raise Refused(
            message.HANDLER_INVALID,
            f"{_place(found, path)}: {function} is async: make it a plain function that calls asyncio.run(...)",
        )
    return Handler(found, _takes_context(found, function, path), _place(found, path))


def _names(module: Any, name: str) -> str:
    """Say which functions the module does define."""
    names = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == name]
    return texts.head("it defines " + ", ".join(sorted(names)), 512) if names else "it defines no function"


def _place(function: Any, path: str) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{path}:{code.co_firstlineno}" if code is not None else path


def _takes_context(function: Any, name: str, path: str) -> bool:
    """Say whether a second argument is wanted: one without a default, one that is
    called context, or any number of them."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False  # C code that does not tell: the event alone
    positional, star = _positional(parameters)
    needed = [p for p in positional if p.default is p.empty]
    missing = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if len(needed) > 2 or missing or (not positional and not star):
        raise Refused(
            message.HANDLER_INVALID,
            f"{_place(function, path)}: {name}{inspect.signature(function)} cannot be called with an event: "
            f"def {name}(event): or def {name}(event, context):",
        )
    return len(needed) == 2 or star or (len(positional) > 1 and positional[1].name == "context")


def _positional(parameters: Any) -> Tuple[Any, bool]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [p for p in parameters if p.kind in kinds]
    return found, any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
