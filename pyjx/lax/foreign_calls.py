"""Functions that compilers know by a name: foreign ones, compiled code that is registered with XLA,
and `composite`, a function of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np

from lowering.types import Attribute, attribute
from pyjx import errors
from pyjx.core import dtypes
from pyjx.core.arithmetic import unknown
from pyjx.core.avals import AbstractValue, ShapedArray, abstract_token, get_aval
from pyjx.core.effects import Effect, Effects, no_effects
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import Atom, JaxprEqn, Var
from pyjx.core.passes.tokens import threaded
from pyjx.core.primitive import Holding, Primitive, register
from pyjx.core.trace import Tracer
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import call_eqn, standing_for
from pyjx.engine.functions import name_of
from pyjx.engine.rules import refused
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import Dims, Values
from pyjx.guards import guard
from pyjx.lax.agreement import trace_function
from pyjx.lax.callbacks import batch_by_method, check_vmap_method
from pyjx.lax.common import operand, operands_in
from pyjx.runtime.executable import physical_aval
from pyjx.tree_util import tree_flatten, tree_unflatten

# -- foreign functions -----------------------------------------------------------------------------


class FfiEffect(Effect):
    """A foreign function with side effects is called."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "FFI"


_effects: Effects = frozenset({FfiEffect()})

Layout = tuple[int, ...]  # the axes, the slowest first


@guard
def ffi_call(target_name: str, result_shape_dtypes: Any, *, has_side_effect: bool = False,
             vmap_method: str | None = None, input_layouts: Sequence[Any] | None = None,
             output_layouts: Any = None, input_output_aliases: Mapping[int, int] | None = None,
             custom_call_api_version: int = 4, legacy_backend_config: Any = None
             ) -> Callable[..., Any]:
    """A function that calls a foreign one.

    Args:
      target_name: what it is registered as (`ffi.register_ffi_target`).
      result_shape_dtypes: a value with `shape` and `dtype`, or a sequence of some.
      has_side_effect: whether it is called though nobody needs its results.
      vmap_method: what `vmap` makes of it, as for `pure_callback`.
      input_layouts: for each operand the order of its axes in memory, the slowest first; None
        stands for the order of the axes.
      output_layouts: the same for the results.
      input_output_aliases: for operands whose memory a result takes over, that result's number.
      custom_call_api_version: 4 for functions of XLA's FFI; 1 and 2 for older ones.
      legacy_backend_config: the attributes of older functions, a string.

    Returns:
      A function of arrays. Its keyword arguments are attributes of the foreign function: booleans,
      numbers (NumPy's for a certain width), strings, dtypes, arrays, lists and dictionaries of
      these.

    Raises:
      ValueError: an unknown `vmap_method` or version, a result without shape or dtype, or both
        kinds of attributes.

    >>> import numpy as np
    >>> import pyjx as jax
    >>> like = jax.ShapeDtypeStruct((2, 2), np.float32), jax.ShapeDtypeStruct((), np.int32)
    >>> cholesky = jax.ffi.ffi_call("lapack_spotrf_ffi", like)
    >>> jaxpr = jax.make_jaxpr(lambda x: cholesky(x, uplo=np.uint8(76)))(np.eye(2))
    """
    if not isinstance(target_name, str):
        raise TypeError("ffi_call: target_name must be the name that a function is registered by, "
                        f"got {target_name!r}.")
    if custom_call_api_version not in (1, 2, 3, 4):
        raise ValueError("ffi_call: custom_call_api_version must be 1, 2, 3 or 4, got "
                         f"{custom_call_api_version!r}.")
    check_vmap_method(vmap_method)
    if legacy_backend_config is not None and custom_call_api_version >= 4:
        raise ValueError("The use of the legacy_backend_config parameter requires "
                         f"custom_call_api_version < 4; got {custom_call_api_version}.")
    several = isinstance(result_shape_dtypes, Sequence)
    like = result_shape_dtypes if several else [result_shape_dtypes]
    avals = tuple([_result_aval(x, i) for i, x in enumerate(like)])
    given = output_layouts if several or output_layouts is None else [output_layouts]
    out_layouts = _layouts("output_layouts", given, avals)

    @guard
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        values = [operand("ffi_call (args)", x, i) for i, x in enumerate(args)]
        in_avals = list(map(get_aval, values))
        if kwargs and custom_call_api_version < 4:
            raise ValueError("The use of ffi_call attributes requires custom_call_api_version 4 or "
                             f"greater; got {custom_call_api_version}.")
        outs = ffi_call_p.bind(
            *values, result_avals=avals, vmap_method=vmap_method, target_name=target_name,
            has_side_effect=bool(has_side_effect),
            input_layouts=_layouts("input_layouts", input_layouts, in_avals),
            output_layouts=out_layouts,
            input_output_aliases=alias_pairs("ffi_call", input_output_aliases, values, avals),
            custom_call_api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
            attributes=tuple([(k, attribute(v, f"ffi_call: the attribute {k!r}"))
                              for k, v in sorted(kwargs.items())]))
        if not several:
            return outs[0]
        return tuple(outs) if isinstance(result_shape_dtypes, tuple) else list(outs)

    return wrapped


def _result_aval(like: Any, position: int) -> Any:
    """The type of a result. It may have 64 bits whatever the flags are: the function gives them."""
    if like is abstract_token:
        return like
    shape, dtype = getattr(like, "shape", None), getattr(like, "dtype", None)
    if shape is None or dtype is None:
        raise ValueError("ffi_call: All elements of result_shape_dtypes must have 'shape' and "
                         f"'dtype' attributes, as those of jax.ShapeDtypeStruct have. Got {like} "
                         f"at position {position}.")
    return ShapedArray(tuple(shape), dtype if dtypes.is_extended(dtype) else np.dtype(dtype))


def _layouts(name: str, given: Any, avals: Sequence[Any]) -> tuple[Layout, ...]:
    if given is None:
        given = [None] * len(avals)
    if len(given) != len(avals):
        raise ValueError(f"ffi_call: {name} must have an entry for each of the {len(avals)} "
                         f"arrays, got {len(given)}.")
    layouts = []
    for layout, aval in zip(given, avals, strict=True):
        n = getattr(aval, "ndim", 0)
        if layout is None:
            layout = range(n)
        layout = tuple(getattr(layout, "major_to_minor", layout))
        if sorted(layout) != list(range(n)):
            raise ValueError(f"ffi_call: an entry of {name} must be an order of {n} axes, got "
                             f"{layout}.")
        layouts.append(layout)
    return tuple(layouts)


def alias_pairs(op: str, given: Mapping[int, int] | None, operands: Sequence[Any],
                out_avals: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """The pairs (operand, result) of what is to share its memory."""
    pairs = []
    if not isinstance(given or {}, Mapping):
        raise TypeError(f"{op}: input_output_aliases must be a dictionary from the numbers of "
                        f"operands to those of results, got {given!r}.")
    for i, o in sorted((given or {}).items()):
        i, o = as_int(op, "input_output_aliases", i), as_int(op, "input_output_aliases", o)
        what = f"{op}: input_output_aliases contains the mapping '{i}:{o}'"
        for side, index, number in (("input", i, len(operands)), ("output", o, len(out_avals))):
            if not 0 <= index < number:
                raise ValueError(f"{what} with {side} index {index} outside the range "
                                 f"[0, {number}).")
        aval = get_aval(operands[i])
        if not out_avals[o].same_type(aval):
            raise ValueError(f"{what} referring to an input of type {aval}, which cannot share its "
                             f"memory with an output of type {out_avals[o]}.")
        pairs.append((i, o))
    return tuple(pairs)


# -- the primitive of foreign functions ------------------------------------------------------------


def _batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    in_turn = params["vmap_method"] in ("sequential", "sequential_unrolled", None)
    if not in_turn:
        joined = params["vmap_method"] != "legacy_vectorized"
        params["input_layouts"] = tuple([
            _with_batch(layout) if joined or d is not None else layout
            for layout, d in zip(params["input_layouts"], dims, strict=True)])
        params["output_layouts"] = tuple(map(_with_batch, params["output_layouts"]))
    return batch_by_method(ffi_call_p, trace, operands, dims, params)


def _with_batch(layout: Layout) -> Layout:
    return (0, *[a + 1 for a in layout])


def _shape(*avals: ShapedArray, result_avals: Any, **_: Any) -> list[Any]:
    return list(result_avals)


_DERIVATIVE = ("The FFI call to `{}` cannot be differentiated. You can use `jax.custom_jvp` or "
               "`jax.custom_vjp` to add support.")


def _jvp(primals: Values, tangents: Any, *, target_name: str, **_: Any) -> Any:
    raise ValueError(_DERIVATIVE.format(target_name))


def _on_data(avals: Sequence[Any], *operands: Any, result_avals: Sequence[Any],
             input_layouts: Sequence[Layout], output_layouts: Sequence[Layout], **params: Any
             ) -> Any:
    """Keys are handed to foreign functions as their data, and made of what these give."""
    return ffi_call_p.bind(
        *operands, result_avals=tuple(map(physical_aval, result_avals)),
        input_layouts=tuple(map(_of_data, input_layouts, avals)),
        output_layouts=tuple(map(_of_data, output_layouts, result_avals)), **params)


def _of_data(layout: Layout, aval: AbstractValue) -> Layout:
    return (*layout, *range(len(layout), physical_aval(aval).ndim))


ffi_call_p: Primitive = register(Primitive(
    "ffi_call", arithmetic=unknown, multiple_results=True, shape_rule=_shape, jvp=_jvp,
    effects=lambda params: _effects if params["has_side_effect"] else no_effects,
    physical=_on_data, transpose=refused(_DERIVATIVE.format("a foreign function")),
    batch_axis=_batch))


# -- composites ------------------------------------------------------------------------------------

Attributes = tuple[tuple[str, Attribute | None], ...]


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """`decomposition` as one operation, which a compiler may know by its name.

    Lowered programs hold `stablehlo.composite`; where the compiler does not know the operation, it
    takes the decomposition. It has no derivatives and no batches: give it these by `custom_jvp`,
    `custom_vjp` or `custom_vmap`.

    Args:
      decomposition: a function of pytrees of arrays. Its keyword arguments are attributes of the
        operation: strings, numbers, NumPy arrays, lists and dictionaries of these; those that are
        None are not written.
      name: the operation's name with its namespace, such as `my.op`.
      version: which version of the operation is meant.

    Raises:
      TypeError: `decomposition` is no function, or an attribute is of another kind.
      UnexpectedTracerError: it closes over a traced value, or an attribute is one.
      ValueError: `name` has no namespace, once the program is lowered.

    >>> import pyjx as jax
    >>> scale = jax.lax.composite(lambda x, *, k: x * k, "my.scale")
    >>> float(jax.jit(lambda x: scale(x, k=3))(2.0))
    6.0
    """
    if not callable(decomposition):
        raise TypeError(f"composite: decomposition must be callable, got {decomposition!r}.")
    version = as_int("composite", "version", version)
    known: dict[Attributes, Any] = {}  # the decomposition with attributes, once for each

    @wraps(decomposition)
    def composed(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = operands_in(f"composite ({name})", args)
        if any([isinstance(x, Tracer) for x in tree_flatten(kwargs)[0]]):
            _raise_traced(name, "an attribute", " If attributes are arrays, use NumPy's.")
        attributes = tuple([
            (k, None if v is None else attribute(v, f"composite: attribute {k}"))
            for k, v in kwargs.items()])
        fun = known.setdefault(attributes, partial(decomposition, **kwargs))
        body = trace_function("composite", name_of(decomposition), fun, tree,
                          list(map(get_aval, leaves)), unpacked=True)
        closed = body.closed
        if any([isinstance(c, Tracer) for c in closed.consts]):
            _raise_traced(name, "a constant", "")
        outs = composite_p.bind(
            *closed.consts, *leaves, name=name, version=version,
            call_jaxpr=consts_as_inputs(closed),
            attributes=tuple([(k, text) for k, text in attributes if text is not None]))
        return tree_unflatten(body.out_tree, outs)

    return composed


def _raise_traced(name: str, what: str, cure: str) -> NoReturn:
    raise errors.UnexpectedTracerError(
        f"Found a JAX Tracer as {what} in the decomposition for the composite op '{name}'. What is "
        "not known while the program is traced must be a positional argument of the composite."
        + cure)


# -- the primitive of composites -------------------------------------------------------------------


def _composite_jvp(primals: Any, tangents: Any, **_: Any) -> NoReturn:
    raise ValueError("JVP rule for composite not implemented. Give its function derivatives by "
                     "jax.custom_jvp.")


def _transpose(cts: Any, *operands: Any, **_: Any) -> NoReturn:
    raise ValueError("Transpose rule for composite not implemented. Give its function derivatives "
                     "by jax.custom_jvp or jax.custom_vjp.")


def _thread(eqn: JaxprEqn, token: Atom, after: Var) -> list[JaxprEqn]:
    """With ordered effects it is a call of its decomposition."""
    closed = threaded(eqn.params["call_jaxpr"])
    return [call_eqn(eqn, closed, closed.debug_info.func_name, [token, *eqn.invars],
                     [after, *eqn.outvars])]


composite_p = standing_for(
    "composite", itemgetter("call_jaxpr"), Holding(runs=itemgetter("call_jaxpr"), thread=_thread),
    jvp=_composite_jvp, transpose=_transpose)
