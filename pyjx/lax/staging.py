"""Values of the program that is being traced, values that stay in it, and tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.arithmetic import TOGETHER
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import AbstractToken, Token, abstract_token, get_aval
from pyjx.core.effects import Effect
from pyjx.core.explicit import entries_of
from pyjx.core.integers import as_shape
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import DynamicJaxprTrace, Tracer
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import broadcast_in_dim
from pyjx.engine.rules import done_again
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Params, Value
from pyjx.lax.common import operand
from pyjx.lax.shapes import squeeze
from pyjx.runtime.device_put import device_put
from pyjx.tree_util import tree_leaves

# -- stage -----------------------------------------------------------------------------------------


def stage(x: ArrayLike, /) -> Array:
    """The value as one of the program that is being traced; as an array, outside of such.

    Args:
      x: an array or a number.

    Raises:
      TypeError: it is not an array or a number.

    >>> import pyjx as jax
    >>> jax.lax.stage(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return stage_p.bind(operand("stage", x))


def _stage_record(trace: DynamicJaxprTrace, operands: tuple[Value, ...], params: Params) -> Any:
    (x,) = operands
    return x if isinstance(x, Tracer) and x._trace is trace else trace.constant(x)


stage_p: Primitive = register(Primitive(
    "stage", shape_rule=lambda x: x, impl=device_put, record=_stage_record,
    jvp=lambda primals, tangents: (stage_p.bind(primals[0]), tangents[0]),
    batch=lambda operands, dims: (stage_p.bind(operands[0]), dims[0]),
    transpose=lambda ct, x: [ct], decomposition=lambda x: x, linear=TOGETHER,
))


# -- shapes ----------------------------------------------------------------------------------------


def shape_as_value(shape: Any) -> np.ndarray | Array:
    """The sizes as a NumPy array of integers; those of a scalar as an empty array. Where one is
    symbolic, the array is a traced one.

    Args:
      shape: a tuple of sizes.

    Raises:
      TypeError: a size is no integer.

    >>> import pyjx as jax
    >>> jax.lax.shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    sizes = as_shape("shape_as_value", "shape", shape)
    if not sizes:
        return lax.full((0,), 0, np.int32)
    if all([type(d) is int for d in sizes]):
        return np.array(sizes, np.int32)
    return lax.concatenate([lax.full((1,), d, np.int32) for d in sizes], 0)


def broadcast_like(arr: ArrayLike, like_arr: Any) -> Array:
    """The array broadcast to the shape of another one, by NumPy's rules.

    Args:
      arr: an array.
      like_arr: the array whose shape the result has.

    Raises:
      ValueError: the shapes do not fit.

    >>> import pyjx as jax
    >>> jax.lax.broadcast_like(1, jax.numpy.zeros(2)).tolist()
    [1, 1]
    """
    arr = operand("broadcast_like", arr)
    aval, like = get_aval(arr), get_aval(operand("broadcast_like", like_arr, 1))
    shape = like.shape
    first = len(shape) - len(aval.shape)
    if first < 0:
        raise ValueError("broadcast_like: Cannot broadcast to shape with fewer dimensions: "
                         f"arr_shape={aval.shape} shape={shape}")
    wide = [i for i, (n, m) in enumerate(zip(aval.shape, shape[first:], strict=True)) if n != m]
    asked = entries_of(like)[first:]
    if any([aval.shape[i] != 1 for i in wide]) or any(
            [e not in (None, asked[i]) for i, e in enumerate(entries_of(aval))]):
        raise ValueError(
            f"broadcast_like: Incompatible types for broadcasting: input type={aval.str_short()} "
            f"and requested type={like.update(dtype=aval.dtype).str_short()}")
    x = stage(arr)
    if wide:
        x = squeeze(x, wide)
    kept = [first + i for i in range(len(aval.shape)) if i not in wide]
    return broadcast_in_dim(x, shape, kept, out_sharding=like.place.sharding)


# -- values that stay ------------------------------------------------------------------------------


class SinkEffect(Effect):
    """A value is kept in the program, though nobody reads it."""

    __slots__ = ()

    repeatable = True

    def __repr__(self) -> str:
        return "SinkEffect"


_sink_effects = frozenset({SinkEffect()})


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep what computes a value in the program, though nobody reads it.

    Args:
      val: a tree of arrays.
      prevent_mlir_dce: keep it from XLA too. Not all platforms have the operation that it needs.

    >>> import pyjx as jax
    >>> print(jax.make_jaxpr(lambda x: jax.lax.dce_sink(x + 1))(1))
    { lambda ; a:i32[]. let
        b:i32[] = add a 1:i32[]
        dce_sink[prevent_mlir_dce=False] b
      in () }
    """
    for x in tree_leaves(val):
        dce_sink_p.bind(operand("dce_sink", x), prevent_mlir_dce=prevent_mlir_dce)


dce_sink_p = done_again(register(Primitive(
    "dce_sink", shape_rule=lambda *avals, **_: [], multiple_results=True,
    effects=lambda params: _sink_effects, impl=lambda *operands, **_: [])))


# -- tokens ----------------------------------------------------------------------------------------


def create_token(_: Any = None) -> Any:
    """A token that nothing has to happen for.

    Args:
      _: without effect.

    >>> import pyjx as jax
    >>> token = jax.lax.after_all(jax.lax.create_token(), jax.lax.create_token())
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """A token for all of those given.

    Args:
      *operands: tokens, such as `create_token` makes.

    Raises:
      TypeError: an operand is no token.

    >>> import pyjx as jax
    >>> print(jax.make_jaxpr(lambda: jax.lax.after_all(jax.lax.create_token()))())
    { lambda ; . let a:Tok = create_token ; b:Tok = after_all a in (b,) }
    """
    for x in operands:
        if not isinstance(getattr(x, "aval", None), AbstractToken):
            raise TypeError("Arguments to after_all must be tokens, as create_token makes them, "
                            f"got {shortened(x)}.")
    return after_all_p.bind(*operands)


def _token_data(avals: Any, *operands: Value) -> Any:
    return broadcast_in_dim(np.bool_(False), (0,), ())


create_token_p = register(Primitive(
    "create_token", shape_rule=lambda: abstract_token, impl=Token, physical=_token_data,
))
after_all_p: Primitive = register(Primitive(
    "after_all", shape_rule=lambda *avals: abstract_token, impl=lambda *operands: Token(),
    physical=_token_data,
    jvp=lambda primals, tangents: (after_all_p.bind(*primals), Zero(abstract_token)),
    batch=lambda operands, dims: (after_all_p.bind(*operands), None),
))
