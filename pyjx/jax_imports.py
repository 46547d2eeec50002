"""Who answers `import jax` in this process.

Three states: nobody has asked for the alias, and the package jax is refused, because both packages
extend jaxlib's array class; pyjx answers under jax's name (`pyjx.as_jax`); or jax came first, and
pyjx refuses to load. jaxlib's C++ code imports modules of `jax` by itself, too: `answering` gives
it what it looks for.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import PathFinder
from opcode import opmap
from typing import Any, Protocol

from pyjx.guards import guard

_TOGETHER = "jax and pyjx cannot share a process: both extend jaxlib's array class. "


class Answer(Protocol):
    """What finds modules and the distribution of the name `jax`."""

    def find_spec(self, name: str) -> Any: ...

    def find_distributions(self, name: str | None) -> Iterable[Any]: ...


class JaxFinder:
    """The finder of `jax` and what is below it."""

    answer: Answer | None = None

    @classmethod
    @guard
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        if cls.answer is not None:
            return cls.answer.find_spec(name) if name.partition(".")[0] == "jax" else None
        if name == "jax._src" or (name == "jax" and asked_by_import(sys._getframe(1)) and (
                _is_installed())):
            raise ImportError(
                f"{_TOGETHER}This process has imported pyjx. For pyjx to answer to the name jax, "
                "write `import pyjx.as_jax` first, or run `python -m pyjx FILE`; or import from "
                "pyjx itself, as in `from pyjx import lax`.")
        return None

    @classmethod
    def find_distributions(cls, context: Any = None) -> Iterable[Any]:
        """What `importlib.metadata` knows of the name `jax`."""
        return () if cls.answer is None else cls.answer.find_distributions(
            getattr(context, "name", None))


def _is_installed() -> bool:
    """Whether the next finder finds the package jax, and not a file of the user's of that name."""
    found = PathFinder.find_spec("jax")
    folders = found.submodule_search_locations if found else None
    return any([os.path.isdir(os.path.join(folder, "_src")) for folder in folders or ()])


def _asker(frame: types.FrameType | None) -> types.FrameType | None:
    """Where what a finder was called for, from `frame`, is asked for."""
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        frame = frame.f_back
    return frame


def asked_by_import(frame: types.FrameType | None) -> bool:
    """Whether it is for an import that a finder was called from `frame`. Who only asks whether
    there is such a module, as `importlib.util.find_spec`, is to hear what there is."""
    asker = _asker(frame)
    return asker is not frame and (
        asker is None or asker.f_globals.get("__name__") != "importlib.util")


def asked_by_statement(frame: types.FrameType | None) -> bool:
    """Whether it is a statement that imports, and not what reads names, as pickle does."""
    asker = _asker(frame)
    return asker is not None and (
        asker.f_code.co_code[asker.f_lasti] == opmap["IMPORT_NAME"])


def under_alias() -> bool:
    """Whether `import jax` gives pyjx."""
    return JaxFinder.answer is not None


def users_name(module: str) -> str:
    """What a module of pyjx is called now: by jax's name under the alias."""
    return module.replace("pyjx", "jax", 1) if under_alias() else module


def refuse_beside_jax() -> None:
    """Make sure that jax has not been imported.

    Raises:
      ImportError: it has.
    """
    if JaxFinder.answer is None and sys.modules.get("jax._src") is not None:
        raise ImportError(f"{_TOGETHER}This process has imported "
                          "jax; import pyjx in another one. For pyjx to answer to the name jax, "
                          "`import pyjx.as_jax` comes before all that imports jax.")


def watch() -> None:
    """Be the first that is asked for `jax`, and keep C++ from searching for it."""
    refuse_beside_jax()
    if JaxFinder not in sys.meta_path:
        sys.meta_path.insert(0, JaxFinder)
    if JaxFinder.answer is None:
        # C++ looks this up for every array it makes; None fails at once, without any search.
        modules: Any = sys.modules
        modules["jax._src.sharding_impls"] = None


def first_spec(name: str) -> Any:
    """Put the alias in force while `name`, `jax` or what is below it, is being imported."""
    importlib.import_module("pyjx.as_jax")
    if name == "jax":
        # An import that finds its module made meanwhile takes that one's spec, and would execute
        # pyjx a second time; the spec of the alias gives the module that there is.
        sys.modules.pop("jax", None)
    return JaxFinder.find_spec(name)


class _WhenAsked:
    """Puts the alias in force when somebody imports `jax`."""

    def find_spec(self, name: str) -> Any:
        return first_spec(name)

    def find_distributions(self, name: str | None) -> Iterable[Any]:
        if name != "jax":
            return ()
        importlib.import_module("pyjx.as_jax")
        return JaxFinder.answer.find_distributions(name) if JaxFinder.answer else ()


def answer_when_asked() -> None:
    """Let pyjx answer to the name `jax` as soon as it is imported; until then nothing loads."""
    watch()
    if JaxFinder.answer is None:
        JaxFinder.answer = _WhenAsked()


def answer_with(answer: Answer) -> None:
    """Let `answer` find `jax` from now on."""
    watch()
    JaxFinder.answer = answer
    if sys.modules.get("jax._src.sharding_impls", answer) is None:
        del sys.modules["jax._src.sharding_impls"]


@contextmanager
def answering(names: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Let `import jax.x` of C++ find the given attributes, for the time of the block."""
    saved = {}
    for name in ("jax", "jax._src", *names):
        saved[name] = sys.modules.get(name)
        module = types.ModuleType(name)
        module.__path__ = []
        module.__dict__.update(names.get(name, {}))
        sys.modules[name] = module
    try:
        yield
    finally:
        for name, old in saved.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old
