"""Batching for users: `vmap`, and types whose values say themselves how it maps them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import get_aval, is_valid_value
from pyjx.core.jaxpr import DebugInfo
from pyjx.core.meshes import Mesh
from pyjx.core.name_stack import transform_name_stack
from pyjx.core.named_axes import Axis
from pyjx.core.places import names_in_types, place_of
from pyjx.core.prefixes import AnArray, broadcast_argument
from pyjx.core.records import Record
from pyjx.core.references import check_distinct, check_undivided, is_ref
from pyjx.core.specs import MappingSpec, PartitionSpec, axes_of, reshard_first
from pyjx.core.trace import Tracer, state
from pyjx.core.value_texts import own_call, shortened
from pyjx.engine.batching import BatchTrace, batch_flat, match_axis
from pyjx.engine.functions import FlatFun, flatten, leaf_paths, source_of
from pyjx.engine.types import AxisName, P, R, TreeDef
from pyjx.jaxlib_api import NamedSharding
from pyjx.runtime.signature import leaf_names, names_when_asked, parameters_of
from pyjx.transforms.arguments import check_callable, wraps

# -- types that say themselves how they are mapped -------------------------------------------------


class Mappable(Record):
    """How values of a type are mapped; see `register_vmappable`."""

    spec_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


mappables: dict[type, Mappable] = {}


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type,
                       to_elt: Callable[..., Any], from_elt: Callable[..., Any],
                       make_iota: Callable[..., Any] | None) -> None:
    """Have `vmap` ask how values of a type are mapped; it takes them for leaves, pytrees or not.

    A value whose entry of `in_axes` is an int has the size `value.shape[entry]` along the mapped
    axis, if it has a shape; other entries say nothing of the size.

    Args:
      data_type: the type.
      spec_type: that of the entries of `in_axes` and `out_axes` for such values, besides None.
      axis_size_type: that of the sizes of axes, which are ints.
      to_elt: `to_elt(cont, get_idx, value, entry)` is one example of a value. `cont(part, entry)`
        is an example of a part of it, an array whose entry is an int or None; `get_idx()` is the
        number of the example.
      from_elt: `from_elt(cont, size, example, entry)` is the value of all examples, where
        `cont(size, part, entry)` is all examples of a part.
      make_iota: not called, as numbers of examples are arrays.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> from pyjx.interpreters import batching
    >>> class Along:
    ...     def __init__(self, axis): self.axis = axis
    ...
    >>> class Box:
    ...     def __init__(self, content): self.content = content
    ...
    >>> batching.register_vmappable(
    ...     Box, Along, int,
    ...     lambda cont, get_idx, box, along: Box(cont(box.content, along.axis)),
    ...     lambda cont, size, box, along: Box(cont(size, box.content, along.axis)), None)
    >>> f = jax.vmap(lambda box, x: Box(box.content * x), (Along(1), 0), Along(0))
    >>> f(Box(np.ones((2, 3))), np.arange(3.0)).content.tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    >>> batching.unregister_vmappable(Box)
    """
    mappables[data_type] = Mappable(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Undo `register_vmappable`. Raises KeyError for a type that is not registered."""
    del mappables[data_type]


def is_vmappable(x: Any) -> bool:
    """Whether the type of `x` is registered."""
    return type(x) in mappables


def is_spec(entry: Any) -> bool:
    """Whether `vmap` takes this for an axis."""
    return type(entry) is int or isinstance(entry, MappingSpec) or any(
        [type(entry) is m.spec_type for m in mappables.values()])


# -- interpreting ----------------------------------------------------------------------------------


def example_of(trace: BatchTrace, x: Any, entry: Any) -> Any:
    """One example, in a trace, of a value or of a part of one."""
    if type(x) in mappables:
        return mappables[type(x)].to_elt(
            lambda part, entry: example_of(trace, part, entry),
            lambda: trace.join(np.arange(trace.axis.size, dtype=np.int32), 0), x, entry)
    if entry is None:
        return x
    shape = get_aval(x).shape
    if type(entry) is not int or not -len(shape) <= entry < len(shape):
        raise ValueError(f"vmap: part of an argument is an array of shape {shape}, which cannot "
                         f"be mapped along axis {entry!r}.")
    if shape[entry] != trace.axis.size:
        raise ValueError(f"vmap got inconsistent sizes for array axes to be mapped: axis {entry} "
                         f"of a part of an argument, an array of shape {shape}, has size "
                         f"{shape[entry]}, and other arguments or axis_size say {trace.axis.size}.")
    return trace.join(x, entry % len(shape))


def all_examples(x: Any, entry: Any, place: Callable[[Any, Any], Any], size: int) -> Any:
    """The value of all examples of one, or of a part of one; `place` makes that of an array."""
    if type(x) in mappables:
        return mappables[type(x)].from_elt(
            lambda size, part, entry: all_examples(part, entry, place, size), size, x, entry)
    return place(x, entry)


_DOC = ("Vectorized version of {fun}. Takes similar arguments as {fun} but with additional array "
        "axes over which {fun} is mapped.{original}")

_MOST_TREES = 8  # whose axes a function knows: they hold what the arguments close over


def vmap(fun: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0, axis_name: AxisName = None,
         axis_size: int | None = None, spmd_axis_name: Any = None, sum_match: bool = False
        ) -> Callable[P, R]:
    """A function that maps `fun` over axes of its arguments, as one vectorized computation.

    Args:
      fun: a function of one example; arguments and results are pytrees of arrays.
      in_axes: which axis of each argument to map over: an int (negative ones count from the end),
        None for an argument that is the same for all examples, or a tuple with one entry for each
        positional argument. An entry may be a tree that is a prefix of the argument. Keyword
        arguments are mapped over their first axis.
      out_axes: where the mapped axis is in the results: an int, None for a result that does not
        depend on the mapped arguments, or a tree that is a prefix of the result.
      axis_name: a name for the axis, which collective operations in `fun` may use.
      axis_size: the length of the axis; needed where no argument is mapped.
      spmd_axis_name: the mesh axis or axes to shard the mapped axis over.
      sum_match: whether results that depend on the mapped arguments and have None in `out_axes`
        are summed over the examples; they are errors else.

    Returns:
      The mapped function.

    Raises:
      TypeError: `fun` is not callable or the axes are not ints, None or containers of them.
      ValueError: axes do not fit the arguments, or have different lengths.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> jax.vmap(lambda a, b: a * b, in_axes=(0, None))(np.arange(3.0), 2.0).tolist()
    [0.0, 2.0, 4.0]
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if in_axes is not None and not is_spec(in_axes) and not isinstance(in_axes, tuple):
        raise TypeError("vmap in_axes must be an int, None, or a tuple of entries corresponding to "
                        "the positional arguments passed to the function, but got "
                        f"{in_axes}.{_in_a_call(in_axes)}")
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)
    prefixes: dict[Any, list[Any]] = {}

    def describe(in_tree: TreeDef) -> Callable[[], DebugInfo]:
        return lambda: DebugInfo("vmap", source_of(fun), names_when_asked(fun, in_tree))

    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = flatten((args, kwargs), is_vmappable if mappables else None)
        if len(set(map(id, leaves))) < len(leaves):
            check_distinct(leaves, (), describe(in_tree))
        try:
            in_dims = prefixes[in_tree]
        except KeyError:
            if len(prefixes) == _MOST_TREES:
                prefixes.clear()
            in_dims = prefixes[in_tree] = in_dims_of("vmap", in_axes, args, kwargs, in_tree, leaves)
            if any(map(is_ref, leaves)):
                check_undivided(in_tree, [d is not None for d in in_dims], describe(in_tree))
        size, dims = mapped_size("vmap", fun, leaves, in_dims, args, kwargs, axis_size)
        flat = _MappedFun(lambda args, kwargs: fun(*args, **kwargs), in_tree, of=fun)
        flat.axes = dims, out_axes, sum_match
        if mappables:  # they are mapped in `flat`
            dims = [None if is_vmappable(x) else d for x, d in zip(leaves, dims, strict=True)]
        with transform_name_stack("vmap"):
            axis = Axis(axis_name, size, spmd_axis_name, None,
                        _axis_sharding(leaves, dims, spmd_axis_name))
            outs, out_dims = batch_flat(flat, leaves, dims, axis)
            wanted = _out_dims(out_axes, flat.out_tree, len(outs))
            for i, (d, w) in enumerate(zip(out_dims, wanted, strict=True)):
                if w is None and d is not None:
                    if not sum_match:
                        _raise_batched(flat.out_tree, i, d, axis_name)
                    outs[i], out_dims[i] = outs[i].sum(d), None
            outs = [x if d == w else _placed(x, d, w, axis, flat.out_tree, i)
                    for i, (x, d, w) in enumerate(zip(outs, out_dims, wanted, strict=True))]
        return flat.unflatten(outs)

    return wraps(fun, vmap_f, _DOC)


def _check_axes(name: str, axes: Any) -> None:
    if type(axes) is int:
        return
    leaves, tree = flatten(axes)
    for i, axis in enumerate(leaves):
        if not is_spec(axis):
            path = leaf_paths(tree)[i]
            where = f", where {name}{path} is {shortened(axis)}" if path else ""
            raise TypeError(f"vmap {name} must be an int, None, or (nested) container with those "
                            f"types as leaves, but got {axes}{where}."
                            + _in_a_call(axis) * (name == "in_axes"))


def _in_a_call(axis: object) -> str:
    """What is said of what is no axis, but axes by name, or a number or an array to be mapped over.
    """
    leaves = flatten(axis, lambda x: x is None or is_spec(x))[0] if isinstance(axis, dict) else []
    if leaves and all([x is None or is_spec(x) for x in leaves]):
        return (" Axes go by position, as in in_axes=(0, None), and so do the arguments then; for "
                f"one argument that is a dictionary in_axes=({axis},) serves.")
    numbers = isinstance(axis, (float, complex, dict)) or hasattr(axis, "shape")
    return f" {own_call('vmap')}" * numbers


def in_dims_of(name: str, in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
               in_tree: TreeDef, leaves: Sequence[Any]) -> list[Any]:
    """One axis for each of the leaves of `(args, kwargs)`, over which the function `name` maps.

    Raises:
      ValueError: `in_axes` does not fit the arguments.
    """
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            f"{name} in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got len(in_axes)={len(in_axes)}, "
            f"len(args)={len(args)}.{_kwargs_hint(kwargs) or _of_parts(in_axes, args)}")
    n_args = in_tree.children()[0].num_leaves
    n_kwargs = in_tree.num_leaves - n_args
    if not isinstance(in_axes, tuple):
        return [in_axes] * n_args + [0] * n_kwargs
    if mappables:
        args, _ = in_tree.unflatten([AnArray() if is_vmappable(x) else x for x in leaves])
    return broadcast_argument(f"{name} in_axes", in_axes, args) + [0] * n_kwargs


def _of_parts(in_axes: tuple[Any, ...], args: tuple[Any, ...]) -> str:
    """What maps the parts of the one argument as `in_axes` was meant to."""
    if len(args) != 1 or type(args[0]) not in (list, type(in_axes)) or (
            len(args[0]) != len(in_axes)):
        return ""
    entry = list(in_axes) if type(args[0]) is list else in_axes
    return f" For the parts of the one argument it is in_axes=({entry!r},)."


def _kwargs_hint(kwargs: dict[str, Any]) -> str:
    if not kwargs:
        return ""
    return (
        f" Note that the function was called with keyword arguments {sorted(kwargs)}, which the "
        "entries of a tuple in_axes never correspond to: keyword arguments are always mapped "
        "along their leading axis (axis 0). If that is the intended mapping, make in_axes "
        "correspond to the positional arguments only; otherwise pass the arguments positionally, "
        "or bind unmapped keyword arguments with functools.partial before applying vmap.")


def mapped_size(name: str, fun: Callable[..., Any], leaves: Sequence[Any], in_dims: Sequence[Any],
                args: tuple[Any, ...], kwargs: dict[str, Any], axis_size: int | None = None
               ) -> tuple[int, list[Any]]:
    """The length of the axes over which the function `name` maps `fun`, and the positions of those
    of arrays from the front.

    Raises:
      ValueError: an array has no such axis, lengths differ, or none is known.
    """
    size = axis_size
    dims: list[Any] = []
    consistent = True
    for x, d in zip(leaves, in_dims, strict=True):
        if d is None:
            dims.append(None)
            continue
        if isinstance(d, MappingSpec) and get_aval(x).is_high:
            dims.append(d)
            continue
        shape = _shape(x)
        ndim = len(shape)
        if type(d) is not int or not -ndim <= d < ndim:
            if is_vmappable(x):  # says itself what that means
                dims.append(d)
                continue
            _raise_rank(name, fun, leaves, in_dims, args, kwargs, len(dims))
        if d < 0 and not is_vmappable(x):
            d += ndim
        dims.append(d)
        n = shape[d]
        if size is None:
            size = n
        elif size != n:
            consistent = False
    if not consistent:
        _raise_sizes(name, fun, leaves, in_dims, args, kwargs, axis_size)
    if size is None:
        if leaves:
            raise ValueError("vmap must have at least one non-None value in in_axes or axis_size "
                             "must be specified")
        raise ValueError(
            "vmap wrapped function must be passed at least one argument containing an array or "
            f"axis_size must be specified, got empty *args={args} and **kwargs={kwargs}")
    return size, dims


def _axis_sharding(leaves: Sequence[Any], dims: Sequence[int | None], spmd_name: Any) -> Any:
    """How a vector along the mapped axis lies, if arguments are cut along it: all must be."""
    found: dict[Any, Any] = {}
    for x, d in zip(leaves, dims, strict=True):
        if d is not None:
            sharding = get_aval(x).place.sharding
            entry = None if sharding is None else sharding.spec[d]
            if entry not in found:
                found[entry] = None if entry is None else _mesh_of(x, sharding)
    if len(found) > 1:
        one, other, *_ = found
        raise ValueError("Mapped away dimension of inputs passed to vmap should be sharded the "
                         f"same. Got inconsistent axis specs: {one} vs {other}. "
                         f"{reshard_first('one of them')}")
    entry, mesh = next(iter(found.items()), (None, None))
    if entry is None or mesh is None:
        return None
    names, given = spmd_name if isinstance(spmd_name, tuple) else (spmd_name,), axes_of((entry,))
    if spmd_name is not None and names != tuple(given) and names_in_types(
            mesh, [n for n in names if n in mesh.axis_names]) != tuple(given):
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. "
            f"Got spmd_axis_name={names} and arrays sharded on explicit_mesh_axis={tuple(given)}")
    _check_unmapped(leaves, dims, tuple(given))
    return NamedSharding(mesh, PartitionSpec(entry))


def _mesh_of(x: Any, sharding: NamedSharding) -> Any:
    """The mesh that a cut argument lies along, with its devices where they are known."""
    mesh = getattr(getattr(x, "sharding", None), "mesh", None)
    return mesh if isinstance(mesh, Mesh) else sharding.mesh


def _check_unmapped(leaves: Sequence[Any], dims: Sequence[int | None], axes: tuple[Any, ...]
                    ) -> None:
    """Each part of the batch needs the whole of what is the same for all examples."""
    for x, d in zip(leaves, dims, strict=True):
        sharding = place_of(x).sharding
        if d is None and sharding is not None and not set(axes).isdisjoint(axes_of(sharding.spec)):
            raise ValueError("Unmapped values passed to vmap cannot be sharded along the mesh axis "
                             f"you are vmapping over. Got type: {x.aval.str_short(True)}, in_axes: "
                             f"None and vmapped mesh axis: {axes}")


def _shape(x: Any) -> tuple[int, ...]:
    try:
        aval = get_aval(x)
    except TypeError:
        if is_vmappable(x):
            return getattr(x, "shape", ())
        raise
    if aval.is_high:
        raise ValueError(f"vmap was requested to map a value of the type {aval} along an axis by "
                         "its number, which arrays alone have. Its entry in in_axes is a "
                         "MappingSpec of its library; say axis_size, too.")
    return aval.shape


def _out_dims(out_axes: Any, out_tree: TreeDef, n: int) -> list[int | None]:
    if type(out_axes) is int or out_axes is None:
        return [out_axes] * n
    return broadcast_argument("vmap out_axes", out_axes, out_tree.unflatten([AnArray()] * n))


class _MappedFun(FlatFun):
    """A function of one example, whose mappable arguments and results are those of the batch."""

    __slots__ = ("axes",)

    axes: tuple[list[Any], Any, bool]  # where arguments are mapped, `out_axes` and `sum_match`

    def __call__(self, *leaves: Any) -> list[Any]:
        trace = state.innermost
        assert isinstance(trace, BatchTrace)
        in_dims, out_axes, sum_match = self.axes
        examples: Sequence[Any] = leaves
        if mappables:
            examples = [example_of(trace, x, d) if is_vmappable(x) else x
                        for x, d in zip(leaves, in_dims, strict=True)]
        result = self.fun(*self.in_tree.unflatten(examples))
        # asked again: types may be registered while the function runs, as modules load
        outs, self.out_tree = flatten(result, is_vmappable if mappables else None)
        self.check(outs)
        if not mappables or not any(map(is_vmappable, outs)):
            return outs  # type: ignore[no-any-return]

        def place(i: int, x: Any, wanted: Any) -> Any:
            val, dim = trace.value_and_dim(x)
            if wanted is None and dim is not None:
                if not sum_match:
                    _raise_batched(self.out_tree, i, dim, trace.axis.name)
                return val.sum(dim)
            return val if dim == wanted else _placed(val, dim, wanted, trace.axis, self.out_tree, i)

        wanted = _out_dims(out_axes, self.out_tree, len(outs))
        return [all_examples(x, w, partial(place, i), trace.axis.size) if is_vmappable(x) else x
                for i, (x, w) in enumerate(zip(outs, wanted, strict=True))]

    def check(self, outs: list[Any]) -> None:
        for x in outs:
            if not (isinstance(x, Tracer) or is_valid_value(x) or is_vmappable(x)):
                path = leaf_paths(self.out_tree)[[y is x for y in outs].index(True)]
                raise TypeError(f"Output from batched function {shortened(x)} with type {type(x)} "
                                f"is not a valid JAX type. {source_of(self.of)} returned "
                                f"it{f' at output component {path}' if path else ''}: return "
                                "arrays, alone or in containers.")


def _placed(x: Any, dim: int | None, wanted: Any, axis: Axis, tree: TreeDef, i: int) -> Any:
    """A batched output, the i-th of a tree, with its batch axis where `out_axes` says."""
    if is_vmappable(x):  # it is already
        return x
    if (kind := get_aval(x)).is_high:
        raise ValueError(f"vmap out_axes: {wanted!r} is where an output of type {kind} is to have "
                         f"its examples, which are along {dim!r}.")
    if type(wanted) is not int:
        raise ValueError(f"vmap out_axes: {wanted!r} is no axis of an array, which an output is; "
                         "expected an int or None.")
    if getattr(x, "dtype", None) == dtypes.float0:  # tangents of integers
        at = wanted if wanted >= 0 else wanted + x.ndim + 1
        return np.zeros((*x.shape[:at], axis.size, *x.shape[at:]), dtypes.float0)
    ndim = len(get_aval(x).shape) + (dim is None)
    if not -ndim <= wanted < ndim:
        raise ValueError(f"vmap out_axes: axis {wanted} is out of bounds for array of dimension "
                         f"{ndim}, which is what the output{leaf_paths(tree)[i]} has with its "
                         "batch axis")
    return match_axis(x, dim, wanted + ndim if wanted < 0 else wanted, axis)


# -- errors ----------------------------------------------------------------------------------------


_BY_NAME = ("what is given by name is mapped: bind what is the same for all examples by "
            "functools.partial")


def _raise_rank(name: str, fun: Callable[..., Any], leaves: Sequence[Any],
                in_dims: Sequence[int | None], args: tuple[Any, ...], kwargs: dict[str, Any], i: int
               ) -> NoReturn:
    """Say that the leaf `i` has no such axis to be mapped."""
    leaf, axis, shape = _leaf_names(fun, args, kwargs)[i], in_dims[i], _shape(leaves[i])
    if type(axis) is not int:
        raise TypeError(f"{name} in_axes: {axis!r} is no axis of an array, which {leaf} is; "
                        "expected an int or None.")
    cures = ["jax.random.split(key, n) gives a key to each of n examples"
             ] * dtypes.is_extended(getattr(leaves[i], "dtype", None))
    sizes = {_shape(x)[d] for x, d in zip(leaves, in_dims, strict=True)
             if type(d) is int and -len(_shape(x)) <= d < len(_shape(x))}
    lists = [x for x in (*args, *kwargs.values()) if type(x) in (list, tuple) and all(
        [type(y) in (bool, int, float, complex) for y in flatten(x)[0]])
        and (not sizes or len(x) in sizes)]
    kinds = [type(x).__name__ for x in lists if any([leaves[i] is y for y in flatten(x)[0]])]
    if kinds:
        cures.append(f"a {kinds[0]} of numbers is no array, but a tree: give jnp.array of it")
    elif leaf.startswith("kwargs["):
        cures.append(_BY_NAME)
    else:
        cures += [f"{'0 in in_axes' if sizes else 'in_axes=0'} maps its first axis"] * bool(shape)
        cures += ["where it is the same for all examples, its entry of in_axes is None"
                  ] * bool(sizes)
    raise ValueError(
        f"{name} was requested to map its argument along axis {axis}, which implies that its rank "
        f"should be at least {axis + 1 if axis >= 0 else -axis}, but is only {len(shape)} (its "
        f"shape is {shape}). It is {leaf}; "
        f"{'; '.join(cures) or f'call the function without {name}, as nothing else is mapped'}.")


def _raise_batched(out_tree: TreeDef, i: int, dim: int, axis_name: AxisName) -> NoReturn:
    """Say which output, the leaf `i`, is batched though `out_axes` says None."""
    named = "" if axis_name is None else (
        f"vmap has mapped output (axis_name={axis_name}) but out_axes is None: ")
    raise ValueError(f"{named}at vmap out_axes{leaf_paths(out_tree)[i]}, got axis spec None but "
                     f"output was batched on axis {dim}. It depends on what is mapped: 0 in "
                     "out_axes stacks it; None is for what is the same for all examples.")


def _raise_sizes(name: str, fun: Callable[..., Any], leaves: Sequence[Any],
                 in_dims: Sequence[int | None], args: tuple[Any, ...], kwargs: dict[str, Any],
                 axis_size: int | None) -> NoReturn:
    """Say which arguments have which length: first the most frequent one."""
    places: dict[int, list[str]] = {}
    names = _leaf_names(fun, args, kwargs)
    for leaf, x, d in zip(names, leaves, in_dims, strict=True):
        if type(d) is not int:
            continue
        shape = _shape(x)
        if -len(shape) <= d < len(shape):
            kind = type(x).__name__ if is_vmappable(x) else get_aval(x).str_short()
            places.setdefault(shape[d], []).append(f"axis {d} of {leaf} of type {kind}")
    lines = []
    if axis_size is not None:
        lines.append(f"the `axis_size` argument was {axis_size}")
    order = sorted(places.items(), key=lambda item: -len(item[1]))
    for i, (size, where) in enumerate(order):
        if len(where) == 1:
            lines.append(f"one axis had size {size}: {where[0]}")
        else:
            how_many = "most" if i == 0 else "some"
            lines.append(f"{how_many} axes ({len(where)} of them) had size {size}, e.g. {where[0]}")
    bullets = ";\n".join([f"  * {line}" for line in lines])
    shared = f"{_BY_NAME.capitalize()}." if " of kwargs[" in str(order[1:]) else (
        "What all examples share, such as weights, has None in in_axes.")
    raise ValueError(f"{name} got inconsistent sizes for array axes to be mapped:\n{bullets}"
                     + f"\n{shared}" * (len(places) > 1))


def _leaf_names(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
               ) -> list[str]:
    """For each leaf the argument that it is in, with the path to it."""
    tree, named = flatten((args, {}), is_vmappable)[1], flatten(kwargs, is_vmappable)[1]
    return [*[f"argument {name}" for name in leaf_names(parameters_of(fun), tree, ())],
            *[f"kwargs{path}" for path in leaf_paths(named)]]
