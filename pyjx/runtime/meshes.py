"""The mesh of this thread, and meshes of the devices there are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from threading import get_ident
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core.explicit import wrong_mesh
from pyjx.core.jaxpr import Var
from pyjx.core.meshes import AbstractMesh, AxisType, Mesh, device_array, empty_mesh
from pyjx.core.trace import DynamicJaxprTrace, eager_trace, state
from pyjx.core.value_texts import MADE_MESH
from pyjx.runtime import backends

NO_MESH = AbstractMesh((), ())


def make_mesh(axis_sizes: Sequence[int] | None = None, axis_names: Any = None,
              axis_types: Any = None, *, devices: Sequence[Any] | None = None,
              axis_shapes: Sequence[int] | None = None) -> Mesh:
    """A mesh of the first devices.

    Args:
      axis_sizes: the size of each axis.
      axis_names: a name for each axis.
      axis_types: an `AxisType` for each axis, by default Explicit.
      devices: by default all of the default backend.
      axis_shapes: the former name of `axis_sizes`.

    Raises:
      TypeError: `axis_sizes` is no sequence, or it or `axis_names` is not given.
      ValueError: a size is no positive integer, there are fewer devices, or other numbers of names
        or types than of sizes.

    >>> import pyjx as jax
    >>> jax.make_mesh((1,), ("x",)).shape["x"]
    1
    """
    if axis_sizes is not None and axis_shapes is not None:
        raise TypeError("make_mesh: axis_shapes is the former name of axis_sizes; "
                        "give one of them.")
    sizes = axis_shapes if axis_sizes is None else axis_sizes
    if sizes is None or axis_names is None:
        missing = "axis_sizes" if sizes is None else "axis_names"
        raise TypeError(f"make_mesh() missing required argument {missing!r}: it takes the sizes "
                        "and the names of the axes, as in make_mesh((2, 4), ('x', 'y')).")
    if isinstance(sizes, int):
        raise TypeError("make_mesh: axis_sizes is a sequence with the size of each axis, such as "
                        f"({sizes},); got {sizes}.")
    shape = tuple(sizes)
    if not all([isinstance(n, (int, np.integer)) and n > 0 for n in shape]):
        swapped = isinstance(axis_names, (list, tuple)) and all(
            [isinstance(n, int) for n in axis_names])
        cure = ("the sizes come first: make_mesh((2, 4), ('x', 'y'))." if swapped else
                "each axis has at least one device.")
        raise ValueError("`axis_sizes` passed to `make_mesh` should be a sequence of ints. Got "
                         f"{sizes!r}; {cure}")
    shape = tuple(map(int, shape))
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if len(names) != len(shape):
        raise ValueError(f"make_mesh requires the length of its first argument (`axis_sizes`, "
                         f"{shape}) to equal the length of its second argument (`axis_names`, "
                         f"{names}).")
    available = list(backends.devices() if devices is None else devices)
    size = math.prod(shape)
    if len(available) < size:
        raise ValueError(f"Number of devices {len(available)} must be >= the product of mesh_shape "
                         f"{shape}{backends.for_more(available, size) if devices is None else '.'}")
    if axis_types is None:
        axis_types = (AxisType.Explicit,) * len(shape)
    return Mesh(device_array(available[:size], shape), axis_names, axis_types)


def get_mesh() -> Mesh:
    """The mesh that `set_mesh` has set in this thread, or an empty one.

    Raises:
      ValueError: inside jit, whose programs know no devices.

    >>> import pyjx as jax
    >>> jax.sharding.get_mesh().empty
    True
    """
    if state.dynamic is not eager_trace:
        raise ValueError("`get_mesh` can only be used outside of `jax.jit`. Maybe you want "
                         "`jax.sharding.get_abstract_mesh()`?")
    mesh = configuration.mesh.value
    return empty_mesh() if mesh is None else mesh


def get_abstract_mesh() -> AbstractMesh:
    """The shape of the mesh that is set in this thread, or an empty one; inside jit too.

    >>> import pyjx as jax
    >>> jax.sharding.get_abstract_mesh().axis_names
    ()
    """
    mesh = configuration.abstract_mesh.value
    return NO_MESH if mesh is None else mesh


class set_mesh:
    """Set the mesh of this thread, from now on or, as a context, for its body; None sets none.

    Raises:
      ValueError: it is no mesh, or has Manual axes, or a function is being traced.

    >>> import pyjx as jax
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     jax.sharding.get_abstract_mesh().axis_names
    ...
    ('x',)
    """

    __slots__ = ("prev_abstract_mesh", "prev_mesh")

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is None:
            mesh = empty_mesh()
        if not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}. "
                             f"{MADE_MESH}")
        if mesh.manual_axes:
            raise ValueError(
                f"mesh {mesh} contains manual axes which is not allowed when using `jax.set_mesh`. "
                "Please use `jax.shard_map` to enter into `Manual` mode instead.")
        if state.dynamic is not eager_trace:
            raise ValueError("`set_mesh` can only be used outside of `jax.jit`. Set the mesh "
                             "around the call of the jitted function.")
        unset = mesh.empty
        self.prev_abstract_mesh = configuration.abstract_mesh.swap_local(
            None if unset else mesh.abstract_mesh)
        self.prev_mesh = configuration.mesh.swap_local(None if unset else mesh)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        configuration.abstract_mesh.swap_local(self.prev_abstract_mesh)
        configuration.mesh.swap_local(self.prev_mesh)


class use_abstract_mesh:
    """A context in which the mesh of this thread has this shape.

    Raises:
      ValueError: it is no abstract mesh, one of another size than the mesh that is set, or has axes
        of other types, and the body computes with values that do not lie along it.

    >>> import pyjx as jax
    >>> with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((2,), ("x",))):
    ...     jax.sharding.get_abstract_mesh().size
    ...
    2
    """

    __slots__ = ("_saved", "mesh")

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ValueError("Expected mesh of type `jax.sharding.AbstractMesh`. Got type: "
                             f"{type(mesh)}")
        self.mesh = mesh
        self._saved: defaultdict[int, list[Any]] = defaultdict(list)  # by thread

    @property
    def prev(self) -> Any:
        """The value of the flag of this thread around the context."""
        return self._saved[get_ident()][-1][1]

    def __enter__(self) -> AbstractMesh:
        known = get_abstract_mesh()
        if not known.empty and not self.mesh.empty and known.size != self.mesh.size:
            raise ValueError(
                f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {self.mesh} "
                f"with size={self.mesh.size} and prev mesh: {known} with size={known.size}")
        self._saved[get_ident()].append((
            len(getattr(state.dynamic, "eqns", ())),
            configuration.abstract_mesh.swap_local(None if self.mesh.empty else self.mesh)))
        return self.mesh

    def __exit__(self, kind: object, *_: object) -> None:
        done, around = self._saved[get_ident()].pop()
        try:
            if kind is None and isinstance(around, AbstractMesh) and not self.mesh.empty and (
                    isinstance(state.dynamic, DynamicJaxprTrace)):
                _check_operands(state.dynamic, done, around, self.mesh)
        finally:
            configuration.abstract_mesh.swap_local(around)


def _check_operands(trace: DynamicJaxprTrace, start: int, around: AbstractMesh, mesh: AbstractMesh
                    ) -> None:
    """Check that what was recorded from equation `start` on, under `mesh`, is not on values of
    before that lie along it as it was known `around`: the types of whole values do not say it."""
    if around.axis_types == mesh.axis_types or around.manual_axes or mesh.manual_axes:
        return
    here = set(trace.const_vars.values())
    for i, eqn in enumerate(trace.eqns):
        target = eqn.params.get("dst_sharding")
        if i >= start or (target is not None and target.mesh.axis_types == mesh.axis_types):
            here.update(eqn.outvars)
    for eqn in trace.eqns[start:]:
        if eqn.primitive.placed is None and not here.issuperset(
                [v for v in eqn.invars if type(v) is Var]):
            raise wrong_mesh(eqn.primitive.name, around, mesh, [v.aval for v in eqn.invars])
