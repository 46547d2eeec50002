"""`fori_loop`: a body for each integer of a range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import SymbolicDim, get_aval
from pyjx.core.integers import max_dim
from pyjx.core.jaxpr import DebugInfo
from pyjx.core.scalars import int_fits, scalar_of
from pyjx.core.trace import Tracer, is_concrete
from pyjx.engine.types import TreeDef, Value
from pyjx.lax.agreement import KeptFunctions
from pyjx.lax.common import operand
from pyjx.lax.compare import lt
from pyjx.lax.convert import convert_element_type
from pyjx.lax.elementwise import add
from pyjx.lax.loops import while_loop
from pyjx.lax.scans import scan
from pyjx.runtime.signature import debug_info_of
from pyjx.tree_util import treedef_tuple

_Carry = TypeVar("_Carry")


@overload
def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Array], ArrayLike],
              init_val: ArrayLike, *, unroll: int | bool | None = None) -> Array: ...


@overload
def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, _Carry], _Carry],
              init_val: _Carry, *, unroll: int | bool | None = None) -> _Carry: ...


def fori_loop(lower: Value, upper: Value, body_fun: Callable[[Any, Any], Any], init_val: Any, *,
              unroll: int | bool | None = None) -> Any:
    """`val = body_fun(i, val)` for each i from `lower` up to, not including, `upper`.

    Where both bounds are known when the loop is traced it is a `scan` over Python's integers and
    has derivatives in both modes; else it is a `while_loop`, which has forward ones.

    Args:
      lower, upper: integer scalars of one type, Python's being of any signed one.
      body_fun: from an index and a value to the next value, of the same structure and types.
      init_val: pytree of arrays.
      unroll: how many iterations the compiled loop does at a time, or whether it does all; for
        known bounds.

    Raises:
      TypeError: the bounds differ in type, or the body changes that of the value.
      ValueError: `unroll` is given and a bound is not known.
      OverflowError: a bound is beyond the range of the index, which is of Python's integers.

    >>> import pyjx as jax
    >>> int(jax.lax.fori_loop(0, 5, lambda i, total: total + i, 0))
    10

    An array in the carry is changed in place when it is compiled.

    >>> def squares(n):
    ...     start = jax.numpy.zeros(4, int)
    ...     return jax.lax.fori_loop(0, n, lambda i, x: x.at[i].set(i * i), start)
    ...
    >>> jax.jit(squares)(3).tolist()
    [0, 1, 4, 0]
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    if _are_dimensions(lower, upper):
        return scan(_scan_bodies.of(body_fun), (lower, init_val), None,
                    length=max_dim(upper - lower, 0), unroll=1)[0][1]  # type: ignore[operator]
    lower, upper = operand("fori_loop (lower)", lower), operand("fori_loop (upper)", upper, 1)
    for name, bound in (("lower", lower), ("upper", upper)):
        if get_aval(bound).shape:
            raise TypeError(f"fori_loop: {name} must be a scalar, got {get_aval(bound)}")
    dtype = _index_dtype(lower, upper)
    if is_concrete(lower) and is_concrete(upper):
        start, stop = int(lower), int(upper)  # type: ignore[arg-type]
        _check_fits(start, stop)
        length = max(stop - start, 0)
        if configuration.disable_jit.value and not length:
            return init_val
        return scan(_scan_bodies.of(body_fun), (start, init_val), None, length=length,
                    unroll=1 if unroll is None else unroll)[0][1]
    if unroll is not None:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically "
                         "known. Leave it out, or let the bounds be Python's integers.")
    bounds = [x if get_aval(x).dtype == dtype else convert_element_type(x, dtype)
              for x in (lower, upper)]
    return while_loop(_holds, _while_bodies.of(body_fun), (*bounds, init_val))[2]


def _are_dimensions(lower: Any, upper: Any) -> bool:
    """Whether the bounds are known but for the values of dimension variables."""
    return (isinstance(lower, SymbolicDim) or isinstance(upper, SymbolicDim)) and all(
        [isinstance(x, (int, SymbolicDim)) for x in (lower, upper)])


def _check_fits(start: int, stop: int) -> None:
    """Raise OverflowError unless the index, which is of Python's integers, can be the bounds."""
    for name, value in (("lower", start), ("upper", stop)):
        aval = get_aval(value)
        if not int_fits(value, aval):
            cure = ", or count from 0" * int_fits(stop - start, aval)
            raise OverflowError(f"lax.fori_loop: {name}: Python int {value} too large to convert "
                                f"to {aval.dtype}. Enable x64{cure}.")


def _index_dtype(lower: ArrayLike, upper: ArrayLike) -> Any:
    a, b = get_aval(lower), get_aval(upper)
    if a.dtype == b.dtype:
        return a.dtype
    signed = all([dtypes.issubdtype(x.dtype, np.signedinteger) for x in (a, b)])
    if signed and a.weak_type != b.weak_type:
        return b.dtype if a.weak_type else a.dtype
    traced = any([isinstance(x, Tracer) for x in (lower, upper)])
    cure = "n // 2 in place of n / 2, or x.astype(int)" if traced else "such as int(x)"
    raise TypeError("lower and upper arguments to fori_loop must have equal types, got "
                    f"{dtypes.name(a.dtype)} and {dtypes.name(b.dtype)}. Make both integers of one "
                    f"dtype, {cure}.")


def _holds(loop_carry: Any) -> Any:
    return lt(loop_carry[0], loop_carry[1])


def _next(i: Any) -> Any:
    return add(i, scalar_of(get_aval(i), 1))


def _scan_body(body: Callable[[], Any]) -> Callable[..., Any]:
    def step(loop_carry: Any, _: Any) -> Any:
        return (_next(loop_carry[0]), body()(*loop_carry)), None

    def debug_info(tree: TreeDef) -> DebugInfo:
        return debug_info_of("fori_loop", body(), tree.children()[0])

    return _speaking_of(body, step, debug_info)


def _while_body(body: Callable[[], Any]) -> Callable[..., Any]:
    def step(loop_carry: Any) -> Any:
        return _next(loop_carry[0]), loop_carry[1], body()(loop_carry[0], loop_carry[2])

    def debug_info(tree: TreeDef) -> DebugInfo:
        index, _, value = tree.children()
        own = debug_info_of("fori_loop", body(), treedef_tuple([index, value]))

        def names() -> tuple[str, ...] | None:
            found = own.arg_names
            return found and (found[0], "upper", *found[1:])

        return DebugInfo(own.traced_for, own.func_src_info, names)

    return _speaking_of(body, step, debug_info)


def _speaking_of(body: Callable[[], Any], step: Any, debug_info: Callable[[TreeDef], DebugInfo]
                 ) -> Callable[..., Any]:
    """`step`, in whose errors the carry is the second argument of the user's function, and which
    is traced under the name of that."""
    step.user_body = lambda: ("fori_loop", "body_fun", body(), 1, 1)
    step.debug_info = debug_info
    return step  # type: ignore[no-any-return]


_scan_bodies, _while_bodies = KeptFunctions(_scan_body), KeptFunctions(_while_body)
