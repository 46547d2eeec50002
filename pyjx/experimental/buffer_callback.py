"""Python functions that compiled programs call with the memory of arrays, to be read and written in
place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyjx import jaxlib_api
from pyjx.core.effects import Effects, no_effects
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Alike
from pyjx.engine.batching import BatchTrace
from pyjx.engine.rules import refused
from pyjx.engine.types import Dims, Params, TreeDef, Values
from pyjx.lax.callbacks import batch_by_method, check_vmap_method, io_effect, printed, result_aval
from pyjx.lax.common import operand
from pyjx.lax.foreign_calls import alias_pairs
from pyjx.lazy import directory
from pyjx.tree_util import tree_flatten, tree_unflatten

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]

Buffer: Any = jaxlib_api.Buffer
ExecutionContext: Any = jaxlib_api.ExecutionContext
ExecutionStage: Any = jaxlib_api.ExecutionStage


def buffer_callback(callback: Callable[..., None], result_shape_dtypes: Any, *,
                    has_side_effect: bool = False, vmap_method: str | None = None,
                    input_output_aliases: Mapping[int, int] | None = None,
                    command_buffer_compatible: bool = False) -> Callable[..., Any]:
    """A function of arrays that calls a Python function with their memory.

    Args:
      callback: takes the context of the call, the buffers of the results, in a structure like that
        of `result_shape_dtypes`, and those of the arguments. It writes the results where they are;
        NumPy sees a buffer as `np.asarray(buffer)`.
      result_shape_dtypes: a pytree of values with `shape` and `dtype`.
      has_side_effect: whether it is called though nobody needs its results.
      vmap_method: what `vmap` makes of it, as for `pure_callback`.
      input_output_aliases: for argument leaves whose memory a result takes over, that result's
        number.
      command_buffer_compatible: on GPU, whether the function may be recorded once and replayed.

    Raises:
      ValueError: an unknown `vmap_method`.

    >>> import numpy as np
    >>> import pyjx as jax
    >>> def double(ctx, out, x):
    ...     np.asarray(out)[...] = 2 * np.asarray(x)
    ...
    >>> from pyjx.experimental.buffer_callback import buffer_callback
    >>> f = buffer_callback(double, jax.ShapeDtypeStruct((2,), "float32"))
    >>> jax.jit(f)(jax.numpy.array([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    check_vmap_method(vmap_method)
    like, out_tree = tree_flatten(result_shape_dtypes)
    avals = tuple([result_aval("buffer_callback", x) for x in like])

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree_flatten((args, kwargs))
        leaves = [operand("buffer_callback (args)", x, i) for i, x in enumerate(leaves)]
        outs = buffer_callback_p.bind(
            *leaves, callback=_OnBuffers(callback, in_tree, out_tree), result_avals=avals,
            has_side_effect=bool(has_side_effect), vmap_method=vmap_method,
            input_output_aliases=alias_pairs("buffer_callback", input_output_aliases, leaves,
                                             avals),
            command_buffer_compatible=bool(command_buffer_compatible))
        return tree_unflatten(out_tree, outs)

    return wrapped


class _OnBuffers(Alike):
    """A function on the buffers of the leaves of arguments and results, in this order."""

    __slots__ = ("callback_func", "in_tree", "out_tree")

    takes_buffers = True

    def __init__(self, callback_func: Callable[..., None], in_tree: TreeDef, out_tree: TreeDef
                 ) -> None:
        self.callback_func = callback_func
        self.in_tree = in_tree
        self.out_tree = out_tree

    def __call__(self, context: Any, *buffers: Any) -> None:
        n = self.in_tree.num_leaves
        args, kwargs = tree_unflatten(self.in_tree, buffers[:n])
        self.callback_func(context, tree_unflatten(self.out_tree, buffers[n:]), *args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.callback_func)


def _effects(params: Params) -> Effects:
    return frozenset({io_effect}) if params["has_side_effect"] else no_effects


def _batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    return batch_by_method(buffer_callback_p, trace, operands, dims, params)


buffer_callback_p: Primitive = register(Primitive(
    "buffer_callback", multiple_results=True, cached=False, batch_axis=_batch, printed=printed,
    effects=_effects,
    shape_rule=lambda *avals, result_avals, **_: list(result_avals),
    jvp=refused("Buffer callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks "
                "while taking gradients."),
    transpose=refused("Buffer callbacks do not support transpose. Please use `jax.custom_vjp` to "
                      "use callbacks while taking gradients."),
))


__dir__ = directory(__name__, __all__)
