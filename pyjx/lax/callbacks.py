"""Callbacks: Python functions that compiled programs call on the host.

`pure_callback` is a function of its operands like any other operation: it may be called as often as
it pleases the compiler, or never. `io_callback` and the callbacks of `debug` have effects: they are
called once each time the program comes to them, in the order of the program if they are ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes, logs
from pyjx.core.arithmetic import unknown
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.effects import Effect
from pyjx.core.primitive import Primitive, Rule, register
from pyjx.core.printer import without_address
from pyjx.core.records import Alike
from pyjx.core.tracebacks import filter_exception
from pyjx.engine.axes import at_front, broadcast_in_dim, moveaxis
from pyjx.engine.batching import BatchTrace
from pyjx.engine.rules import done_again, refused
from pyjx.engine.types import Dims, Params, TreeDef, Values
from pyjx.jaxlib_api import Sharding
from pyjx.lax.common import operands_in
from pyjx.lax.joining import concatenate, index_in_dim
from pyjx.lax.mapping import map as map_in_turn
from pyjx.lax.shapes import expand_dims
from pyjx.runtime.host_calls import call_on_host, check_device, show_on_host
from pyjx.runtime.sharding import SingleDeviceSharding
from pyjx.tree_util import tree_flatten, tree_leaves, tree_unflatten

# -- effects ---------------------------------------------------------------------------------------


class IOEffect(Alike, Effect):
    """A callback is called. Equal ones are of one class."""

    __slots__ = ()

    _key = property(type)  # of classes that derive from it, too

    def __repr__(self) -> str:
        return type(self).__name__.removesuffix("Effect")


class OrderedIOEffect(IOEffect):
    """A callback is called, after those before it."""

    __slots__ = ()

    ordered = True


class DebugEffect(IOEffect):
    """A callback is called for debugging."""

    __slots__ = ()

    repeatable = True


class OrderedDebugEffect(DebugEffect):
    """A callback is called for debugging, after those before it."""

    __slots__ = ()

    ordered = True
    one_device = True


io_effect, ordered_io_effect = IOEffect(), OrderedIOEffect()
debug_effect, ordered_debug_effect = DebugEffect(), OrderedDebugEffect()


# -- functions -------------------------------------------------------------------------------------


class FlatCallback(Alike):
    """A Python function over the leaves of its arguments, of which it gives the leaves of its
    result: whether they are those of a tuple or a list is not asked. Equal ones call the same
    function with the same structure. `op` is what the user called, which the log names where the
    function fails; `n_mapped` is how many axes of batches the results have, in front."""

    __slots__ = ("callback_func", "in_tree", "n_mapped", "op", "out_tree")

    def __init__(self, op: str, callback_func: Callable[..., Any], in_tree: TreeDef,
                 out_tree: TreeDef | None = None, n_mapped: int = 0) -> None:
        self.op = op
        self.n_mapped = n_mapped
        self.callback_func = callback_func
        self.in_tree = in_tree
        self.out_tree: Any = out_tree

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        try:
            result = self.callback_func(*args, **kwargs)
        except BaseException as error:
            if logs.heard(__name__):
                filter_exception(error)
                logs.log(__name__, logs.ERROR, f"jax.{self.op} failed", error)
            raise
        return [] if self.out_tree is None else tree_leaves(result)

    def __repr__(self) -> str:
        return f"FlatCallback(callback_func={self.callback_func}, in_tree={self.in_tree})"


_IN_TURN = ("sequential", "sequential_unrolled")
_VMAP_METHODS = (*_IN_TURN, "expand_dims", "broadcast_all", "legacy_vectorized", None)


def check_vmap_method(method: str | None) -> None:
    """Raise ValueError unless a call may be mapped so."""
    if method not in _VMAP_METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {[*_VMAP_METHODS]}, but "
                         f"got: {method}")


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any,
                  sharding: Sharding | None = None, vmap_method: str | None = None, **kwargs: Any
                 ) -> Any:
    """The result of a Python function that depends on nothing but its arguments.

    Args:
      callback: gets arrays in place of the leaves of `args` and `kwargs`, and gives arrays with the
        structure, shapes and dtypes of `result_shape_dtypes`.
      result_shape_dtypes: pytree of values with `shape` and `dtype`, such as `ShapeDtypeStruct`.
      args, kwargs: pytrees of arrays.
      sharding: a `SingleDeviceSharding`: which device of a program on several calls it; the first
        one if it is None.
      vmap_method: what `vmap` makes of it: "sequential" calls it for each example, one after the
        other, "sequential_unrolled" too, without a loop in the program; "expand_dims" calls it once
        with a leading axis for the batch, of size 1 where an argument is not mapped,
        "broadcast_all" repeats those; "legacy_vectorized" leaves them as they are.

    It has no derivatives; `custom_jvp` or `custom_vjp` gives it some.

    Raises:
      ValueError: an unknown `vmap_method`, 64-bit results while `jax_enable_x64` is off, or a
        device that is not the program's.
      NotImplementedError: `sharding` is of another kind, or given in a `shard_map`.
      JaxRuntimeError: the callback raises an exception, which is the cause, or gives other types.

    >>> import numpy as np
    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> @jax.jit
    ... def f(x):
    ...     like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    ...     return jax.pure_callback(lambda x: np.asarray(x) * 2, like, x)
    ...
    >>> f(jnp.arange(3.0)).tolist()
    [0.0, 2.0, 4.0]
    """
    check_vmap_method(vmap_method)
    _check_sharding("pure_callback", sharding)
    call, leaves, avals = _flat("pure_callback", callback, result_shape_dtypes, args, kwargs)
    outs = pure_callback_p.bind(*leaves, callback=call, result_avals=avals, sharding=sharding,
                                vmap_method=vmap_method)
    return tree_unflatten(call.out_tree, outs)


def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any,
                sharding: Sharding | None = None, ordered: bool = False, **kwargs: Any) -> Any:
    """Call a Python function that has effects.

    Args:
      callback: gets arrays in place of the leaves of `args` and `kwargs`, and gives arrays with the
        structure, shapes and dtypes of `result_shape_dtypes`.
      result_shape_dtypes: pytree of values with `shape` and `dtype`, such as `ShapeDtypeStruct`.
      args, kwargs: pytrees of arrays.
      sharding: a `SingleDeviceSharding`: which device of a program on several calls it; the first
        one if it is None.
      ordered: whether it is called after all ordered callbacks before it.

    Raises:
      ValueError: 64-bit results while `jax_enable_x64` is off, or a device that is not the
        program's.
      NotImplementedError: `sharding` is of another kind, or given in a `shard_map`.
      JaxRuntimeError: the callback raises an exception, which is the cause, or gives other types.

    >>> import pyjx as jax
    >>> from pyjx.experimental import io_callback
    >>> seen = []
    >>> jax.jit(lambda x: io_callback(lambda x: seen.append(float(x)), None, x, ordered=True))(2.0)
    >>> jax.effects_barrier()
    >>> seen
    [2.0]
    """
    _check_sharding("io_callback", sharding)
    call, leaves, avals = _flat("io_callback", callback, result_shape_dtypes, args, kwargs)
    outs = io_callback_p.bind(*leaves, callback=call, result_avals=avals, sharding=sharding,
                              ordered=bool(ordered))
    return tree_unflatten(call.out_tree, outs)


def _check_sharding(op: str, sharding: Sharding | None) -> None:
    if sharding is not None and type(sharding) is not SingleDeviceSharding:
        raise NotImplementedError(
            f"{op}: pure_callback only supports SingleDeviceSharding, but got {type(sharding)}. "
            "Name one device by jax.sharding.SingleDeviceSharding(device).")


def call_for_debugging(callback: Callable[..., Any], arrays: Sequence[Any], ordered: bool,
                       partitioned: bool) -> None:
    """Call a Python function of arrays whose results are not wanted."""
    leaves, in_tree = operands_in("debug callback (args)", (tuple(arrays), {}))
    debug_callback_p.bind(*leaves, callback=FlatCallback("debug.callback", callback, in_tree),
                          effect=ordered_debug_effect if ordered else debug_effect,
                          partitioned=bool(partitioned))


def _flat(op: str, callback: Callable[..., Any], result_shape_dtypes: Any, args: Sequence[Any],
          kwargs: dict[str, Any]) -> tuple[FlatCallback, list[Any], tuple[ShapedArray, ...]]:
    if not callable(callback):
        raise TypeError(f"{op}: callback must be callable, got {callback!r}.")
    leaves, in_tree = operands_in(f"{op} (args)", (tuple(args), kwargs))
    like, out_tree = tree_flatten(result_shape_dtypes)
    avals = tuple([result_aval(op, x) for x in like])
    return FlatCallback(op, callback, in_tree, out_tree), leaves, avals


def result_aval(op: str, like: Any) -> ShapedArray:
    """The type that a value with a shape and a dtype stands for."""
    shape, dtype = getattr(like, "shape", None), getattr(like, "dtype", None)
    if shape is None or dtype is None or isinstance(like, type):
        raise TypeError(f"{op}: result_shape_dtypes must hold values with a shape and a dtype, "
                        f"such as jax.ShapeDtypeStruct, got {like!r}.")
    if dtypes.is_extended(dtype):
        raise TypeError(f"{op}: results of dtype {dtypes.name(dtype)} cannot be given; give their "
                        "data, and make them of it by jax.random.wrap_key_data.")
    dtype = np.dtype(dtype)
    if not configuration.enable_x64.value and dtypes.canonicalize_dtype(dtype) != dtype:
        raise ValueError("result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is "
                         f"disabled. Give {dtypes.canonicalize_dtype(dtype)} for {dtype}.")
    return ShapedArray(tuple(shape), dtype)


# -- primitives ------------------------------------------------------------------------------------


def _shape(*avals: Any, result_avals: Any, **_: Any) -> list[Any]:
    return list(result_avals)


def _impl(*args: Any, callback: FlatCallback, result_avals: Sequence[ShapedArray] = (),
          sharding: Sharding | None = None, **_: Any) -> list[Any]:
    if sharding is not None:
        check_device(sharding, args)
    return call_on_host(callback, result_avals, args)


def _physical(primitive: Callable[[], Primitive]) -> Rule:
    """Keys are handed to callbacks as their data."""
    return lambda avals, *operands, **params: primitive().bind(*operands, **params)


def in_turn(run: Callable[..., Any], operands: Values, dims: Dims, unrolled: bool = False
            ) -> tuple[list[Any], list[int]]:
    """The results of what runs one example after the other, along a first axis."""
    mapped = [moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True) if d is not None]

    size = get_aval(mapped[0]).shape[0]

    def one(*examples: Any) -> list[Any]:
        given = iter(examples)
        return list(run(*[x if d is None else next(given)
                          for x, d in zip(operands, dims, strict=True)]))

    if unrolled and size:
        each = [one(*[index_in_dim(x, i, 0, False) for x in mapped]) for i in range(size)]
        outs = [concatenate([expand_dims(x, (0,)) for x in xs], 0)
                for xs in zip(*each, strict=True)]
    else:
        outs = list(map_in_turn(lambda examples: one(*examples), tuple(mapped)))
    return outs, [0] * len(outs)


def batch_by_method(primitive: Primitive, trace: BatchTrace, operands: Values, dims: Dims,
                    params: Params) -> Any:
    """The batching rule of what has a parameter `vmap_method`, and its results' types as
    `result_avals`."""
    method = params["vmap_method"]
    if method in _IN_TURN:
        return in_turn(partial(primitive.bind, **params), operands, dims, method != "sequential")
    if method is None:
        raise NotImplementedError(
            f"vmap is only supported for the {primitive.name} primitive when vmap_method is one of "
            "'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', or "
            f"'legacy_vectorized'. Got vmap_method={method}.")
    size = trace.axis.size
    new = []
    for x, d in zip(operands, dims, strict=True):
        if d is not None or method == "broadcast_all":
            x = at_front(x, d, trace.axis)
        elif method == "expand_dims":
            aval = get_aval(x)
            x = broadcast_in_dim(x, (1, *aval.shape), tuple(range(1, aval.ndim + 1)))
        new.append(x)
    avals = tuple([a.update(shape=(size, *a.shape)) for a in params["result_avals"]])
    outs = primitive.bind(*new, **{**params, "result_avals": avals})
    return outs, [0] * len(outs)


def _pure_batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    if params["vmap_method"] not in _IN_TURN:
        call = params["callback"]
        params["callback"] = FlatCallback(
            call.op, call.callback_func, call.in_tree, call.out_tree, call.n_mapped + 1)
    return batch_by_method(pure_callback_p, trace, operands, dims, params)


def _io_batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    if params["ordered"]:
        raise ValueError("Cannot `vmap` ordered IO callback. jax.lax.map(f, xs) keeps the order.")
    return in_turn(partial(io_callback_p.bind, **params), operands, dims)


def _debug_batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    for i in range(trace.axis.size):
        debug_callback_p.bind(
            *[x if d is None else index_in_dim(x, i, d, False)
              for x, d in zip(operands, dims, strict=True)], **params)
    return [], []


printed = partial(without_address, "callback")


pure_callback_p: Primitive = register(Primitive(
    "pure_callback", arithmetic=unknown, multiple_results=True, cached=False, shape_rule=_shape,
    impl=_impl,
    batch_axis=_pure_batch,
    printed=printed, physical=_physical(lambda: pure_callback_p),
    jvp=refused("Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks "
                 "while taking gradients."),
    transpose=refused("Pure callbacks do not support transpose. Please use `jax.custom_vjp` to "
                       "use callbacks while taking gradients."),
))

io_callback_p: Primitive = register(Primitive(
    "io_callback", multiple_results=True, cached=False, shape_rule=_shape, impl=_impl,
    batch_axis=_io_batch, printed=printed, physical=_physical(lambda: io_callback_p),
    effects=lambda params: frozenset({ordered_io_effect if params["ordered"] else io_effect}),
    takes_token=True,
    jvp=refused("IO callbacks do not support JVP. Call it with jax.lax.stop_gradient(x)."),
    transpose=refused("IO callbacks do not support transpose."),
))

debug_callback_p: Primitive = done_again(register(Primitive(
    "debug_callback", multiple_results=True, cached=False,
    impl=lambda *args, callback, **_: show_on_host(callback, args),
    shape_rule=lambda *avals, **params: [],
    batch_axis=_debug_batch, printed=printed, physical=_physical(lambda: debug_callback_p),
    effects=lambda params: frozenset({params["effect"]}), takes_token=True,
)))
