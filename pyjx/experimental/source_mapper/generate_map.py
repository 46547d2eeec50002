"""Source maps of a function at stages of its compilation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyjx.experimental.source_mapper.common import Pass, SourceMapDump
from pyjx.lazy import directory

__all__ = ["generate_sourcemaps"]
__dir__ = directory(__name__, __all__)


@dataclass(frozen=True)
class SourceMapGenerator:
    """A function whose calls give the dumps of stages."""

    f: Callable[..., Any]
    passes: Sequence[Pass]
    options: dict[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[SourceMapDump]:
        return [p.generate_dump(p.compile_fn("", self.f, args, kwargs), **self.options)
                for p in self.passes]


def generate_sourcemaps(f: Callable[..., Any], passes: Sequence[Pass], **pass_kwargs: Any
                        ) -> SourceMapGenerator:
    """A function of the arguments of `f` that gives, for each stage, its text and its map.

    Args:
      pass_kwargs: for the stages that make dumps.

    >>> import pyjx as jax
    >>> from pyjx.experimental import source_mapper
    >>> stages = source_mapper.filter_passes("jaxpr")
    >>> maps = source_mapper.generate_sourcemaps(jax.numpy.sin, stages)
    >>> [dump.pass_name for dump in maps(1.0)]
    ['jaxpr']
    """
    return SourceMapGenerator(f, passes, pass_kwargs)
