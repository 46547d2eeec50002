"""What kernels do besides reading and writing references: conditions, loops, scratch space, prints;
estimates of what one costs, and arithmetic of sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from pyjx import configuration
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import AbstractRef, ShapedArray, get_aval, nbytes
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import Tracer
from pyjx.debug import printing
from pyjx.experimental.checkify import checks
from pyjx.experimental.pallas.kernel_calls import scratch_type, scratch_value, uninitialized
from pyjx.experimental.pallas.kernel_grids import ANY, CostEstimate, MemoryRef, axes_of_kernel
from pyjx.lax.conditionals import cond
from pyjx.lax.fori import fori_loop
from pyjx.lax.references import free_ref, freeze, new_ref
from pyjx.runtime.jit import jit
from pyjx.tree_util import tree_leaves, tree_map

_Carry = TypeVar("_Carry")
_Result = TypeVar("_Result")
_Int = TypeVar("_Int", int, Array)

# -- conditions and loops --------------------------------------------------------------------------


def when(condition: ArrayLike, /) -> Callable[[Callable[[], None]], None]:
    """Run the decorated function, at once, if a condition holds.

    Args:
      condition: a bool, or a traced one, of which the function becomes a branch.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> def kernel(out_ref):
    ...     out_ref[0] = 1
    ...     @pl.when(pl.program_id(0) == 1)
    ...     def _():
    ...         out_ref[0] = 7
    ...
    >>> one = pl.BlockSpec((1,), lambda i: (i,))
    >>> out = jax.ShapeDtypeStruct((3,), "int32")
    >>> pl.pallas_call(kernel, out, grid=3, out_specs=one, interpret=True)().tolist()
    [1, 7, 1]
    """
    def run(function: Callable[[], None]) -> None:
        shape = get_aval(condition).shape
        if shape:
            raise ValueError(f"when: the condition must be one bool, got one of the shape {shape}. "
                             "Choose elements by jnp.where, or all together by jnp.any or jnp.all.")
        if isinstance(condition, Tracer):
            cond(condition, function, lambda: None)
        elif condition:
            function()

    return run


def loop(lower: ArrayLike, upper: ArrayLike, *, init_carry: _Carry | None = None,
         step: ArrayLike = 1, unroll: int | bool | None = None
         ) -> Callable[[Callable[..., _Carry | None]], _Carry | None]:
    """Run the decorated function for each index of a range, at once; the name becomes the carry.

    Args:
      lower, upper: where the indices begin, and before what they end; they may be traced.
      init_carry: the first value of what goes from one run to the next; without it the function
        takes the index alone and returns nothing.
      step: how far apart indices are, a positive int or traced integer.
      unroll: as of `lax.fori_loop`.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> def kernel(out_ref):
    ...     @pl.loop(0, 6, step=2)
    ...     def _(i):
    ...         out_ref[i // 2] = i
    ...
    >>> out = jax.ShapeDtypeStruct((3,), "int32")
    >>> pl.pallas_call(kernel, out, interpret=True)().tolist()
    [0, 2, 4]
    """
    if isinstance(step, int) and step < 1:
        raise ValueError(f"loop: step must be positive, got {step}. Count down from the last index "
                         "in the body.")
    first: Any = lower
    count: Any = (upper - first + (step - 1)) // step  # type: ignore[operator]

    def run(body: Callable[..., _Carry | None]) -> _Carry | None:
        def one(k: Any, carry: Any) -> Any:
            i = first + k * step
            if init_carry is None:
                body(i)
                return carry
            return body(i, carry)

        return fori_loop(0, count, one, init_carry, unroll=unroll)

    return run


# -- scratch space ---------------------------------------------------------------------------------


def run_scoped(f: Callable[..., _Result], *types: object, collective_axes: object = (),
               **kw_types: object) -> _Result:
    """`f` on references to new scratch space and semaphores, which are gone behind it.

    Args:
      f: takes a tree of references for each tree of `types`, and for those by name.
      types, kw_types: memories with shapes, or semaphores.
      collective_axes: over which axes of a mesh of cores it is shared: none here.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> def kernel(x_ref, out_ref):
    ...     def body(scratch_ref):
    ...         scratch_ref[...] = x_ref[...] + 1
    ...         out_ref[...] = scratch_ref[...] * 2
    ...     pl.run_scoped(body, pl.ANY((2,), "float32"))
    ...
    >>> x = jax.numpy.array([1.0, 2.0])
    >>> pl.pallas_call(kernel, x, interpret=True)(x).tolist()
    [4.0, 6.0]
    """
    if collective_axes not in ((), None):
        raise NotImplementedError("run_scoped: scratch space that cores share (collective_axes) is "
                                  "not there yet. Leave collective_axes out.")
    made: list[Any] = []

    def new(described: Any) -> Any:
        made.append(scratch(scratch_type(described).varying(axes_of_kernel())))
        return made[-1]

    args, kwargs = tree_map(new, (types, kw_types))
    out = f(*args, **kwargs)
    for ref in made:
        free_ref(ref)
    return out


def with_scoped(*types: object, collective_axes: object = (), **kw_types: object
                ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function gets its scratch space, behind its other arguments, when called.

    Args:
      types, collective_axes, kw_types: as of `run_scoped`.
    """
    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            return run_scoped(lambda *refs, **named: f(*args, *refs, **kwargs, **named), *types,
                              collective_axes=collective_axes, **kw_types)

        return run

    return decorate


def scratch(ref: AbstractRef) -> Any:
    """A reference to scratch space of its type."""
    return new_ref(scratch_value(ref), memory_space=ref.memory_space, kind=ref.kind)


def empty_like(x: Any) -> Any:
    """Arrays of the shapes and dtypes of those in a tree, whose values are not to be relied on."""
    return tree_map(lambda leaf: uninitialized(ShapedArray(leaf.shape, leaf.dtype)), x)


def empty_ref_like(x: Any) -> Any:
    """References to such arrays: inside of `jit` and kernels."""
    return tree_map(lambda leaf: scratch(
        scratch_type(leaf) if isinstance(leaf, MemoryRef) else AbstractRef(
            ShapedArray(leaf.shape, leaf.dtype), ANY)), x)


# -- what helps to see -----------------------------------------------------------------------------


def debug_print(fmt: str, *args: ArrayLike) -> None:
    """Print values from a kernel, as `jax.debug.print` does.

    Args:
      fmt: a format string with a field for each argument.
      args: what it shows.
    """
    printing.print(fmt, *args)


def debug_check(condition: ArrayLike, message: str) -> None:
    """`checkify.check` of a condition where the flag `jax_pallas_enable_debug_checks` is set.

    Args:
      condition: a scalar bool.
      message: what is said if it does not hold.
    """
    if configuration.pallas_enable_debug_checks.value:
        checks.check(condition, message)  # type: ignore[arg-type]


def trace_value(label: str, value: ArrayLike) -> None:
    """A number for profiles of a kernel: accepted, and not shown.

    Args:
      label: what it is called.
      value: a number, int32 or float32.
    """
    aval = get_aval(value)
    if aval.shape or aval.dtype not in (np.int32, np.float32):
        raise ValueError(f"trace_value: {label!r} must be a number, int32 or float32, got "
                         f"{aval.str_short()}.")


def delay(nanos: ArrayLike) -> None:
    """Let a kernel wait for so many nanoseconds: nothing where it is interpreted."""


multiple_of_p = register(Primitive(
    "multiple_of", shape_rule=lambda aval, values: aval, decomposition=lambda x, values: x))


def multiple_of(x: _Int, values: Sequence[int] | int) -> _Int:
    """`x`, of which a compiler may take it that it is a multiple of each of `values`.

    TPUs read and write where rows are tiles of eight only if they know that of the first one.

    Args:
      x: an integer, traced or not.
      values: integers of which it is a multiple.
    """
    if isinstance(x, int):
        return x
    given = (values,) if isinstance(values, int) else tuple(values)
    return multiple_of_p.bind(x, values=given)  # type: ignore[no-any-return]


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """What a function costs, as it is written: an estimate from its jaxpr.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import pallas as pl
    >>> pl.estimate_cost(lambda x: jnp.exp(x @ x), jnp.ones((4, 4))).flops
    128
    """
    traced = jit(fun).trace(*args, **kwargs)
    total = traced.cost().total
    moved = [get_aval(x) for x in tree_leaves((args, kwargs))] + traced.jaxpr.out_avals
    return CostEstimate(int(total.flops), int(total.transcendentals), int(sum(map(nbytes, moved))))


def lower_as_mlir(f: Callable[..., Any], *args: Any, dynamic_shapes: bool = False,
                  device: Any = None, static_argnames: Sequence[str] = (),
                  platforms: Sequence[str] | None = None, **kwargs: Any) -> str:
    """The StableHLO text of a function.

    Args:
      f, args, kwargs: the function and what it is traced on.
      dynamic_shapes: must be false.
      device: whose platform it is for.
      static_argnames: arguments that are static.
      platforms: one platform that it is for.
    """
    if dynamic_shapes:
        raise NotImplementedError("lower_as_mlir: shapes of kernels are static. Leave "
                                  "dynamic_shapes out.")
    if device is not None:
        platforms = (device.platform,)
    traced = jit(f, static_argnames=static_argnames).trace(*args, **kwargs)
    return traced.lower(lowering_platforms=platforms).as_text()  # type: ignore[no-any-return]


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """The function from a pytree of values to the values that references to them have after `f`.

    Args:
      f: takes the pytree of references.

    >>> from pyjx.experimental import pallas as pl
    >>> def double(ref):
    ...     ref[...] = ref[...] * 2
    ...
    >>> pl.run_state(double)(3)
    Array(6, dtype=int32)
    """
    def values_after(args: Any) -> Any:
        refs = tree_map(new_ref, args)
        f(refs)
        return tree_map(freeze, refs)

    return values_after


# -- sizes -----------------------------------------------------------------------------------------


def cdiv(a: _Int, b: _Int) -> _Int:
    """How many blocks of `b` hold `a`, ints or integer arrays.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.cdiv(7, 2)
    4
    """
    return (a + b - 1) // b


def align_to(a: _Int, alignment: _Int) -> _Int:
    """The next multiple of `alignment` from `a` on.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.align_to(100, 128)
    128
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The next power of two from `x` on.

    Raises:
      ValueError: it is negative.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.next_power_of_2(5)
    8
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 << max(x - 1, 0).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """How many elements apart the entries of each axis lie, the last axis densest.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(prod(shape[axis + 1:]) for axis in range(len(shape)))
