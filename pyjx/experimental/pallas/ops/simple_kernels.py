"""The simplest kernels: a product by blocks, and twice an array."""

from __future__ import annotations

import numpy as np

from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, DTypeLike
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.in_kernels import cdiv, when
from pyjx.experimental.pallas.kernel_calls import pallas_call
from pyjx.experimental.pallas.kernel_grids import BlockSpec, RefLike, num_programs, program_id
from pyjx.experimental.pallas.tpu_kernels import MemorySpace
from pyjx.lax.contractions import dot
from pyjx.runtime.abstract import ShapeDtypeStruct


def matmul_kernel(x_tile_ref: RefLike, y_tile_ref: RefLike, o_tile_ref: RefLike,
                  acc_ref: RefLike) -> None:
    """The kernel of `matmul`, whose last axis of the grid goes over the sums."""
    @when(program_id(2) == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += dot(x_tile_ref[...], y_tile_ref[...], preferred_element_type=acc_ref.dtype)

    @when(program_id(2) == num_programs(2) - 1)
    def _() -> None:
        o_tile_ref[...] = acc_ref[...].astype(o_tile_ref.dtype)


def matmul(x: Array, y: Array, *, block_shape: tuple[int, int], block_k: int = 256,
           out_dtype: DTypeLike | None = None, debug: bool = False) -> Array:
    """A product of matrices, by a kernel for TPUs.

    Elsewhere it runs within `pltpu.force_tpu_interpret_mode()`.

    Args:
      x, y: matrices.
      block_shape: how many rows and columns of the result a program computes.
      block_k: how many sums it takes at a time; it divides their number.
      out_dtype: the dtype of the result, that of both by default.
      debug: accepted.

    Raises:
      TypeError: they have two dtypes, and no `out_dtype` is given.
      ValueError: the shapes do not fit.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> from pyjx.experimental.pallas.ops.tpu.matmul import matmul
    >>> with pltpu.force_tpu_interpret_mode():
    ...     out = matmul(jnp.ones((16, 256)), jnp.ones((256, 128)), block_shape=(8, 128))
    ...
    >>> float(out[0, 0])
    256.0
    """
    (m, k), (inner, n) = x.shape, y.shape
    if out_dtype is None and x.dtype != y.dtype:
        raise TypeError("Cannot deduce output dtype for different input dtypes: "
                        f"{x.dtype}, {y.dtype}")
    rows, columns, sums = *block_shape, min(block_k, k)
    if k != inner or k % sums:
        raise ValueError(f"matmul: x has {k} columns and y {inner} rows, block_k is {block_k}. "
                         "Give as many of both, and a block_k that divides them.")
    kept = np.int32 if x.dtype.kind in "iu" else np.float32
    run = pallas_call(
        matmul_kernel, grid=(cdiv(m, rows), cdiv(n, columns), k // sums),
        out_shape=ShapeDtypeStruct((m, n), dtypes.dtype(out_dtype or x.dtype)),
        in_specs=[BlockSpec((rows, sums), lambda i, j, s: (i, s)),
                  BlockSpec((sums, columns), lambda i, j, s: (s, j))],
        out_specs=BlockSpec((rows, columns), lambda i, j, s: (i, j)),
        scratch_shapes=[MemorySpace.VMEM((rows, columns), kept)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")),
        name="matmul")
    return run(x, y)  # type: ignore[no-any-return]


def double_kernel(x_ref: RefLike, y_ref: RefLike) -> None:
    """The kernel of `double`."""
    y_ref[...] = x_ref[...] * 2


def double(x: Array) -> Array:
    """Twice an array, by a kernel."""
    run = pallas_call(double_kernel, ShapeDtypeStruct(x.shape, x.dtype), name="double")
    return run(x)  # type: ignore[no-any-return]
