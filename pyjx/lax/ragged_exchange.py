"""The exchange of all with all over named axes, of slices whose places and sizes are data.

    y[t][output_offsets[s][t] + r] = x[s][input_offsets[s][t] + r]  for r < send_sizes[s][t]

where s and t are positions on the axis; the rest of y is `output`. It is linear in x and `output`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.arithmetic import TOGETHER
from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.effects import NamedAxisEffect
from pyjx.core.places import joined
from pyjx.core.primitive import Primitive, register, vary
from pyjx.engine.axes import broadcast_in_dim
from pyjx.engine.batching import BatchTrace
from pyjx.engine.tangents import full_aval, instantiate, is_undefined_primal
from pyjx.engine.types import AxisName, Dims, Operand, Tangent, Tangents, Value, Values
from pyjx.lax.collectives import (
    Axes,
    Groups,
    bound_names,
    check_allowed,
    check_ungrouped,
    checked_groups,
    raise_unmanual,
    size_of,
    typed_names,
    varied,
)
from pyjx.lax.common import operand as _operand
from pyjx.lax.exchanges import all_gather, all_to_all
from pyjx.transforms.linearize import linear_transpose

_INTEGERS = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def _shape(x: ShapedArray, output: ShapedArray, *integers: ShapedArray, axis_name: Axes,
           axis_index_groups: Groups) -> ShapedArray:
    for name, aval in zip(_INTEGERS, integers, strict=True):
        if not np.issubdtype(aval.dtype, np.integer):
            raise ValueError(f"ragged_all_to_all {name} must be integer type, got {aval}.")
        if aval.ndim != 1 or aval.shape[0] < 1:
            raise ValueError(f"ragged_all_to_all {name} must be rank 1 with positive dimension "
                             f"size, but got shape {aval.shape}")
        if aval.shape != integers[0].shape:
            raise ValueError(f"ragged_all_to_all {name} must have the shape of input_offsets, "
                             f"{integers[0].shape}, but got shape {aval.shape}")
    if not x.ndim or not output.ndim or (x.dtype, x.shape[1:]) != (output.dtype, output.shape[1:]):
        raise ValueError("ragged_all_to_all operand and output must be of one dtype, and of one "
                         f"shape but for their first axis, got {x} and {output}")
    return output.update(weak_type=False)


def _by_parts(x: Value, output: Value, *integers: Value, axis_name: Axes,
              axis_index_groups: Groups) -> Array:
    """The exchange as a choice among all rows, by tables that are exchanged first."""
    firsts, sizes, places = [
        all_to_all(lax.convert_element_type(v, np.dtype(np.int32)), axis_name, 0, 0, tiled=True)
        for v in integers[:3]]
    rows = get_aval(x).shape[0]
    (parts,) = get_aval(sizes).shape
    out = get_aval(output)
    table = (parts, out.shape[0])
    # For each part that comes here and each row of the output: which row of the part it is.
    row = lax.sub(lax.broadcasted_iota(np.int32, table, 1), broadcast_in_dim(places, table, (0,)))
    inside = lax.bitwise_and(lax.ge(row, np.int32(0)),
                             lax.lt(row, broadcast_in_dim(sizes, table, (0,))))
    source = np.arange(parts, dtype=np.int32) // (parts // size_of(axis_name)) * rows
    at = lax.add(row, broadcast_in_dim(lax.add(source, firsts), table, (0,)))
    at = lax.reduce_sum(lax.select(inside, at, lax.full_like(at, 0)), (0,))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, out.ndim)), collapsed_slice_dims=(0,), start_index_map=(0,))
    found = lax.gather(all_gather(x, axis_name, tiled=True), lax.expand_dims(at, (1,)), numbers,
                       (1, *out.shape[1:]), mode="clip")
    given = broadcast_in_dim(lax.reduce_or(inside, (0,)), out.shape, (0,))
    return lax.select(given, found, output)


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, axis_name: Axes,
           axis_index_groups: Groups) -> Any:
    if trace.axis.name in axis_name:
        check_ungrouped(ragged_all_to_all_p, axis_index_groups)
    examples = [trace.join(x, d) for x, d in zip(operands, dims, strict=True)]
    return trace.value_and_dim(
        _by_parts(*examples, axis_name=axis_name, axis_index_groups=axis_index_groups))


def _jvp(primals: Values, tangents: Tangents, **params: Any) -> Any:
    out = ragged_all_to_all_p.bind(*primals, **params)
    moved = [instantiate(t) for t in tangents[:2]]
    return out, ragged_all_to_all_p.bind(*moved, *primals[2:], **params)


def _transpose(ct: Tangent, x: Operand, output: Operand, *integers: Value, **params: Any) -> Any:
    # Rows may be sent to several positions, so this is no exchange the other way: they are added.
    def of_x(v: Value) -> Array:
        return _by_parts(v, full_aval(ct_aval, 0), *integers, **params)

    def of_output(v: Value) -> Array:
        return _by_parts(full_aval(x_aval, 0), v, *integers, **params)

    ct_aval = get_aval(ct)
    x_aval = x.aval if is_undefined_primal(x) else get_aval(x)
    return (linear_transpose(of_x, x.aval)(ct)[0] if is_undefined_primal(x) else None,
            linear_transpose(of_output, ct_aval)(ct)[0] if is_undefined_primal(output) else None,
            None, None, None, None)


def _on_devices(*operands: Value, axis_name: Axes, axis_index_groups: Groups) -> Any:
    raise_unmanual(ragged_all_to_all_p, axis_name)
    return _by_parts(*operands, axis_name=axis_name, axis_index_groups=axis_index_groups)


ragged_all_to_all_p: Primitive = register(Primitive(
    "ragged_all_to_all", shape_rule=_shape, batch_axis=_batch, jvp=_jvp, transpose=_transpose,
    linear=TOGETHER, decomposition=_on_devices,
    effects=lambda params: frozenset(map(NamedAxisEffect, params["axis_name"])),
))


def ragged_all_to_all(operand: Any, output: Any, input_offsets: Any, send_sizes: Any,
                      output_offsets: Any, recv_sizes: Any, *, axis_name: AxisName,
                      axis_index_groups: Sequence[Sequence[int]] | None = None) -> Array:
    """Each position sends each position a slice of rows, of any size, to any place.

    The vectors of integers have an entry for each target, or several: all of the first target's,
    then all of the second's, and so on. `send_sizes` here is `recv_sizes` there.

    Args:
      operand: what is sent, along its first axis.
      output: what the result is where nothing arrives. Only its first axis may be of another size.
      input_offsets: where in `operand` each slice begins.
      send_sizes: how many rows each slice has.
      output_offsets: where in the target's result each slice begins.
      recv_sizes: how many rows arrive from each position.
      axis_name: the name of the axis, or a tuple of them.
      axis_index_groups: a list of lists that part the positions on the axis: the exchange is within
        these. Not supported on the axes of vmap.

    Raises:
      NameError: there is no such axis here.
      ValueError: dtypes or shapes do not go together.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> def f(x, to):  # one row to position `to`, in place `index of the sender`
    ...     here = jax.lax.axis_index("i")
    ...     sizes = (jnp.arange(2) == to).astype(int)
    ...     places = jnp.full(2, here)
    ...     return jax.lax.ragged_all_to_all(
    ...         x, jnp.zeros(3), jnp.zeros(2, int), sizes, places, sizes, axis_name="i")
    ...
    >>> jax.vmap(f, axis_name="i")(jnp.array([[5.0], [7.0]]), jnp.array([1, 1])).tolist()
    [[0.0, 0.0, 0.0], [5.0, 7.0, 0.0]]
    """
    names = bound_names("ragged_all_to_all", axis_name)
    check_allowed("ragged_all_to_all", names)
    values = (operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)
    values = tuple([_operand("ragged_all_to_all", v, i) for i, v in enumerate(values)])
    params = {"axis_name": names,
              "axis_index_groups": checked_groups("ragged_all_to_all", axis_index_groups, names)}
    avals = tuple(map(get_aval, values))
    ragged_all_to_all_p.out_avals(avals, params)
    if avals[2].shape[0] % size_of(names):
        raise ValueError(
            "ragged_all_to_all input_offsets must have an entry for each of the "
            f"{size_of(names)} positions on {names}, or several, but got shape {avals[2].shape}")
    typed = typed_names(names)
    axes = joined(avals) | typed
    return ragged_all_to_all_p.bind(*[vary(varied(v, typed), axes) for v in values], **params)
