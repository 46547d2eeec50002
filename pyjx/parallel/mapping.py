"""Functions as programs for each device of a mesh: `shard_map` and `smap`; and `pmap`, for which
each example has a device of a new mesh.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import Any, NoReturn

import numpy as np

from pyjx import configuration, lax
from pyjx.core.array_type import Array
from pyjx.core.avals import AbstractRef, AbstractValue, ShapedArray, get_aval, is_valid_value
from pyjx.core.bounded import BoundedDict
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.meshes import AbstractMesh, Mesh, device_array
from pyjx.core.named_axes import NO_NAME, mapped_along, mesh_axes
from pyjx.core.places import names_in_types, spec_along
from pyjx.core.prefixes import broadcast_argument, is_none
from pyjx.core.primitive import vary
from pyjx.core.records import Record
from pyjx.core.references import check_distinct, check_not_returned, check_undivided, is_ref
from pyjx.core.specs import HiPspec, Infer, InferFromArgs, PartitionSpec, UnreducedKind, axes_of
from pyjx.core.trace import eager_trace, state, trace_to_jaxpr
from pyjx.core.value_texts import own_call, shortened
from pyjx.engine.axes import moveaxis
from pyjx.engine.functions import (
    FlatFun,
    check_values,
    flatten,
    leaf_paths,
    name_of,
    raise_bad_result,
    source_of,
)
from pyjx.engine.own_types import part_types
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import AxisName, TreeDef
from pyjx.guards import guard
from pyjx.interning import missing
from pyjx.parallel.calls import WHOLE, Specs, ordered, shard_map_p
from pyjx.parallel.refusals import raise_other_sums, raise_too_long, raise_uneven, raise_varying
from pyjx.runtime import backends, signature
from pyjx.runtime.abstract import described
from pyjx.runtime.device_put import device_put
from pyjx.runtime.jit import jit, path_in
from pyjx.runtime.meshes import get_abstract_mesh
from pyjx.runtime.placement import Described, committed_sharding
from pyjx.runtime.sharding import NamedSharding, check_spec
from pyjx.runtime.stages import taking
from pyjx.transforms.arguments import check_callable, wraps
from pyjx.transforms.vmap import in_dims_of, mapped_size, vmap


def shard_map(f: Callable[..., Any] = missing, /, *, out_specs: Any, in_specs: Any = Infer,
              mesh: Mesh | AbstractMesh | None = None, axis_names: Set[Any] = frozenset(),
              check_vma: bool = True) -> Any:
    """Map a function over the devices of a mesh: each runs it on its parts of the arguments.

    Args:
      f: the function of one device; arguments and results are pytrees of arrays. In it the axes
        of the mesh have names, which collectives such as `jax.lax.psum` take. Without it, a
        decorator is returned.
      out_specs: a pytree prefix of the results, of PartitionSpecs: along which axes of the mesh
        the parts of all devices lie side by side, dimension by dimension. Along axes that a spec
        leaves out all devices give the same.
      in_specs: the same of the arguments: along which axes they are cut. None stands for arrays
        that are not, and for what is no array and is passed on to `f` as it is. Where all axes are
        Explicit it may be left out: arguments are cut as they lie.
      mesh: a `Mesh` or an `AbstractMesh`; by default the one that is set.
      axis_names: the axes to map over, by default all; along others the compiler decides, as it
        does outside.
      check_vma: whether types say along which axes values vary, so that results which their specs
        say to be the same on all devices are that, and derivatives need no needless sums.

    Returns:
      A function of whole arrays. It takes positional arguments. Each call of it runs `f`, once for
      all devices, on tracers; calls that come to the same program share what is compiled.

    Raises:
      ValueError: there is no mesh, it has no such axes, specs are no prefix of arguments or
        results, do not divide them, or claim of a result that it is the same on all devices along
        an axis along which it may vary; or all axes are Explicit, and an argument does not lie as
        its spec says (`jax.reshard` moves it).

    >>> import pyjx as jax
    >>> from pyjx.sharding import AxisType, PartitionSpec as P
    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    >>> total = jax.shard_map(lambda x: jax.lax.psum(x.sum(), "x"), mesh=mesh, in_specs=P("x"),
    ...                       out_specs=P())
    >>> total(jax.numpy.arange(4.0))
    Array(6., dtype=float32)
    """
    if f is missing or f is None:
        return partial(shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh,
                       axis_names=axis_names, check_vma=check_vma)
    if not callable(f):
        raise TypeError(f"shard_map requires a callable for its first argument, but got "
                        f"{shortened(f)} of type {type(f)}.")
    if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError("shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` "
                        f"instance for its second argument, but got {mesh} of type {type(mesh)}.")
    if not isinstance(axis_names, (set, frozenset)):
        given: Any = axis_names
        names = (given,) if isinstance(given, str) else given
        cure = f": write {set(names)}" if isinstance(names, (list, tuple)) else ""
        raise TypeError("axis_names argument of shard_map should be of type `frozenset` or `set`. "
                        f"Got type {type(axis_names)}{cure}")
    if not isinstance(in_specs, InferFromArgs) and in_specs is not None:
        _check_specs("in_specs", in_specs)
    _check_specs("out_specs", out_specs)
    return _wrapped(_Mapped(f, mesh, in_specs, out_specs, frozenset(axis_names), bool(check_vma)))


@guard
def _wrapped(mapped: _Mapped) -> Any:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise TypeError(f"{name_of(mapped.fun)}() got an unexpected keyword argument "
                            f"{next(iter(kwargs))!r}: what shard_map gives takes its arguments by "
                            "position.")
        return mapped(args)

    return wraps(mapped.fun, wrapped)


def on_one_device(mesh: Any) -> Any:
    """The mesh with one device along each axis."""
    sizes, types = (1,) * len(mesh.axis_names), mesh.axis_types
    if isinstance(mesh, Mesh):
        return Mesh(mesh.devices.reshape(-1)[:1].reshape(sizes), mesh.axis_names, types)
    return AbstractMesh(sizes, mesh.axis_names, types)


class _Traced(Record):
    """A function traced for a signature."""

    closed: ClosedJaxpr
    in_specs: Specs
    out_specs: Specs
    out_tree: TreeDef
    mesh: Mesh | AbstractMesh
    names: frozenset[Any]


class _Mapped(Record):
    """A function with what `shard_map` is to know of it."""

    fun: Callable[..., Any]
    mesh: Mesh | AbstractMesh | None
    in_specs: Any
    out_specs: Any
    names: frozenset[Any]
    check_vma: bool
    specs_name: str = "in_specs"
    debug_info: DebugInfo | None = None  # of the user's function, if that is another one

    def __call__(self, args: tuple[Any, ...]) -> Any:
        leaves, in_tree = flatten(args)
        passed = self._passed_on(args, leaves)
        given = [x for i, x in enumerate(leaves) if i not in passed]
        check_values(given)
        traced = self.trace(args, in_tree, [None if i in passed else get_aval(x)
                                            for i, x in enumerate(leaves)], passed)
        closed, consts = traced.closed, traced.closed.consts
        check_distinct(given, consts, lambda: closed.debug_info)
        if any(map(is_ref, given)):
            specs = iter(traced.in_specs)
            check_undivided(in_tree, [i not in passed and bool(axes_of(next(specs)))
                                      for i in range(len(leaves))], lambda: closed.debug_info)
        for x in consts:
            _check_closed_over(get_aval(x), traced.names)
        outs = shard_map_p.bind(
            *consts, *given, jaxpr=consts_as_inputs(closed), mesh=traced.mesh,
            in_specs=(WHOLE,) * len(consts) + traced.in_specs, out_specs=traced.out_specs,
            check_vma=self.check_vma, newly_manual_axes=traced.names)
        return traced.out_tree.unflatten(outs)

    def _passed_on(self, args: tuple[Any, ...], leaves: Sequence[Any]) -> dict[int, Any]:
        """Leaves of the arguments that the function gets as they are, by their positions: what is
        no array and has None for a spec."""
        if isinstance(self.in_specs, InferFromArgs):
            return {}
        given = broadcast_argument(
            f"{self._call} {self._said('in_specs')}", self.in_specs, args, is_none,
            "a tuple has an entry for each positional argument.")
        return {i: x for i, (x, spec) in enumerate(zip(leaves, given, strict=True))
                if spec is None and not isinstance(x, Array) and not is_ref(x)}

    def trace(self, args: tuple[Any, ...], in_tree: TreeDef, avals: Sequence[Any],
              passed: dict[int, Any]) -> _Traced:
        """`avals` are the types of all leaves of the arguments, None for those that are passed on
        as they are."""
        mesh = self._mesh()
        names = self._names(mesh)
        specs = self._in_specs(mesh, names, args, avals)
        self._check_arguments(mesh, specs, in_tree, avals)
        if self.in_specs is not None and self._are_explicit(mesh, names):
            named = frozenset(names_in_types(mesh, names))
            for i, (spec, aval) in enumerate(zip(specs, avals, strict=True)):
                if aval is not None and not aval.is_high:
                    _check_type(spec, aval, named, partial(self._places, in_tree), i)
        in_specs = tuple([s for i, s in enumerate(specs) if i not in passed])
        avals = [a for i, a in enumerate(avals) if i not in passed]
        local = [a.shard(mesh, names, self.check_vma, s)
                 for a, s in zip(avals, in_specs, strict=True)]
        if self.check_vma:
            _check_parts_vary(local, in_specs)
        flat = FlatFun(self.fun, in_tree)
        debug = self.debug_info or DebugInfo(
            "shard_map", source_of(self.fun), lambda: self._leaf_names(in_tree))
        out_specs: Specs = ()

        def run(*leaves: Any) -> list[Any]:
            nonlocal out_specs
            values = iter(leaves)
            outs = flat(*[passed[i] if i in passed else next(values)
                          for i in range(in_tree.num_leaves)])
            out_specs = self._out_specs(mesh, names, flat.out_tree, outs)
            if self.check_vma:  # side by side the parts of devices are values of their own
                outs = [x if get_aval(x).is_high or is_ref(x) else vary(x, frozenset(axes_of(s)))
                        for x, s in zip(outs, out_specs, strict=True)]
            return outs

        with mesh_axes(mesh.abstract_mesh, ordered(mesh, names), self.check_vma):
            closed = trace_to_jaxpr(run, local, debug)
        check_not_returned(closed, "shard_map", lambda i: path_in(flat.out_tree, i))
        return _Traced(closed, in_specs, out_specs, flat.out_tree, mesh, names)

    # -- what errors call it

    @property
    def _by_axes(self) -> bool:
        return self.specs_name == "in_axes"

    @property
    def _call(self) -> str:
        return "smap" if self._by_axes else "shard_map" if self.debug_info is None else "pmap"

    def _said(self, what: str) -> str:
        return what.replace("specs", "axes") if self._by_axes else what

    # -- the mesh

    def _mesh(self) -> Any:
        context = get_abstract_mesh()
        if configuration.one_device_meshes.value:
            return context if context.manual_axes else on_one_device(self.mesh or context)
        if self.mesh is None:
            if context.empty:
                raise ValueError("The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to "
                                 "enter into a mesh context" + (
                                     "." if self._by_axes else ", or give shard_map its mesh=."))
            return context
        if context.empty:
            return self.mesh
        own = self.mesh.abstract_mesh
        if (own.shape_tuple, own.axis_types) != (context.shape_tuple, context.axis_types):
            if self._call == "pmap":
                raise ValueError(f"pmap maps over a mesh of its own, not over {context}, which is "
                                 "set. Call it outside of set_mesh.")
            cure = "Leave `mesh` out to map over that one, or call it outside of set_mesh."
            if context.manual_axes:
                cure = ("Inside of another shard_map leave `mesh` out, or pass "
                        "jax.sharding.get_abstract_mesh(), and name the axes that are not manual "
                        "yet as axis_names.")
            if context.are_all_axes_manual:
                cure = ("Inside of a shard_map over all axes there are none left to map over: call "
                        "the function itself.")
            raise ValueError(f"The context mesh {context} should match the mesh passed to "
                             f"shard_map {self.mesh}. {cure}")
        return context if context.manual_axes else self.mesh

    def _names(self, mesh: Mesh | AbstractMesh) -> frozenset[Any]:
        unknown = self.names - set(mesh.axis_names)
        if unknown and self._by_axes:
            raise ValueError(f"smap: axis_name must be an axis of the mesh, one of "
                             f"{mesh.axis_names}, got {next(iter(unknown))!r}.")
        if unknown:
            raise ValueError(f"jax.shard_map requires axis_names={self.names} to be a subset of "
                             f"mesh.axis_names={mesh.axis_names}")
        names = frozenset(self.names or mesh.axis_names)
        manual = frozenset(mesh.manual_axes)
        if self.names & manual:
            raise ValueError(f"{self._call}: the axes {sorted(map(str, self.names & manual))} are "
                             "manual already: the function is called inside another shard_map "
                             "over them. Give others as axis_names.")
        return names - manual

    def _are_explicit(self, mesh: Mesh | AbstractMesh, names: frozenset[Any]) -> bool:
        """Whether types say how arguments lie along all axes of these names."""
        return names.issubset(mesh.explicit_axes)

    # -- specs

    def _in_specs(self, mesh: Mesh | AbstractMesh, names: frozenset[Any], args: Any,
                  avals: Sequence[Any]) -> Specs:
        infers = isinstance(self.in_specs, InferFromArgs)
        if infers or (self.in_specs is None and self._are_explicit(mesh, names)):
            if not self._are_explicit(mesh, names):
                types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
                kinds = ", ".join([f"AxisType.{types[n].name}" for n in ordered(mesh, names)])
                raise TypeError(f"{self.specs_name} was not specified when axis_name={set(names)} "
                                f"was of type {kinds}. Only along Explicit axes types say how "
                                f"arguments are cut: give {self.specs_name}.")
            return tuple([WHOLE if a is None else _spec_of(a, names) for a in avals])
        specs = _spread(f"{self._call} {self._said('in_specs')}", self.in_specs, args, is_none)
        self._check_axes("in_specs", mesh, names, specs)
        return specs

    def _out_specs(self, mesh: Mesh | AbstractMesh, names: frozenset[Any], tree: TreeDef,
                   outs: Sequence[Any]) -> Specs:
        specs = _spread(f"{self._call} {self._said('out_specs')}", self.out_specs,
                        tree.unflatten(outs), None, "" if self._by_axes else _OF_RESULTS)
        avals = list(map(get_aval, outs))
        self._check_axes("out_specs", mesh, names, specs)
        fun = name_of(self.fun)
        for i, (spec, aval) in enumerate(zip(specs, avals, strict=True)):
            if _is_of_own_type("out_specs", spec, aval):
                continue
            if len(spec) > aval.ndim:
                raise_too_long(self._said("out_specs"), self._by_axes, fun, spec, aval,
                               f"{fun}(*args){leaf_paths(tree)[i]}", "output")
        if self.check_vma:
            _check_parts_vary(avals, specs)
            for i, (spec, aval) in enumerate(zip(specs, avals, strict=True)):
                if aval.is_high:
                    continue
                self._check_sums(spec, aval, mesh, names)
                varying = aval.place.mat.varying & names
                if not varying.issubset(axes_of(spec)):
                    raise_varying(self._said("out_specs"), self._by_axes, fun, mesh, spec, varying,
                                  f"{fun}(*args){leaf_paths(tree)[i]}", outs[i])
        return specs

    def _check_sums(self, spec: PartitionSpec, aval: AbstractValue, mesh: Mesh | AbstractMesh,
                    names: frozenset[Any]) -> None:
        """Raise ValueError unless a spec says what a result's type does of sums over devices."""
        for name in ("unreduced", "reduced"):
            if getattr(spec, name) != (found := getattr(aval.place.mat, name) & names):
                raise_other_sums(name, spec, aval, found, self._are_explicit(mesh, found))
        if spec.unreduced and spec.unreduced_kind is not UnreducedKind.sum:
            raise ValueError(
                "out_specs passed to shard_map should be equal to the unreduced_kind present on "
                f"the out_aval. Got out_specs={spec} and out_aval={aval.str_short(True)}.")

    def _check_axes(self, what: str, mesh: Mesh | AbstractMesh, names: frozenset[Any], specs: Specs
                   ) -> None:
        if not all([type(s) is PartitionSpec for s in specs]):
            specs = tuple([part for s in specs for part in s.to_lo()])
        taken = mapped_along()
        unknown = [a for s in specs for a in (*axes_of(s), *s.unreduced, *s.reduced)
                   if a not in names or a in taken]
        if unknown:
            listed = ", ".join(map(repr, ordered(mesh, names - taken)))
            missing = ", which is none of the axis_names that are mapped over" if (
                unknown[0] in mesh.axis_names) else (
                f", which the mesh has not: its axes are {mesh.axis_names}")
            if unknown[0] in taken:
                missing = ", along which the axis lies that vmap maps over around it"
            raise ValueError(
                f"shard_map {what} argument must refer to an axis marked as manual "
                f"({{{listed}}}), but:\n\n  {what} refers to {unknown[0]!r}{missing}\n\n"
                f"Check the {what} values passed to shard_map.")
        for spec in specs:
            check_spec(mesh, spec)

    def _check_arguments(self, mesh: Mesh | AbstractMesh, specs: Specs, in_tree: TreeDef,
                         avals: Sequence[Any]) -> None:
        sizes, uneven = mesh.shape, []
        for i, (spec, aval) in enumerate(zip(specs, avals, strict=True)):
            if aval is None or _is_of_own_type("in_specs", spec, aval):
                continue
            if len(spec) > aval.ndim:
                raise_too_long(self._said("in_specs"), self._by_axes, name_of(self.fun), spec, aval,
                               f"the passed {''.join(self._places(in_tree)[i])}", "input")
            uneven += [(i, spec, aval, d) for d, entry in enumerate(spec)
                       if aval.shape[d] % math.prod([sizes[a] for a in axes_of((entry,))])]
        if uneven:
            raise_uneven(name_of(self.fun), mesh, self._places(in_tree), uneven)

    def _leaf_names(self, in_tree: TreeDef) -> tuple[str, ...]:
        """Each leaf of the arguments by the parameter of the function."""
        tree = flatten((in_tree.unflatten(range(in_tree.num_leaves)), {}))[1]
        return signature.leaf_names(signature.parameters_of(self.fun), tree, ())

    def _places(self, in_tree: TreeDef) -> list[tuple[str, str]]:
        """Each leaf by its position, `args[0]`, and by its parameter if it has one, ` (x)`."""
        places = [f"args{path}" for path in leaf_paths(in_tree)]
        return [(place, f" ({name})" * (name != place))
                for place, name in zip(places, self._leaf_names(in_tree), strict=True)]


def _check_closed_over(aval: AbstractValue, names: frozenset[Any]) -> None:
    """Raise NotImplementedError for an array that the function closes over and that is cut."""
    if not names.isdisjoint(axes_of(_spec_of(aval, names))):
        raise NotImplementedError(
            "Closing over inputs to shard_map where the input is sharded on `Explicit` axes is not "
            "implemented: inside, each device has a part of it. Pass it as an argument to "
            f"shard_map. Got input with type {aval.str_short(True)}")


def _check_specs(what: str, specs: Any) -> None:
    wrong = [s for s in flatten(specs)[0] if not hasattr(s, "to_lo")]
    if wrong:
        meant = wrong[0].spec if isinstance(wrong[0], NamedSharding) else (
            f"jax.P({wrong[0]!r})" if isinstance(wrong[0], str) else "")
        raise TypeError(f"shard_map {what} argument must be a pytree of "
                        f"`jax.sharding.PartitionSpec` instances, but: {what} holds {wrong[0]!r} "
                        f"of type {type(wrong[0])}{meant and f'. Give {meant}'}")


_OF_RESULTS = ("it is a PartitionSpec, or a tree of them as that of the values; jax.P() is for "
               "what is the same on all devices.")


def _spread(name: str, specs: Any, tree: Any, is_leaf: Callable[[Any], bool] | None,
            hint: str = "") -> Specs:
    """The spec of each leaf of a tree that `specs` is a prefix of; None for an argument is that of
    one which all devices get whole."""
    return tuple([WHOLE if spec is None else spec for spec in broadcast_argument(
        name, specs, tree, is_leaf, hint)])


def _is_of_own_type(what: str, spec: Any, aval: Any) -> bool:
    """Whether a value is of a library's type, whose specs are.

    Raises:
      TypeError: the spec is, and not the value, or the other way.
    """
    if aval.is_high is not isinstance(spec, HiPspec):
        kind = "a HiPspec of its library" if aval.is_high else "a PartitionSpec"
        raise TypeError(f"shard_map {what}: expected {kind} for a value of type "
                        f"{aval.str_short()}, got {spec!r}")
    return aval.is_high  # type: ignore[no-any-return]


def _check_parts_vary(avals: Sequence[Any], specs: Sequence[Any]) -> None:
    """Raise ValueError where a type of a library, in the program of one device, does not say along
    which axes the parts of values vary."""
    for aval, spec in zip(avals, specs, strict=True):
        if aval.is_high:
            for part, own in zip(part_types(aval), spec.to_lo(), strict=True):
                if not part.place.mat.varying.issuperset(axes_of(own)):
                    raise ValueError(
                        f"shard_map: a value of type {aval} lies as {spec}, so its part "
                        f"{part.str_short()} varies along {axes_of(own)}, which its type is to "
                        "say (its method `shard`). Or pass check_vma=False.")


def _spec_of(aval: AbstractValue, names: frozenset[Any]) -> PartitionSpec:
    """How an argument lies along the axes of these names, which its type says."""
    sharding = aval.place.sharding
    return WHOLE if sharding is None else spec_along(sharding.spec, names)


def _check_type(spec: PartitionSpec, aval: ShapedArray | AbstractRef, names: frozenset[Any],
                places: Callable[[], Sequence[tuple[str, str]]], i: int) -> None:
    """Raise ValueError unless an argument lies as its spec says, along axes that are Explicit."""
    lies, asked = [s.update(partitions=[*s, *[None] * (aval.ndim - len(s))])
                   for s in (_spec_of(aval, names), spec_along(spec, names))]
    if lies != asked:
        raise ValueError(f"in_specs passed to shard_map: {asked} does not match the specs of the "
                         f"input: {lies} for arg: {aval.str_short()}, of "
                         f"{''.join(places()[i])}. Without `in_specs` arguments are cut as they "
                         "lie; to move one before, "
                         f"jax.device_put(x, NamedSharding(mesh, {asked})) does, or jax.reshard "
                         "within jax.set_mesh(mesh).")


# -- one axis at a time ----------------------------------------------------------------------------


def smap(f: Callable[..., Any] = missing, /, *, in_axes: Any = Infer, out_axes: Any,
         axis_name: AxisName) -> Any:
    """`shard_map` over one axis of the mesh that is set, with axes of arrays in place of specs.

    Args:
      f: the function of one device. Without it, a decorator is returned.
      in_axes: which axis of each argument is cut along the mesh axis: an int, None for none, or a
        tuple of them with an entry for each argument, which may be pytree prefixes.
      out_axes: the same of the results.
      axis_name: the axis of the mesh.

    Raises:
      TypeError: axes are no integers.
      ValueError: as `shard_map`.

    >>> import pyjx as jax
    >>> from pyjx.sharding import AxisType
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))):
    ...     jax.smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name="x")(jax.numpy.ones(2))
    ...
    Array([2., 2.], dtype=float32)
    """
    if f is missing or f is None:
        return partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (list, tuple)):
        raise TypeError(f"smap axis_name should be a `str` or a `Hashable`, but got {axis_name}")
    in_specs = in_axes if isinstance(in_axes, InferFromArgs) else _specs_of_axes(
        "in_axes", in_axes, axis_name)
    out_specs = _specs_of_axes("out_axes", out_axes, axis_name)
    if not callable(f):
        raise TypeError(f"smap requires a callable for its first argument, but got {shortened(f)} "
                        f"of type {type(f)}.")
    return _wrapped(_Mapped(f, None, in_specs, out_specs, frozenset((axis_name,)), True, "in_axes"))


def _specs_of_axes(what: str, axes: Any, name: Any) -> Any:
    leaves, tree = flatten(axes, is_none)
    for axis in leaves:
        if axis is not None and type(axis) is not int:
            raise TypeError(f"smap {what} must be an int, None, or a (nested) container with "
                            f"those types as leaves, but got {axes}.")
        if axis is not None and axis < 0:
            raise ValueError(f"smap {what} must be non-negative, but got {axes}.")
    return tree.unflatten([WHOLE if axis is None else PartitionSpec(*[None] * axis, name)
                           for axis in leaves])


# -- pmap ------------------------------------------------------------------------------------------

# It is `jit` of `shard_map` over a mesh of one axis. A `pmap` in a function that is mapped so is
# `vmap` on each device, as the devices are those of the outer one.

def pmap(fun: Callable[..., Any], axis_name: AxisName = None, *, in_axes: Any = 0,
         out_axes: Any = 0, static_broadcasted_argnums: Any = (),
         devices: Sequence[Any] | None = None, backend: str | None = None,
         axis_size: int | None = None, donate_argnums: Any = ()) -> Any:
    """Map a function over axes of its arguments, an example on each of as many devices.

    Args:
      fun: a function of one example; arguments and results are pytrees of arrays.
      axis_name: a name for the axis, which collective operations in `fun` may use.
      in_axes: which axis of each argument to map over: an int, None for an argument that is the
        same on all devices, or a tuple with one entry for each positional argument. An entry may
        be a tree that is a prefix of the argument. Keyword arguments are mapped over their first
        axis.
      out_axes: where the mapped axis is in the results; None for what is the same on all devices.
      static_broadcasted_argnums: arguments that are compile-time constants; hashable.
      devices: the devices, in turn; by default the first ones of the backend.
      backend: by default the default one.
      axis_size: the length of the axis, which is that of the mapped arguments.
      donate_argnums: arguments whose memory results may take over.

    Returns:
      The mapped function. Inside another one it maps on each device, as `vmap` does.

    Raises:
      TypeError: `fun` is not callable.
      ValueError: axes do not fit the arguments or have different lengths, no argument is mapped,
        or there are fewer devices than examples.

    >>> import pyjx as jax
    >>> jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jax.numpy.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if any([type(a) is not int for a in flatten(axes)[0]]):
            raise TypeError(f"pmap {what} must be an int, None, or (nested) container with those "
                            f"types as leaves, but got {axes}.")
    try:
        hash(axis_name)
    except TypeError:
        raise TypeError("pmap: axis_name must be one name that can be hashed, such as a string, "
                        f"got {shortened(axis_name)}. {own_call('pmap')}") from None
    static = signature.argument_sets(fun, static_broadcasted_argnums, None)[0]
    donated = signature.argument_sets(fun, donate_argnums, None, "donate")[0]
    if devices is not None and not devices:
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    mapped = _OnDevices(fun, axis_name, in_axes, out_axes, static, donated,
                     None if devices is None else tuple(devices), backend, axis_size,
                     BoundedDict(256, "calls of pmap"))

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call, leaves, _ = mapped.prepared(args, kwargs)
        return call(*leaves)

    def lower(*args: Any, **kwargs: Any) -> Any:
        """The StableHLO program for arguments like these."""
        call, leaves, tree = mapped.prepared(args, kwargs, described)
        return taking(call.trace(*leaves), tree).lower()

    result: Any = wraps(fun, wrapped)
    result.lower = lower
    return result


class _OnDevices(Record):
    """A function with what `pmap` is to know of it."""

    fun: Callable[..., Any]
    axis_name: Any
    in_axes: Any
    out_axes: Any
    static: tuple[int, ...]
    donated: tuple[int, ...]
    devices: tuple[Any, ...] | None
    backend: str | None
    axis_size: int | None
    calls: Any  # what is called for arguments of a kind

    def prepared(self, args: tuple[Any, ...], kwargs: dict[str, Any],
                 seen: Callable[[Any], Any] | None = None) -> tuple[Any, list[Any], TreeDef]:
        """What is to be called for these arguments, their leaves as `seen` gives them, and how
        these stand in the arguments that are not static."""
        n = len(args)
        static = signature.static_positions(self.static, n)
        if any([i >= n for i in static]):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={tuple(sorted(static))} but was "
                f"called with only {n} positional arguments. All static broadcasted arguments must "
                "be passed positionally.")
        constants = tuple([(i, args[i], type(args[i])) for i in sorted(static) if i < n])
        dynamic = tuple([x for i, x in enumerate(args) if i not in static])
        leaves, tree = flatten((dynamic, kwargs))
        if seen is not None:
            leaves = list(map(seen, leaves))
        inside = bool(get_abstract_mesh().manual_axes)
        key = tree, constants, inside, tuple([np.ndim(x) if isinstance(x, (int, float, complex))
                                              else getattr(x, "shape", ()) for x in leaves])
        try:
            found = self.calls.get(key)
        except TypeError:
            self._raise_unhashable(constants)
        if found is None:
            check_values(leaves)
            size, axes = self._size(args, kwargs, leaves, static)
            found = self.calls[key] = self._call(tree, axes, size, constants, inside, n)
        call, shardings = found
        if not inside and state.dynamic is eager_trace:
            leaves = [x if (at := committed_sharding(x)) is None or type(x) is Described
                      or at._internal_device_list == s._internal_device_list else device_put(x, s)
                      for x, s in zip(leaves, shardings, strict=True)]
        return call, leaves, tree

    def _size(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any],
              static: Any) -> tuple[int, tuple[int | None, ...]]:
        """The length of the mapped axes, and these for each leaf, counted from the front."""
        axes, n = self.in_axes, len(args)
        if isinstance(axes, tuple) and len(axes) == n - len(static):
            given = iter(axes)
            axes = tuple([None if i in static else next(given) for i in range(n)])
        args = tuple([None if i in static else x for i, x in enumerate(args)])
        dims = in_dims_of("pmap", axes, args, kwargs, flatten((args, kwargs))[1], leaves)
        if all([d is None for d in dims]):
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        size, found = mapped_size("pmap", self.fun, leaves, dims, args, kwargs)
        if self.axis_size is not None and self.axis_size != size:
            raise ValueError(f"Specified axis_size {self.axis_size} doesn't match received "
                             f"axis_size {size}.")
        return size, tuple(found)

    def _mesh(self, size: int) -> Mesh:
        devices = self.devices or tuple(backends.local_devices(backend=self.backend))
        if not size:
            raise ValueError("pmap maps over at least one example; got arguments whose mapped axes "
                             "have the size 0.")
        if self.devices is not None and len(devices) < size:
            raise ValueError("Leading axis size of input to pmapped function must equal the number "
                             f"of local devices passed to pmap. Got axis_size={size}, "
                             f"num_local_devices={len(devices)}.")
        if len(devices) < size:
            raise ValueError(f"compiling computation that requires {size} logical devices, but "
                             f"only {len(devices)} XLA devices are available "
                             f"(num_replicas={size}). Map over fewer examples, or use vmap, which "
                             f"maps on one device{backends.for_more(devices, size)}")
        name = NO_NAME if self.axis_name is None else self.axis_name
        return Mesh(device_array(devices[:size]), (name,))

    def _call(self, tree: TreeDef, axes: tuple[int | None, ...], size: int, constants: Any,
              inside: bool, n: int) -> tuple[Any, Sequence[Any]]:
        """The function of leaves for arguments like these, and how they are to lie."""
        def of_leaves(*leaves: Any) -> Any:
            args, kwargs = tree.unflatten(leaves)
            return self.fun(*signature.with_static(args, constants), **kwargs)

        of_leaves.__name__ = name_of(self.fun)
        if inside:
            return vmap(of_leaves, axes, self.out_axes, self.axis_name, size), ()
        mesh = self._mesh(size)
        name = mesh.axis_names[0]
        specs = tuple([PartitionSpec() if a is None else PartitionSpec(*[None] * a, name)
                       for a in axes])
        out_leaves, out_tree = flatten(self.out_axes, is_none)
        out_specs = out_tree.unflatten(
            [PartitionSpec() if a is None else PartitionSpec(name) for a in out_leaves])

        def on_device(*leaves: Any) -> Any:
            outs, result_tree = flatten(of_leaves(*[
                x if a is None else lax.squeeze(x, (a,))
                for x, a in zip(leaves, axes, strict=True)]))
            if not all(map(is_valid_value, outs)):
                raise_bad_result(f"function {source_of(self.fun)}", result_tree, outs)
            wanted = self._out_axes(result_tree)
            return result_tree.unflatten([x if a is None else lax.expand_dims(x, (0,))
                                          for x, a in zip(outs, wanted, strict=True)])

        on_device.__name__ = on_device.__qualname__ = name_of(self.fun)  # which errors name
        mapped = _wrapped(_Mapped(
            on_device, mesh, specs, out_specs, frozenset(), False, debug_info=DebugInfo(
                "pmap", source_of(self.fun), lambda: signature.leaf_names(
                    signature.parameters_of(self.fun), tree, (constants,)))))

        def run(*leaves: Any) -> Any:
            outs, result_tree = flatten(mapped(*leaves))
            return result_tree.unflatten([
                x if not a else moveaxis(x, 0, _checked(a, get_aval(x).ndim))
                for x, a in zip(outs, self._out_axes(result_tree), strict=True)])

        run.__name__ = run.__qualname__ = name_of(self.fun)
        donated = signature.static_positions(self.donated, n)
        absent = {i for i, _, _ in constants}
        places: list[int] = []
        leaf = 0
        for i, child in zip([i for i in range(n) if i not in absent],
                            tree.children()[0].children(), strict=True):
            if i in donated:
                places += range(leaf, leaf + child.num_leaves)
            leaf += child.num_leaves
        shardings = [NamedSharding(mesh, s) for s in specs]
        return jit(run, donate_argnums=tuple(places)), shardings

    def _out_axes(self, result_tree: TreeDef) -> list[Any]:
        result = result_tree.unflatten([0] * result_tree.num_leaves)
        return broadcast_argument("pmap out_axes", self.out_axes, result)

    def _raise_unhashable(self, constants: Any) -> NoReturn:
        raise ValueError("Non-hashable static arguments are used in static_broadcasted_argnums of "
                         f"pmap: {[x for _, x, _ in constants]}. Static arguments are part of a "
                         "cache's key: make them hashable, such as a tuple in place of a list.")


def _checked(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"pmap out_axes: axis {axis} is out of bounds for array of dimension "
                         f"{ndim}")
    return axis % ndim
