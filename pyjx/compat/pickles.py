"""Pickles that jax and pyjx, under its name, exchange.

A pickle has objects by the names of their classes and of the functions that make them, modules of
`jax._src` among these, and by their states. JAX changes both from version to version; here is what
those of 0.7 to 0.12 refer to beyond the names that there are, and the states that they hold. Types
are shared, and cannot be filled with the states that they were pickled as before 0.10.
"""

from __future__ import annotations

import copyreg
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias, get_type_hints

import numpy as np

import pyjx
from pyjx import numpy, random
from pyjx.compat.callables import HashablePartial
from pyjx.compat.given_members import give
from pyjx.core.array_type import Array
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.dtypes import DType
from pyjx.core.forbidden import ForbiddenCollectiveError
from pyjx.core.layouts import AutoLayout, Format, Layout
from pyjx.core.meshes import AbstractDevice, AbstractMesh, AxisType, Mesh
from pyjx.core.places import Space
from pyjx.core.records import filled
from pyjx.core.references import Ref
from pyjx.core.specs import ManualAxisType, PartitionSpec
from pyjx.core.symbolic.solving import UnexpectedDimVar
from pyjx.core.trace import DynamicJaxprTracer, Tracer
from pyjx.engine.batching import BatchTracer
from pyjx.engine.forward import JVPTracer
from pyjx.engine.types import TreeDef
from pyjx.errors import ShardingTypeError
from pyjx.flatten_util import Unravel, ravel_pytree
from pyjx.guards import guard
from pyjx.jaxlib_api import Device, JaxRuntimeError
from pyjx.lax.transcendental import Tolerance
from pyjx.lazy import deferred, loaded
from pyjx.random.implementations import PRNGImpl as Implementation
from pyjx.random.implementations import implementations
from pyjx.random.keys import KeyTy, PRNGKeyArray
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.array import _reconstruct_array
from pyjx.runtime.sharding import DuplicateSpecError, IndivisibleError, NamedSharding
from pyjx.runtime.stages import ArgInfo
from pyjx.tree_util import Partial, default_registry, tree_map, tree_structure, tree_unflatten

AutoLayoutSingleton = AutoLayout


def _fields(names: Iterable[str], state: Any) -> dict[str, Any]:
    """The fields that a state tells: a dictionary, one for the slots beside it, or a list."""
    if isinstance(state, tuple):
        state = {**(state[0] or {}), **(state[1] or {})}
    return dict(zip(names, state, strict=True)) if isinstance(state, list) else state


def _made_by(*names: str, **renamed: str) -> Callable[[Any, Any], None]:
    """What fills an object with its state: its constructor, from the fields of these names. Those
    that have been renamed are told by the old names."""
    def fill(self: Any, state: Any) -> None:
        told = _fields(names, state)
        given = {name: told[name] for name in names if name in told}
        given |= {new: told[old] for old, new in renamed.items() if told.get(old) is not None}
        type(self).__init__(self, **given)

    return fill


give(ShapeDtypeStruct, __setstate__=_made_by(
    "shape", "dtype", "weak_type", "is_ref", "manual_axis_type", "vma", sharding="sharding",
    _sharding="sharding"))
give(AbstractDevice, __setstate__=lambda self, state: filled(self, **{
    "platform": None, **_fields(("device_kind", "num_cores", "platform"), state)}))
give(Layout, __setstate__=_made_by(*Layout.__slots__))
give(Format, __setstate__=_made_by(*Format.__slots__))
give(Tolerance, __setstate__=_made_by(*Tolerance.__slots__))
give(ArgInfo, __setstate__=_made_by(*ArgInfo.__slots__))
give(KeyTy, __setstate__=lambda self, state: self.__init__(state["_impl"]))
give(PRNGKeyArray, __setstate__=lambda self, state: self.__init__(
    state["_impl"], state["_base_array"]))

# -- meshes and specs ------------------------------------------------------------------------------

_told_meshes: set[AbstractMesh] = set()  # which stay, as the hashes of others are theirs


class LoadedMesh(AbstractMesh):
    """A mesh that a pickle made before it told what of. It is equal to the one that others get."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self.update() is other.update()

    def __hash__(self) -> int:
        return hash(self.update())


def _fill_mesh(self: AbstractMesh, state: dict[str, Any]) -> None:
    if hasattr(self, "size"):
        raise TypeError(f"{self} is shared, and keeps its state.")
    made = AbstractMesh(state["axis_sizes"], state["axis_names"], state["axis_types"],
                        abstract_device=state["abstract_device"])
    _told_meshes.add(made)
    filled(self, __class__=LoadedMesh, **{
        name: getattr(made, name) for name in AbstractMesh.__slots__ if name != "__weakref__"})


give(AbstractMesh, __setstate__=_fill_mesh)


def _unpickle_named_sharding(mesh: Any, spec: PartitionSpec, memory_kind: str | None,
                             logical_device_ids: Any) -> NamedSharding:
    """A sharding over the mesh, or over that which a loaded one is equal to."""
    return NamedSharding(mesh.update(), spec, memory_kind=memory_kind,
                         _logical_device_ids=logical_device_ids)


def _get_default_unconstrained() -> Any:
    return PartitionSpec.UNCONSTRAINED


# What pickles find in jaxlib's module, and later versions of it lack.
_module = sys.modules[Device.__module__]
for _name, _value in (("UNCONSTRAINED_PARTITION", PartitionSpec.UNCONSTRAINED),
                      ("XlaRuntimeError", JaxRuntimeError)):
    if not hasattr(_module, _name):
        setattr(_module, _name, _value)


def unpickle_pspec(partitions: Any, unreduced: Any, reduced: Any) -> PartitionSpec:
    """A spec of JAX before 0.10."""
    entries = [PartitionSpec.UNCONSTRAINED if type(p).__name__ == "UnconstrainedPartition" else p
               for p in partitions]  # before jaxlib 0.10 that is a value of C++
    return PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)


# -- references ------------------------------------------------------------------------------------

_references = deferred("pyjx.lax.references")


class StateOfJax:
    """What stands for an object of jax that is of another kind here, and has its state."""

    def __setstate__(self, state: object) -> None:
        self.state = _fields((), state)


def _fill_ref_type(self: AbstractRef, state: Any) -> None:
    """What jax's type holds; the one that is shared is `update()` of it."""
    if hasattr(self, "inner_aval"):
        raise TypeError(f"{self} is shared, and keeps its state.")
    told = {"memory_space": None, "kind": None, **_fields((), state)}
    filled(self, **{name: told[name] for name in ("inner_aval", "memory_space", "kind")})


def _fill_ref(self: Ref, state: dict[str, Any]) -> None:
    """A reference of its own to the value of jax's."""
    told = state["_aval"]
    made = _references.new_ref(state["_refs"].state["_buf"], memory_space=told.memory_space,
                               kind=told.kind)
    self.__init__(made.aval, made._refs)  # type: ignore[misc]


give(AbstractRef, __setstate__=_fill_ref_type)
give(Ref, __setstate__=_fill_ref)


# -- what `ravel_pytree` gives ---------------------------------------------------------------------

_Shapes: TypeAlias = tuple[tuple[int, ...], ...]


def unravel_pytree(treedef: TreeDef, unravel_list: HashablePartial, flat: Array) -> Any:
    """A tree of a vector; the second argument is one of the functions below with its first ones."""
    shapes, *converted = unravel_list.args[1:]
    return Unravel(treedef, shapes, *(converted or (None, None)))(flat)


def _unravel_list(indices: object, shapes: _Shapes, from_dtypes: tuple[DType, ...] | None,
                  to_dtype: DType | None, arr: Array) -> Any:
    """The leaves of several dtypes."""
    tree = tree_structure([0] * len(shapes))
    return Unravel(tree, shapes, from_dtypes, to_dtype)(arr)


def _unravel_list_single_dtype(indices: object, shapes: _Shapes, arr: Array) -> Any:
    """The leaves of one dtype."""
    return _unravel_list(indices, shapes, None, None, arr)


# -- objects of `jax.numpy` of which there is one --------------------------------------------------


def _only(name: str) -> type:
    """What gives the object to a pickle that makes one of its class, with nothing in it."""
    return type(name, (), {"__new__": lambda cls: getattr(numpy, name)})


RClass, CClass, _Mgrid, _Ogrid = map(_only, ("r_", "c_", "mgrid", "ogrid"))

# -- keys ------------------------------------------------------------------------------------------


class PRNGImpl(Implementation):
    """What gives a generator to a pickle: that of its name, if there is one."""

    __slots__ = ()

    def __new__(cls, key_shape: tuple[int, ...], *rules: Any, **names: Any) -> Any:
        found = implementations.get(names.get("name", rules[-2] if len(rules) > 5 else ""))
        return Implementation(key_shape, *rules, **names) if found is None else found


_GENERATORS = {"threefry": "threefry2x32", "_rbg": "rbg", "_unsafe_rbg": "unsafe_rbg"}


def __getattr__(name: str) -> Any:
    """The functions of a generator, by JAX's names: `threefry_seed`, `_rbg_split`."""
    for prefix, generator in _GENERATORS.items():
        rule = name.removeprefix(f"{prefix}_")
        if rule in ("seed", "split", "random_bits", "fold_in") and rule != name:
            return getattr(implementations[generator], rule)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


guard(__getattr__)


# -- writing ---------------------------------------------------------------------------------------


def _reduced_argument(info: ArgInfo) -> Any:
    return ArgInfo, (info._aval, info.donated)


def _reduced_keys(keys: PRNGKeyArray) -> Any:
    return partial(random.wrap_key_data, impl=keys._impl.name), (keys._base_array,)


def _reduced_generator(generator: Implementation) -> Any:
    if implementations.get(generator.name) is not generator:
        return generator.__reduce__()
    return attrgetter("_impl"), (KeyTy(generator),)


class _Called:
    """What is pickled as a call of a function is, and loaded as its result."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


def _reduced_unravel(unravel: Unravel) -> Any:
    """By a call of `ravel_pytree`, as versions of jax differ in how they keep what it gives. It is
    traced, so that there are no arrays of these shapes; `Partial` is a pytree without leaves."""
    own = unravel.dtypes or [np.float32] * len(unravel.shapes)
    types = [ShapeDtypeStruct(*each) for each in zip(unravel.shapes, own, strict=True)]
    steps: Any = iter([tree_unflatten(unravel.tree, types)])
    for step in (partial(tree_map, numpy.zeros_like), ravel_pytree, itemgetter(1), Partial):
        steps = map(step, steps)
    return attrgetter("func"), (_Called(pyjx.eval_shape, partial(next, steps)),)


def _reduced_key_dtype(dtype: KeyTy) -> Any:
    data = np.zeros(dtype._impl.key_shape, np.uint32)
    return attrgetter("dtype"), (random.wrap_key_data(data, impl=dtype._impl.name),)


def move(value: Any, home: str, name: str = "") -> None:
    """Let a class or function be one of another module, by this name if it has none there. The
    annotations of a class are evaluated where it is from, as programs look for their names in its
    module; it stays where that fails."""
    if isinstance(value, type) and f"{value.__module__}.{value.__qualname__}" in OWN:
        return
    if home not in sys.modules:  # cloudpickle takes along what is of a module that it does not find
        loaded(home)
    with suppress(AttributeError, NameError, TypeError):  # not all of C++ can be told
        names = vars(value).get("__annotations__") if isinstance(value, type) else None
        if names:  # those of its own: the modules of its bases may load all that they have
            alone = type("", (), {"__annotations__": names, "__module__": value.__module__})
            value.__annotations__ = get_type_hints(alone)
        guard(value).__module__ = home  # which asks whether it is of this package
        if name:
            value.__qualname__ = name


# Which modules have classes and functions that objects hold, and jax has in modules of its own.
HELD = {
    "pyjx.core.array_type": ("jax._src.typing", "SupportsDType"),
    "pyjx.core.integers": ("jax._src.indexing", "Slice"),
    "pyjx.engine.residuals": ("jax.ad_checkpoint", "_Answer"),
    "pyjx.engine.remat_calls": ("jax._src.ad_checkpoint", "nothing_saveable"),
    "pyjx.experimental.checkify.checks": (
        "jax._src.checkify", "DivisionByZeroError FailedCheckError JaxException NaNError OOBError"),
    "pyjx.experimental.pallas.kernel_grids": ("jax.experimental.pallas", "NoBlockSpec"),
    "pyjx.lax.references": ("jax", "new_ref"),
    "pyjx.numpy.grids": ("jax.numpy", "CClass RClass _Grid"),
    "pyjx.numpy.linalg.decompositions": (
        "jax._src.numpy.linalg", "EigResult EighResult QRResult SVDResult"),
    "pyjx.numpy.linalg.invariants": ("jax._src.numpy.linalg", "SlogdetResult"),
    "pyjx.numpy.setops": (
        "jax._src.numpy.setops", "_UniqueAllResult _UniqueCountsResult _UniqueInverseResult"),
    "pyjx.scipy.stats.summaries": ("jax._src.scipy.stats._core", "ModeResult"),
    "pyjx.transforms.checkpointing": (
        "jax._src.ad_checkpoint",
        "dots_saveable dots_with_no_batch_dims_saveable everything_saveable "
        "offload_dot_with_no_batch_dims save_and_offload_only_these_names "
        "save_any_names_but_these save_anything_except_these_names save_from_both_policies "
        "save_only_these_names"),
}

# Whose objects jax would fill with what is not theirs there.
OWN = ("pyjx.experimental.checkify.checks.Error",)


def move_held(own: str) -> None:
    """`move` for what objects hold of a module."""
    home, names = HELD.get(own, ("", ""))
    for name in names.split():
        move(getattr(sys.modules[own], name), home)


def write_as_jax() -> None:
    """Let pickles have what jax knows, too: the names of its classes, and functions that make their
    objects."""
    for home, values in {
        "jax": (ShapeDtypeStruct,), "jax._src.array": (_reconstruct_array,),
        "jax._src.core": (
            ForbiddenCollectiveError, ManualAxisType, ShardingTypeError, Space, Tracer),
        "jax._src.export.shape_poly": (UnexpectedDimVar,),
        "jax._src.interpreters.ad": (JVPTracer,),
        "jax._src.interpreters.batching": (BatchTracer,),
        "jax._src.interpreters.partial_eval": (DynamicJaxprTracer,),
        "jax._src.mesh": (AbstractDevice,), "jax._src.named_sharding": (DuplicateSpecError,),
        "jax._src.random.prng": (PRNGKeyArray,), "jax._src.sharding": (IndivisibleError,),
        "jax.core": (ShapedArray,), "jax.tree_util": (default_registry,),
        "jax.sharding": (AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec),
    }.items():
        for value in values:
            move(value, home)
    Space.__qualname__ = "MemorySpace"
    copyreg.pickle(ArgInfo, _reduced_argument)
    copyreg.pickle(PRNGKeyArray, _reduced_keys)
    copyreg.pickle(Implementation, _reduced_generator)
    copyreg.pickle(Unravel, _reduced_unravel)
    copyreg.pickle(KeyTy, _reduced_key_dtype)
