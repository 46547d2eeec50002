"""Telling XLA something of operations, such as what to fuse: attributes by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from functools import partial
from typing import Any

from pyjx import configuration
from pyjx.core.name_stack import thread_state
from pyjx.engine.metadata import items_of, xla_metadata_call_p, xla_metadata_value_p
from pyjx.experimental.staged_calls import staged_call
from pyjx.lazy import directory
from pyjx.tree_util import tree_map

__all__ = ["fuse_limit", "must_fuse_call", "set_xla_metadata", "xla_metadata_call",
           "xla_metadata_call2"]
__dir__ = directory(__name__, __all__)


class MetadataContext(ContextDecorator):
    """A context, or a decorator, whose operations have metadata for XLA."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.metadata = metadata
        self._saved: list[Any] = []

    def _recreate_cm(self) -> MetadataContext:
        return MetadataContext(self.metadata)

    def __call__(self, func: Any) -> Any:
        function = super().__call__(func)
        for stage in ("lower", "trace", "eval_shape"):  # those of a jitted function
            method = getattr(func, stage, None)
            if method is not None:
                setattr(function, stage, super().__call__(method))
        return function

    def __enter__(self) -> None:
        items = dict(items_of(dict(self.metadata)))
        stacks = thread_state.name_stack, thread_state.program
        thread_state.name_stack, thread_state.program = [s.annotated(items) for s in stacks]
        flag = configuration.xla_metadata.swap_local(thread_state.program.metadata)
        self._saved.append((stacks, flag))

    def __exit__(self, *exc: object) -> None:
        stacks, flag = self._saved.pop()
        thread_state.name_stack, thread_state.program = stacks
        configuration.xla_metadata.set_local(flag)


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Give operations metadata: those that `x` is the result of or, without it, those made in the
    context, or by the function that this decorates.

    Args:
      x: a pytree of arrays.
      kwargs: names and values; values are strings, bools or numbers.

    >>> import pyjx as jax
    >>> from pyjx.experimental.xla_metadata import set_xla_metadata
    >>> @jax.jit
    ... def f(x):
    ...     with set_xla_metadata(_my_tag="first"):
    ...         return jax.numpy.sin(x)
    >>> '_my_tag = "first"' in f.lower(1.0).as_text()
    True
    """
    if x is None:
        return MetadataContext(kwargs)
    return tree_map(partial(xla_metadata_value_p.bind, xla_metadata_kvs=items_of(kwargs)), x)


def fuse_limit() -> MetadataContext:
    """A context over whose border XLA is not to fuse operations."""
    return MetadataContext({"FUSE_LIMIT": True})


def must_fuse_call(identifier: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: XLA is to fuse all operations of a call of the function."""
    return lambda f: xla_metadata_call(f, MUST_FUSE=identifier)  # type: ignore[no-any-return]


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Any:
    """A function whose calls have metadata, and those of its derivatives.

    Args:
      f: a function of pytrees; without it this is a decorator.
      meta: names and values; values are strings, bools or numbers.

    >>> import pyjx as jax
    >>> from pyjx.experimental.xla_metadata import xla_metadata_call
    >>> f = xla_metadata_call(lambda x: jax.numpy.sin(x) * 2, tag="block")
    >>> float(jax.grad(f)(0.0))
    2.0
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(f: Any = None, /, metadata: Mapping[str, Any] | None = None, *,
                       ad_metadata: Any = "same") -> Any:
    """As `xla_metadata_call`, with the metadata as a dict.

    Args:
      ad_metadata: that of the linear part of derivatives: "same", "drop" for none, or a dict.

    Raises:
      TypeError: there is no metadata.
      ValueError: `ad_metadata` is none of these.
    """
    if isinstance(f, Mapping) and metadata is None:
        f, metadata = None, f
    if metadata is None:
        raise TypeError("xla_metadata_call2: metadata must be a dict, got None")
    if not isinstance(ad_metadata, Mapping) and ad_metadata not in ("same", "drop"):
        raise ValueError("xla_metadata_call2: ad_metadata must be 'same', 'drop' or a dict, got "
                         f"{ad_metadata!r}")
    if f is None:
        return partial(xla_metadata_call2, metadata=metadata, ad_metadata=ad_metadata)
    linear = items_of(dict(ad_metadata)) if isinstance(ad_metadata, Mapping) else ad_metadata
    return staged_call(xla_metadata_call_p, f, xla_metadata=items_of(dict(metadata)),
                       ad_metadata=linear)
