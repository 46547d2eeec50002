"""Named axes: the mapped axes around an operation, which it may read by name.

`vmap(f, axis_name="i")` makes an axis; a collective inside `f` names it. An operation that has the
effect `NamedAxisEffect("i")` goes to the interpreter that maps the axis even where none of its
operands is mapped, because its result may differ from the operand all the same: the sum of a
constant 1 over an axis of size 3 is 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from pyjx import configuration
from pyjx.core.bounded import BoundedDict
from pyjx.core.effects import Effects, NamedAxisEffect
from pyjx.core.meshes import AbstractMesh, AxisType
from pyjx.core.records import Record
from pyjx.core.specs import axes_of
from pyjx.core.trace import Trace, eager_trace, state
from pyjx.interning import Interned

_axes = Interned()
# Made last: the same axis is made by each call of a mapped function.
_recent = BoundedDict(64, "named axes")


class Axis:
    """A mapped axis. Interned: equal ones are one object, so it may be part of any cache's key.

    Args:
      name: any hashable value; None for an axis that nothing can name.
      size: how many examples lie along it.
      spmd_name: the mesh axis, or axes, over which it is to be partitioned.
      varies: of an axis of a mesh, along which each device has its own program, whether types say
        what varies along it; None for an axis that is mapped over.
      sharding: how a vector along it lies, whose mesh axis is Explicit; None where it is not cut.
    """

    __slots__ = ("__weakref__", "name", "sharding", "size", "spmd_name", "varies")

    name: Any
    size: int
    spmd_name: Any
    varies: bool | None
    sharding: Any

    def __new__(cls, name: Any, size: int, spmd_name: Any = None, varies: bool | None = None,
                sharding: Any = None) -> Axis:
        key = (name, type(name), size, spmd_name, varies, sharding)
        self: Axis | None = _recent.get(key)
        if self is None:
            self = _recent[key] = _axes.of(key, Axis._made)
        return self

    @classmethod
    def _made(cls, name: Any, kind: type, size: int, spmd_name: Any, varies: bool | None,
              sharding: Any) -> Axis:
        self = object.__new__(cls)
        self.name = name
        self.size = size
        self.spmd_name = spmd_name
        self.varies = varies
        self.sharding = sharding
        return self

    def __reduce__(self) -> Any:
        return Axis, (self.name, self.size, self.spmd_name, self.varies, self.sharding)

    def __repr__(self) -> str:
        spmd = f", spmd_name={self.spmd_name!r}" if self.spmd_name is not None else ""
        cut = f", sharding={self.sharding.spec}" if self.sharding is not None else ""
        return f"Axis({self.name!r}, {self.size}{spmd}{cut})"


def sharding_along(axis: Axis) -> Any:
    """How a vector along an axis lies here: None where types do not speak of its mesh axes, as in
    programs of each device."""
    sharding, mesh = axis.sharding, configuration.abstract_mesh.value
    if sharding is None or mesh is None or mesh is sharding.mesh.abstract_mesh:
        return sharding
    explicit = set(axes_of(sharding.spec)).issubset(mesh.explicit_axes)
    return sharding.update(mesh=mesh) if explicit else None


class AxisFrame(Record):
    """A named axis with the interpreter that maps it."""

    axis: Axis
    trace: Trace


def _is_known(axis: Axis) -> bool:
    """Whether anybody asks for an axis: by its name, or by the axes of the mesh that it lies along.
    """
    return not (axis.name is axis.spmd_name is axis.sharding is None)


class _frames_are:
    """A context with these named axes, which are in the keys of all caches of traces and programs.
    """

    __slots__ = ("_flag", "_frames", "_saved")

    def __init__(self, frames: tuple[AxisFrame, ...]) -> None:
        self._frames = frames

    def __enter__(self) -> None:
        self._saved = state.axis_frames
        state.axis_frames = self._frames
        self._flag = configuration.trace_state.swap_local(named_axes())

    def __exit__(self, *exc: object) -> None:
        state.axis_frames = self._saved
        configuration.trace_state.set_local(self._flag)


def named_axis(axis: Axis, trace: Trace) -> AbstractContextManager[None]:
    """A context in which `axis`, if it has a name or lies along axes of a mesh, is that of `trace`.
    """
    if not _is_known(axis):
        return _SAME
    return _frames_are((*state.axis_frames, AxisFrame(axis, trace)))


def outside_axis(axis: Axis) -> AbstractContextManager[None]:
    """A context in which nothing can name `axis`."""
    if not _is_known(axis):
        return _SAME
    return _frames_are(tuple([frame for frame in state.axis_frames if frame.axis is not axis]))


_SAME = nullcontext()


@contextmanager
def mesh_axes(mesh: AbstractMesh, names: Sequence[Any], varies: bool) -> Iterator[None]:
    """A context in which programs are those of each device along the axes of a mesh that have these
    names: Manual ones of the mesh that is set.

    No interpreter maps them: a collective over them is recorded like any other operation.
    """
    sizes = mesh.shape
    frames = [AxisFrame(Axis(n, sizes[n], None, varies), eager_trace) for n in names]
    manual = mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))
    with _frames_are((*state.axis_frames, *frames)), configuration.abstract_mesh(manual):
        yield


def named_axes() -> tuple[Axis, ...]:
    """The named axes around here, the outermost first."""
    return tuple([frame.axis for frame in state.axis_frames])


def spmd_names() -> frozenset[Any]:
    """The axes of a mesh that mapped axes around here lie along, as `vmap` was told."""
    found = [axis.spmd_name for axis in named_axes() if axis.spmd_name is not None]
    return frozenset(axes_of(found))


def mapped_along() -> frozenset[Any]:
    """The Explicit axes of a mesh that mapped axes around here lie along."""
    return frozenset([name for axis in named_axes() if axis.sharding is not None
                      for name in axes_of(axis.sharding.spec)])


NO_NAME = "_internal_pmap_axis_name"  # of an axis of `pmap` that the user gave none


def find_frame(name: Any) -> AxisFrame:
    """The innermost axis called `name`.

    Raises:
      NameError: there is none.
      TypeError: it is no name, which is hashable.
    """
    hash(name)
    for frame in reversed(state.axis_frames):
        if frame.axis.name == name:
            return frame
    names = [axis.name for axis in named_axes() if axis.name not in (None, NO_NAME)]
    cure = "name one of them, or bind it by `vmap`, `pmap` or `shard_map`" if names else \
        (f"`vmap` or `pmap(..., axis_name={name!r})`, or `shard_map` over a mesh with such an "
         "axis, makes one")
    raise NameError(f"Found an unbound axis name: {name}. The named axes here are {names}; {cure}.")


def trace_of_axes(top: Trace, effects: Effects) -> Trace:
    """`top`, or the interpreter of a named axis among `effects` if that is a higher one."""
    for effect in effects:
        if type(effect) is NamedAxisEffect:
            trace = find_frame(effect.name).trace
            if trace.level > top.level:
                top = trace
    return top
