"""`emit-hlo`: show what a Python function becomes, stage by stage.

    emit-hlo model.py:loss "f32[8,128]" "f32[128,10]" --grad --emit stablehlo
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import importlib.util
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import pyjx as jax
from pyjx import configuration, not_yet
from pyjx.core import dtypes, frames

_SPEC = re.compile(r"^(?P<dtype>[A-Za-z]\w*(?:<\w+>)?)(?:\[(?P<shape>[\d,\s]*)\])?$")
STAGES = ("jaxpr", "stablehlo", "hlo", "hlo-opt", "cost")


class UsageError(Exception):
    """The command line asks for something that cannot be had."""


def parse_spec(text: str) -> Any:
    """The argument that a spec such as `f32[8,128]`, `key<fry>[]` or `3.5` stands for.

    >>> parse_spec("f32[8,128]")
    ShapeDtypeStruct(shape=(8, 128), dtype=float32)
    """
    match = _SPEC.match(text.strip())
    if match:
        dtype = _dtype_named(match["dtype"])
        if dtype is None:
            raise UsageError(
                f"argument {text!r}: there is no dtype {match['dtype']!r}; write f32, bf16, i32, "
                "bool, c64, key<fry> or another short or NumPy name."
            )
        dims = [int(d) for d in (match["shape"] or "").split(",") if d.strip()]
        return jax.ShapeDtypeStruct(tuple(dims), dtype)
    for convert in (int, float, complex):
        try:
            return convert(text)
        except ValueError:
            continue
    raise UsageError(
        f"argument {text!r}: expected a type such as f32[8,128], or a number."
    )


def _dtype_named(name: str) -> Any:
    if name.startswith("key<"):
        # most programs do without the generators
        from pyjx.random import base, ciphers, implementations  # noqa: F401

        generators = implementations.implementations.values()
        return next((base.key_dtype(g) for g in generators if name == f"key<{g.tag}>"), None)
    return dtypes.dtype_of_short_name(name)


def load_function(target: str) -> Callable[..., Any]:
    """The function that `FILE.py:NAME` or `module:NAME` names."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{target!r}: expected FILE.py:FUNCTION or module:FUNCTION.")
    module = _load_file(place) if place.endswith(".py") else _load_module(place)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            hint = not_yet.hint(getattr(value, "__name__", ""), part)
            raise UsageError(f"{place} has no function {name!r}{hint or _instead_of(part, value)}")
        value = getattr(value, part)
    if not callable(value):
        raise UsageError(f"{target!r} is a {type(value).__name__}, not a function.")
    return value  # type: ignore[no-any-return]


def _instead_of(name: str, place: Any) -> str:
    """Which functions there are in the place of one that is not: all of few, of many those of
    similar names."""
    known = [n for n in dir(place) if n[0] != "_" and callable(getattr(place, n))]
    if len(known) > 12:
        near = difflib.get_close_matches(name, known, n=5)
        return f". Did you mean {' or '.join(near)}?" if near else "."
    return f". It has: {', '.join(known)}." if known else "."


def _load_file(path: str) -> Any:
    if not os.path.isfile(path):
        raise UsageError(f"there is no file {path!r}.")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> Any:
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        told = f"there is no module {error.name!r}." if error.name else str(error)
        raise UsageError(told) from None


def _tell_of_narrowing(args: Sequence[Any]) -> None:
    """Say on stderr which arguments are not of the type that the command line names."""
    given = {a.dtype for a in args if isinstance(a, jax.ShapeDtypeStruct)}
    changed = ", ".join(sorted([
        f"{dtypes.short_dtype_name(d)} is {dtypes.short_dtype_name(used)}"
        for d in given if (used := dtypes.canonicalize_dtype(d, True)) != d]))
    if changed:
        print(f"emit-hlo: note: {changed} here, as 64-bit types are off; set JAX_ENABLE_X64=1 to "
              "have them.", file=sys.stderr)


def emit(fun: Callable[..., Any], args: Sequence[Any], stage: str) -> str:
    """The text of one stage of `fun` for arguments like `args`."""
    traced = jax.jit(fun).trace(*args)
    if stage == "jaxpr":
        return str(traced.jaxpr)
    lowered = traced.lower()
    if stage == "stablehlo":
        return lowered.as_text()  # type: ignore[no-any-return]
    if stage == "hlo":
        return lowered.as_text("hlo")  # type: ignore[no-any-return]
    if stage == "hlo-opt":
        with configuration.cache(False):  # a program on disk shows where its source was then
            return lowered.compile().as_text()  # type: ignore[no-any-return]
    compiled = lowered.compile()
    return json.dumps(_costs(compiled), indent=2, sort_keys=True)


def _costs(compiled: Any) -> dict[str, Any]:
    costs = {k: v for k, v in (compiled.cost_analysis() or {}).items() if "{" not in k}
    memory = compiled.memory_analysis()
    if memory is not None:
        for name in ("argument", "output", "temp", "alias", "generated_code"):
            costs[f"{name} size in bytes"] = getattr(memory, f"{name}_size_in_bytes")
    return costs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="emit-hlo", description="Show what a Python function becomes on its way to XLA.",
    )
    parser.add_argument("function", help="FILE.py:FUNCTION or module:FUNCTION")
    parser.add_argument("arguments", nargs="*", metavar="ARG",
                        help="a type such as f32[8,128] or key<fry>[], or a number, for each "
                             "argument")
    parser.add_argument("--emit", choices=STAGES, default="stablehlo",
                        help="the stage to show (default: stablehlo)")
    parser.add_argument("--grad", action="store_true",
                        help="of the gradient with respect to the first argument")
    parser.add_argument("--vmap", action="store_true",
                        help="of the function mapped over the first axis of its arguments")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="write there, not to the terminal (which is `-`)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the result is the exit status."""
    options = _parser().parse_args(argv)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what the user's code prints
            fun = load_function(options.function)
            args = [parse_spec(a) for a in options.arguments]
            _tell_of_narrowing(args)
            if options.grad:
                fun = jax.grad(fun)
            if options.vmap:
                fun = jax.vmap(fun)
            text = emit(fun, args, options.emit)
        write(text.rstrip("\n") + "\n", options.output)
    except UsageError as error:
        print(f"emit-hlo: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        print(f"emit-hlo: {type(error).__name__}: {error}{_place_of(error)}", file=sys.stderr)
        return 1
    return 0


def write(text: str, path: str | None) -> None:
    """Write to the file `path`, or to the terminal where that is None or `-`.

    A regular file, or the one that a link leads to, is replaced as a whole or not at all and keeps
    its mode. Devices and pipes are written to.
    """
    found = None
    if path is not None and path != "-":
        try:
            descriptor = os.open(path, os.O_WRONLY)  # neither makes nor empties it
        except FileNotFoundError:
            return _replace(path, text, None)
        with open(descriptor, "wb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                file.write(text.encode())
                return None
        # It may be where the output goes anyway, as /dev/stdout in `emit-hlo ... > file`.
        if not os.path.samestat(found, os.fstat(1)):
            return _replace(path, text, found)
    return _write_to_terminal(text)


def _write_to_terminal(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer must not fail once more at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # `emit-hlo ... | head`
            raise


def _replace(path: str, text: str, found: os.stat_result | None) -> None:
    """Put a file where `path` leads, with the owner and mode of the one that was `found` there."""
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".emit-hlo-{os.getpid()}-{time.time_ns()}")
    try:
        with open(temporary, "xb") as file:
            file.write(text.encode())
            made = os.fstat(file.fileno())
        if found is not None:
            if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
                with contextlib.suppress(PermissionError):
                    os.chown(temporary, found.st_uid, found.st_gid)
            os.chmod(temporary, stat.S_IMODE(found.st_mode))
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:  # the user knows this name only
            raise OSError(error.errno, error.strerror, path) from None
        raise


def _place_of(error: Exception) -> str:
    """Where in the user's code an error arose."""
    place, tb = "", error.__traceback__
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        if file != __file__ and not frames.is_internal(file) and os.path.isfile(file):
            place = f"\n  at {file}:{tb.tb_lineno}"
        tb = tb.tb_next
    return place


if __name__ == "__main__":
    sys.exit(main())
