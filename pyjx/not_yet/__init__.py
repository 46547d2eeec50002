"""Names of JAX that pyjx has not yet, and what to use meanwhile.

Modules of `TABLES` can be imported all the same, with all of their names (`stand_ins.py`), because
libraries import them where they may not need them. Any other name says that it is not there when it
is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from opcode import opmap
from operator import attrgetter
from pathlib import Path
from types import ModuleType

from pyjx.guards import guard
from pyjx.jax_imports import asked_by_import, asked_by_statement, under_alias, users_name

# Which table has the names of a module and of what is below it.
TABLES: dict[str, str] = {
    "pyjx.collect_profile": "others.txt",
    "pyjx.experimental.jax2tf": "others.txt",
    "pyjx.experimental.mosaic": "mosaic.txt",
    "pyjx.experimental.pallas": "pallas.txt",
    "pyjx.experimental.thunky": "others.txt",
    "pyjx.extend.pallas": "pallas.txt",
    "pyjx.tools.pgo_nsys_converter": "others.txt",
}

NAMES: dict[str, str] = {
    "pyjx.tools.jax_to_ir":
        "jax_to_tf tf_wrap_with_input_names",
}

# What serves meanwhile, and the names or modules that it serves for.
SERVES: dict[str, str] = {
    "jax.jit(f).lower(*args).as_text(), which is StableHLO":
        "pyjx.experimental.jax2tf pyjx.tools.jax_to_ir.jax_to_tf "
        "pyjx.tools.jax_to_ir.tf_wrap_with_input_names",
    "jax.numpy and jax.lax, which XLA fuses, or jax.ffi.ffi_call for a kernel of your own":
        "pyjx.experimental.mosaic pyjx.experimental.pallas pyjx.experimental.thunky "
        "pyjx.extend.pallas",
    "jax.profiler":
        "pyjx.collect_profile",
}
INSTEAD: dict[str, str] = {name: said for said, names in SERVES.items() for name in names.split()}


# Names that JAX had once, or never, as what other packages call so; and what to use. They are read
# when a name is asked for that is not there.
other_names: dict[str, str] = {}


def meanwhile(name: str) -> str:
    """The sentence that says what serves for a name, or for what it is below.

    >>> meanwhile("pyjx.collect_profile")
    ' Meanwhile use jax.profiler.'
    """
    while name and name not in INSTEAD:
        name = name.rpartition(".")[0]
    return f" Meanwhile use {INSTEAD[name]}." if name else ""


# Where a name is looked for that another package has not, in this order.
_PLACES = ("numpy", "nn", "scipy.special", "lax", "random", "numpy.linalg", "ops", "tree_util",
           "scipy.linalg", "", "experimental", "custom_batching", "ad_checkpoint")
# Modules that have one subject wherever they are looked for, as `lib` and `core` have not.
_SUBJECTS = ("debug", "fft", "image", "initializers", "jet", "lax", "linalg", "nn", "numpy", "ode",
             "pallas", "profiler", "random", "scipy", "sharding", "sparse", "tree", "tree_util",
             "typing")


def hint(package: str, name: str) -> str:
    """What to say of a name that a package has not: nothing, unless JAX has it there or in another
    package, once had it, or is often thought to have it.

    >>> hint("pyjx.tools.jax_to_ir", "jax_to_tf")[:31], hint("pyjx", "tree_map")
    (': it is not there yet. Meanwhil', '. Use jax.tree.map.')
    >>> hint("pyjx", "scan")
    '. Use jax.lax.scan.'
    """
    if name in NAMES.get(package, "").split():
        return f": it is not there yet.{meanwhile(f'{package}.{name}')}"
    if not other_names:
        text = Path(__file__).with_name("other_names.txt").read_text(encoding="utf-8")
        other_names.update([line.partition(" ")[::2] for line in text.splitlines()])
    instead = other_names.get(f"{package}.{name}".replace("pyjx", "jax", 1))
    if not instead and package.startswith("pyjx") and not name.startswith("_"):
        flags = [x for x in (name, f"jax_{name}") if x in sys.modules["pyjx.states"].states]
        if package == "pyjx" and flags:
            return f". It is a flag: jax.config.update({flags[0]!r}, ...)."
        others = {"pyjx.Array": "", "pyjx.scipy.stats": "random"}.get(package)  # are others there
        found = [p for p in _PLACES if p != others and name in _package(p).__all__ and (
            name in _SUBJECTS or not isinstance(getattr(_package(p), name), ModuleType))]
        instead = f"jax.{found[0]}.{name}".replace("..", ".") if found else None
    return f". Use {instead}." if instead else ""


def names_elsewhere() -> list[str]:
    """The names of all packages that a hint may name."""
    return [name for place in _PLACES for name in _package(place).__all__]


def _package(place: str) -> ModuleType:
    pyjx = sys.modules["pyjx"]
    return attrgetter(place)(pyjx) if place else pyjx


def lacking(module: str, name: str) -> AttributeError | ImportError:
    """The error of a name that a module has not. Where that says what to use, Python is not to
    guess another name. `import` that asks hears nothing: it goes on to look for a module, if this
    is a package; if not, `from` would pass over an AttributeError."""
    frame = sys._getframe(2)
    said = "" if asked_by_import(frame) else hint(module, name)
    module = users_name(module)
    if said and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import {name!r} from {module!r}{said}")
    error = AttributeError(f"module {module!r} has no attribute {name!r}{said}")
    if said:
        error.name = ""
    return error


class ImportHint:
    """The last finder of modules: finds those that stand in for what is not there yet, and lets
    `import package.name` and `from package import name` say of another such name what the
    attribute says."""

    @guard
    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname.startswith(tuple(TABLES)):
            # It comes late because it imports pyjx.lazy, which has this finder.
            return importlib.import_module("pyjx.not_yet.stand_ins").spec(fullname)
        if fullname == "jax" and asked_by_import(sys._getframe(1)):  # no other finder has found it
            raise ModuleNotFoundError(
                "No module named 'jax', and pyjx does not answer to that name here. " + (
                    "Write `import pyjx as jax`; or, for programs that import jax, run "
                    "`python -m pyjx FILE` or `import pyjx.as_jax` first."
                    if asked_by_statement(sys._getframe(1)) else
                    "What has jax's names, as its pickles have, is read after `import "
                    "pyjx.as_jax`, or in a program that `python -m pyjx FILE` runs."), name="jax")
        package, _, name = fullname.rpartition(".")
        of_jax = under_alias() and f"{package}.".startswith("jax.")
        said = hint(f"pyjx{package[3:]}" if of_jax else package, name)
        if said and asked_by_import(sys._getframe(1)):
            # It has no attribute `name`: `from` passes over an error that names what it looks for.
            raise ModuleNotFoundError(f"cannot import {name!r} from {package!r}{said}")
        return None
