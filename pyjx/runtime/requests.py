"""The shardings that users of `jit` ask for: pytree prefixes, brought to the leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyjx import configuration, tree_util
from pyjx.core.frames import warn
from pyjx.core.layouts import Format, ShardingLike
from pyjx.core.prefixes import AnArray, broadcast_argument, is_none
from pyjx.core.records import Alike
from pyjx.core.specs import PartitionSpec
from pyjx.engine.functions import FlatFun, source_of
from pyjx.engine.types import TreeDef
from pyjx.runtime import backends
from pyjx.runtime.placement import Layouts, Request, Shardings
from pyjx.runtime.resharding import check_no_layout, lying, resolved
from pyjx.runtime.sharding import Sharding


class Asked(Alike):
    """A pytree of shardings, PartitionSpecs, Formats and None; hashable.

    PartitionSpecs are along the mesh that is set or else along that of the option `mesh`, which
    is looked at as the function is called.
    """

    __slots__ = ("caller", "leaves", "mesh", "tree", "what")

    def __init__(self, shardings: Any, what: str, caller: str = "jit", mesh: Any = None) -> None:
        self.caller = caller
        self.mesh = mesh
        if what == "in_shardings" and isinstance(shardings, list):
            shardings = tuple(shardings)  # as the arguments are
        leaves, self.tree = tree_util.tree_flatten(shardings, is_leaf=is_none)
        self.leaves = tuple([_checked(s, what) for s in leaves])
        self.what = what

    @property
    def _key(self) -> Any:
        return self.leaves, self.tree, self.caller

    def for_leaves(self, tree: TreeDef, fun: Callable[..., Any]) -> tuple[Shardings, Layouts]:
        """The sharding of each leaf of a tree that this one is a prefix of, and its layout; empty
        where none is asked for. `fun` is the function that it is asked of, for the error.

        Raises:
          ValueError: it is none.
        """
        leaves = broadcast_argument(
            f"pjit {self.what}", self.tree.unflatten(self.leaves),
            tree.unflatten([AnArray()] * tree.num_leaves), hint=(
                "a tuple has an entry for each positional argument that is not static. The"
                if self.what == "in_shardings" else "the") + f" function is {source_of(fun)}.")
        layouts = tuple([s.layout if isinstance(s, Format) else None for s in leaves])
        shardings = tuple([s.sharding if isinstance(s, Format) else s for s in leaves])
        mesh = None if self.mesh is None else self.mesh.value
        if mesh is not None:  # with `with mesh:` None is a copy on each device
            shardings = tuple([PartitionSpec() if s is None else s for s in shardings])
        return (tuple([s if s is None else resolved(s, self.caller, self.what, mesh)
                       for s in shardings]) if any([s is not None for s in shardings]) else (),
                layouts if any([x is not None for x in layouts]) else ())


def _checked(sharding: ShardingLike, what: str) -> Any:
    if sharding is None or isinstance(sharding, (Sharding, PartitionSpec, Format)):
        place = sharding.sharding if isinstance(sharding, Format) else sharding
        spec = place if isinstance(place, PartitionSpec) else getattr(place, "spec", ())
        if PartitionSpec.UNCONSTRAINED in spec:
            raise ValueError(f"Unconstrained dims are not allowed when passed to {what}: {place}. "
                             "Leave them to XLA by jax.lax.with_sharding_constraint.")
        return sharding
    check_no_layout(sharding)
    raise TypeError(f"{what} leaf specifications are expected to be PartitionSpec instances or "
                    f"None, but got {sharding!r}. A Sharding will do, too.")


def checked_device(device: Any, backend: str | None) -> Any:
    """What `jit` is to run on, which raises TypeError unless it can; None for the default one."""
    if device is None and backend is None:
        return None
    if device is None:
        device = backends.local_devices(backend=backend)[0]
    elif backend is not None:
        raise ValueError("can't specify both a device and a backend for jit, got "
                         f"device={device} and backend={backend}. A device is of a backend.")
    if not (isinstance(device, Sharding) or hasattr(device, "platform")):
        raise TypeError(f"jit: device must be a jax.Device or a sharding, got {device!r}"
                        + configuration.platform_meant(
                            device, ". Did you mean jax.devices({!r})[0]?"))
    warn("backend and device argument on jit is deprecated. You can use `jax.device_put(..., "
         "jax.local_devices(backend=\"cpu\")[0])` on the inputs to the jitted function to get the "
         "same behavior.", DeprecationWarning)
    return device


def asked(shardings: Any, what: str) -> Asked | None:
    """What is asked for; None if nothing is. A tree of None asks for a structure."""
    if shardings is None:
        return None
    return shardings if isinstance(shardings, Asked) else Asked(shardings, what)


def request_for(device: Any, ins: Asked | None, outs: Asked | None, flat: FlatFun,
                mesh: Any = None) -> Request:
    """What is asked of a function that was called, so that its trees are known."""
    in_shardings: Shardings = ()
    in_layouts: Layouts = ()
    if ins is not None:
        args_tree, kwargs_tree = flat.in_tree.children()
        if kwargs_tree.num_leaves:
            raise ValueError("jit does not support kwargs when in_shardings is specified. Pass all "
                             f"arguments by position. The function is {source_of(flat.fun)}.")
        in_shardings, in_layouts = ins.for_leaves(args_tree, flat.fun)
    out_shardings, out_layouts = ((), ()) if outs is None else outs.for_leaves(
        flat.out_tree, flat.fun)
    return Request(device, in_shardings, out_shardings, in_layouts, out_layouts, mesh)


class _Traced(threading.local):
    """The mesh that this thread had entered where the function is called that is being traced."""

    mesh: Any = None


_traced = _Traced()


@contextmanager
def on_entered_mesh() -> Iterator[Any]:
    """The mesh that this thread has entered, for a function that is traced in the context.

    Raises:
      ValueError: it is of another size than that of the function around.
    """
    mesh, around = configuration.entered_mesh.value, _traced.mesh
    if around is not None and mesh is not None and around.size != mesh.size:
        raise ValueError(
            f"pjit inside pjit cannot change the size of the mesh. Got new mesh: {mesh} with "
            f"size={mesh.size} and prev mesh: {around} with size={around.size}")
    _traced.mesh = mesh
    try:
        yield mesh
    finally:
        _traced.mesh = around


def constrain(values: Sequence[Any], shardings: Shardings) -> list[Any]:
    """Values inside a program that is being traced, where they were asked to be."""
    return [x if s is None else lying(x, s)
            for x, s in zip(values, shardings or (None,) * len(values), strict=True)]
