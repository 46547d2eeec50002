"""`jax._src.numpy.util`: arguments of functions of NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyjx.numpy as jnp
from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.numpy import promotion
from pyjx.numpy.promotion import check_arraylike, check_ranks, is_arraylike
from pyjx.runtime.sharding import Sharding, SingleDeviceSharding

__all__ = [
    "canonicalize_device_to_sharding", "check_arraylike_or_none", "check_for_prngkeys",
    "check_no_float0s", "choose_device_or_out_sharding", "ensure_arraylike",
    "ensure_arraylike_tuple",
]

_arraylike = is_arraylike
_rank_promotion_warning_or_error = check_ranks
_broadcast_to, _where = jnp.broadcast_to, jnp.where


def _broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    return tuple(jnp.broadcast_arrays(*args))


def ensure_arraylike_tuple(fun_name: str, tup: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a function as arrays.

    Raises:
      TypeError: one is neither array nor scalar.
    """
    check_arraylike(fun_name, *tup)
    return tuple([jnp.asarray(x) for x in tup])


def ensure_arraylike(fun_name: str, /, *args: Any) -> Any:
    """As `ensure_arraylike_tuple`; one argument is an array.

    >>> ensure_arraylike("f", 2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    arrays = ensure_arraylike_tuple(fun_name, args)
    return arrays[0] if len(arrays) == 1 else arrays


def check_arraylike_or_none(fun_name: str, *args: Any) -> None:
    """TypeError unless all arguments are arrays, scalars or None."""
    for i, x in enumerate(args):
        if x is not None and not is_arraylike(x):
            raise TypeError(f"{fun_name} requires ndarray, scalar, or None arguments, got {type(x)}"
                            f" at position {i}.")


def check_no_float0s(fun_name: str, *args: Any) -> None:
    """TypeError if an argument is of float0."""
    if any(dtypes.dtype(x) == dtypes.float0 for x in args):
        raise dtypes.float0_error(fun_name)


_check_no_float0s = check_no_float0s


def check_for_prngkeys(fun_name: str, *args: Any) -> None:
    """TypeError if some arguments are random keys, and others are not."""
    kinds = {get_aval(x).dtype for x in args}
    if len(kinds) > 1 and any(dtypes.issubdtype(kind, dtypes.prng_key) for kind in kinds):
        listed = ", ".join(str(get_aval(x).dtype) for x in args)
        raise TypeError(f"{fun_name} does not accept dtypes {listed}.")


def canonicalize_device_to_sharding(device: Any) -> Sharding | None:
    """The sharding that an argument `device` stands for."""
    if device is None or isinstance(device, Sharding):
        return device
    return SingleDeviceSharding(device)


def choose_device_or_out_sharding(device: Any, out_sharding: Any, name: str) -> Sharding | None:
    """The sharding that `device` or `out_sharding`, of which one is given, stands for.

    Raises:
      ValueError: both are.
    """
    if device is not None and out_sharding is not None:
        raise ValueError(f"Only one of `device` or `out_sharding` can be set. Got {device=} and "
                         f"{out_sharding=} in {name}.")
    return canonicalize_device_to_sharding(device) if out_sharding is None else out_sharding


def __getattr__(name: str) -> Any:
    return getattr(promotion, name)
