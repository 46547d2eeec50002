"""Functions that are called with ever new sizes, under the flag `jax_dynamic_shapes`: which sizes
have changed twice is found from calls, and the function is traced once more with names for these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx import configuration
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.frames import is_of_handler, warn
from pyjx.core.symbolic.scopes import SymbolicScope
from pyjx.core.trace import eager_trace, state
from pyjx.dynamic.buckets import BucketUse, DynamicSpec, Planned, named_shape
from pyjx.engine.types import TreeDef
from pyjx.runtime import programs
from pyjx.runtime.dispatch import Miss, registry
from pyjx.runtime.explain import RetraceWarning
from pyjx.runtime.jit import JitSpec


class _SomeDims(DynamicSpec):
    """A function of which it was found which dimensions of its leaves vary; `refused` says that it
    cannot run padded."""

    __slots__ = ("names", "refused")

    is_unnamed = True

    def __init__(self, spec: JitSpec, names: Sequence[Sequence[str | None]]) -> None:
        super().__init__(spec.fun, spec.options, {}, "pow2")
        self.names = names
        self.refused = False

    def planned(self, in_tree: TreeDef, avals: tuple[Any, ...], static: Any) -> Planned | None:
        if self.refused:
            return None
        try:
            return super().planned(in_tree, avals, static)
        # Nobody asked for this trace: the function runs for each size, and may fail in any way with
        # sizes that are no ints.
        except Exception as error:
            if is_of_handler(error):
                raise
            self.refused = True
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            warn(f"{self.name} is called with ever new sizes, and traced for each: it cannot run "
                 f"padded. {reason}", RetraceWarning)
            return None

    def symbolic_avals(self, scope: SymbolicScope, in_tree: TreeDef, avals: tuple[Any, ...],
                       static: Any) -> tuple[Any, ...]:
        return tuple([
            a.update(shape=named_shape(scope, "", tuple(names), a.shape)) if any(names) else a
            for a, names in zip(avals, self.names, strict=True)])


class _Seen:
    """The last sizes of calls, and how the function is called since some have changed twice."""

    __slots__ = ("sizes", "spec")

    def __init__(self) -> None:
        self.sizes: list[tuple[int, ...]] = []
        self.spec: _SomeDims | None = None


class Automatic(BoundedDict):
    """What is known of the sizes that a function was called with, by all else of its signature."""

    __slots__ = ()

    def buckets(self) -> list[BucketUse]:
        return [use for seen in self.values() if seen.spec is not None
                for use in seen.spec.padded.buckets()]

    def spec_for(self, spec: JitSpec, key: Any, avals: Sequence[ShapedArray]) -> _SomeDims | None:
        """How a call is made; None where it is one of the function as it is."""
        seen = self.get(key)
        if seen is None:
            seen = self[key] = _Seen()
        sizes = tuple([n for a in avals for n in a.shape])
        if sizes not in seen.sizes:
            seen.sizes.append(sizes)
            del seen.sizes[:-64]
        columns = list(zip(*seen.sizes, strict=True))
        if (seen.spec is not None and seen.spec.refused) or not any([
                len(set(c)) > 2 for c in columns]):
            return None
        # What has always been of the same size has one name.
        numbers = {c: f"d{i}" for i, c in enumerate(dict.fromkeys(columns)) if len(set(c)) > 2}
        given = iter(columns)
        names = [[numbers.get(next(given)) for _ in a.shape] for a in avals]
        if seen.spec is None or _partition(seen.spec.names) != _partition(names):
            seen.spec = _SomeDims(spec, names)
        return seen.spec  # type: ignore[no-any-return]


def _partition(names: Sequence[Sequence[str | None]]) -> list[int | None]:
    flat = [name for own in names for name in own]
    return [None if name is None else flat.index(name) for name in flat]


def automatic_call(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Miss | None:
    """A call under the flag `jax_dynamic_shapes`, padded where a size has changed twice and padding
    cannot be seen; else None."""
    if isinstance(spec, DynamicSpec) or state.dynamic is not eager_trace:
        return None
    dynamic, dynamic_kw, static = spec.without_static(args, kwargs)
    leaves, in_tree = registry.flatten((dynamic, dynamic_kw))
    try:
        avals = [get_aval(x) for x in leaves]
        if not all([type(a) is ShapedArray for a in avals]):
            return None
        key = (in_tree, static, tuple([a.update(shape=(0,) * a.ndim) for a in avals]),
               configuration.trace_context())
        if spec.padded is None:
            spec.padded = Automatic(programs.TRACES, "sizes of arguments")
        assert isinstance(spec.padded, Automatic)
        found = spec.padded.spec_for(spec, key, avals)
    except (TypeError, ValueError):  # no arrays, or no key
        return None
    return None if found is None else found.miss(*args, **kwargs)
