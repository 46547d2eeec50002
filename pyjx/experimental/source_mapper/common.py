"""Stages of compilation whose texts have source maps."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyjx.experimental.source_mapper.maps import SourceMap
from pyjx.lazy import directory
from pyjx.runtime.jit import jit

__all__ = [
    "CompileFn", "GenerateDumpFn", "Pass", "SourceMapDump", "all_passes", "compile_with_env",
    "filter_passes", "register_pass",
]
__dir__ = directory(__name__, __all__)


@dataclass(frozen=True)
class SourceMapDump:
    """The text of a stage and its map."""

    source_map: SourceMap
    generated_code: str
    pass_name: str


class CompileFn(Protocol):
    """Brings a function to a stage: `(work_dir, f, f_args, f_kwargs) -> what it is there`."""

    def __call__(self, work_dir: str, f: Any, f_args: Any, f_kwargs: Any, **kwargs: Any) -> Any: ...


class GenerateDumpFn(Protocol):
    """Makes the text and the map of what a `CompileFn` gives."""

    def __call__(self, compile_result: Any, **kwargs: Any) -> SourceMapDump: ...


@dataclass(frozen=True)
class Pass:
    """A stage of compilation."""

    name: str
    compile_fn: CompileFn
    generate_dump: GenerateDumpFn


_passes: dict[str, Pass] = {}


def register_pass(pass_: Pass) -> None:
    """Add a stage.

    Raises:
      ValueError: there is one of its name.
    """
    if pass_.name in _passes:
        raise ValueError(f"register_pass: there is a pass named {pass_.name!r} already")
    _passes[pass_.name] = pass_


def all_passes() -> Sequence[Pass]:
    """The stages: `jaxpr`, `hlo:stable-hlo`, `hlo:original` and `hlo:optimized`, and those that
    have been added."""
    return list(_passes.values())


def filter_passes(regex: str) -> Sequence[Pass]:
    """The stages whose names match.

    >>> [p.name for p in filter_passes("hlo:.*")]
    ['hlo:stable-hlo', 'hlo:original', 'hlo:optimized']
    """
    return [p for p in _passes.values() if re.match(regex, p.name)]


def compile_with_env(f: Callable[..., Any], f_args: Any, f_kwargs: Any,
                     env_flags: Mapping[str, str], compiler_flags: Mapping[str, Any]) -> Any:
    """Compile a function under environment variables, and with flags of XLA."""
    saved = {name: os.environ.get(name) for name in env_flags}
    os.environ.update(env_flags)
    try:
        return jit(f).lower(*f_args, **f_kwargs).compile(dict(compiler_flags))
    finally:
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
