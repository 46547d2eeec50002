"""`python -m pyjx FILE|-m MODULE|-c CODE [ARGUMENTS]`: run a program that was written for jax.

The program runs as Python itself would run it, and `import jax` in it gives pyjx.
"""

from __future__ import annotations

import argparse
import builtins
import importlib
import importlib.util
import io
import os
import re
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from emit_hlo.arguments import instead_of

USAGE = ("usage: python -m pyjx FILE|- [ARGUMENTS]\n"
         "       python -m pyjx -m MODULE [ARGUMENTS]\n"
         "       python -m pyjx -c CODE [ARGUMENTS]")


class Parser(argparse.ArgumentParser):
    """One that says what is meant by an option that is not known."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (--?[\w-]+)", message)
        if unknown:
            message += instead_of(unknown[1], self._option_string_actions)
        super().error(message)


def is_program(given: Sequence[str]) -> bool:
    """Whether the arguments of `python -m pyjx` name a program."""
    return bool(given) and (given[0] in ("-m", "-c", "-") or os.path.exists(given[0]))


def parted(parser: argparse.ArgumentParser, arguments: Sequence[str] | None
           ) -> tuple[argparse.Namespace, list[str]]:
    """The options of a command, and the program that it is to run, with its arguments."""
    parser.add_argument("program", nargs="*", metavar="FILE|-m MODULE|-c CODE",
                        help="the program and its arguments")
    given = list(sys.argv[2:] if arguments is None else arguments)
    start = 0
    while start < len(given) and given[start][:1] == "-" and given[start] not in ("-", "-m", "-c"):
        start += 2 if given[start] == "-o" else 1
    options, program = parser.parse_args(given[:start]), given[start:]
    if not is_program(program):
        parser.error(f"there is no file {program[0]}" if program else
                     "name the program that is to run")
    return options, program


def main(given: Sequence[str]) -> int:
    """Run the program that the arguments name; 2 if they name none."""
    option, *rest = given
    find = _FORMS.get(option, _file)
    if option in ("-m", "-c"):
        if not rest:
            print(f"argument expected for the {option} option\n{USAGE}", file=sys.stderr)
            return 2
        option, *rest = rest
    try:
        importlib.import_module("pyjx.alias").install_when_asked()
    except ValueError as error:  # of PYJX_AS_JAX
        print(f"python -m pyjx: {error}", file=sys.stderr)
        return 2
    try:
        # The first entry of sys.path is the current folder, as we were run by `python -m`.
        find(option, rest)()
    except SystemExit:
        raise
    except BaseException as error:
        _report(error)
        raise
    return 0


def _report(error: BaseException) -> None:
    """Show an error without the frames of this file and of what came before; Python, which ends
    the process as the error demands, is to say no more."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename != __file__:
        place = place.tb_next
    while place is not None and place.tb_frame.f_code.co_filename == __file__:
        place = place.tb_next
    error.__traceback__ = place
    sys.excepthook(type(error), error, place)
    sys.excepthook = lambda *_: None


def _new_main(**attributes: Any) -> dict[str, Any]:
    """The names of a new module `__main__`."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    vars(module).update({"__builtins__": builtins, **attributes})
    return vars(module)


def _folder_first(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _file(path: str, arguments: Sequence[str]) -> Callable[[], Any]:
    sys.argv = [path, *arguments]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz", ".pyc")):
        return lambda: runpy.run_path(path, run_name="__main__")
    _folder_first(os.path.dirname(os.path.realpath(path)))
    place = os.path.abspath(path)
    with io.open_code(place) as file:
        source = file.read()
    return _runs(source, place, _new_main(__file__=place, __cached__=None))


def _standard_input(_: str, arguments: Sequence[str]) -> Callable[[], Any]:
    sys.argv = ["-", *arguments]
    _folder_first("")
    return _runs(sys.stdin.read(), "<stdin>", _new_main())


def _command(code: str, arguments: Sequence[str]) -> Callable[[], Any]:
    sys.argv = ["-c", *arguments]
    _folder_first("")
    return _runs(code, "<string>", _new_main())


def _runs(source: str | bytes, place: str, names: dict[str, Any]) -> Callable[[], Any]:
    code = compile(source, place, "exec", dont_inherit=True)
    return lambda: exec(code, names)


def _module(name: str, arguments: Sequence[str]) -> Callable[[], Any]:
    sys.argv = ["-m", *arguments]
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    loader: Any = None if spec is None else spec.loader
    code = loader.get_code(spec.name) if spec and hasattr(loader, "get_code") else None
    if spec is None or code is None:
        print(f"{sys.executable}: No module named {name}", file=sys.stderr)
        sys.exit(1)
    sys.argv[0] = spec.origin or name
    names = _new_main(__file__=spec.origin, __cached__=spec.cached, __spec__=spec,
                      __loader__=loader, __package__=spec.parent)
    return lambda: exec(code, names)


_FORMS: dict[str, Callable[[str, Sequence[str]], Callable[[], Any]]] = {
    "-m": _module, "-c": _command, "-": _standard_input,
}
