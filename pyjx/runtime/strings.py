"""Arrays of strings (NumPy's StringDType), which lie on CPU devices; no program takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.runtime.transfers import put_host


def put_strings(x: np.ndarray[Any, Any], sharding: Any, dtype: Any = None) -> Any:
    """The array of strings with a sharding; `dtype` is the one that is asked for.

    Raises:
      TypeError: another dtype is asked for, strings are missing, or no CPU devices are named.
    """
    if dtype is not None and np.dtype(dtype) != x.dtype:
        name = dtypes.name(dtypes.canonicalize_dtype(dtype))
        raise TypeError(f"Cannot make an array with dtype {name} from an object with dtype "
                        f"{x.dtype}. NumPy's x.astype(float) reads numbers.")
    if x.dtype != type(x.dtype)():
        raise TypeError(f"Dtype {x.dtype} is not a valid JAX array type. Only arrays of numeric "
                        "types are supported by JAX, and strings none of which is missing.")
    if sharding is None or any([d.platform != "cpu" for d in sharding.device_set]):
        raise TypeError("String arrays can only be sharded to CPU devices. Received unsupported "
                        f"device or sharding: {sharding}. Name one, as jax.devices('cpu')[0].")
    if x.size == 0:
        raise TypeError(f"Arrays of no strings, as this one of shape {x.shape}, cannot be on a "
                        "device: the runtime takes none. Leave it a NumPy array.")
    return put_host(x, ShapedArray(x.shape, x.dtype), sharding, False)
