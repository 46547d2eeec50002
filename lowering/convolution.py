"""Lowering of conv_general_dilated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.builder import Block
from lowering.contractions import precision_config
from lowering.elementwise import part_aval, parts
from lowering.rules import rule
from lowering.shapes import reshape
from lowering.shardings import whole_along
from lowering.types import int_list, tensor_type
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

_NON_STATIC = ("Convolutions with non-static strides, dilation, feature_group_count, or "
               "batch_group_count: ")
_OF_GROUPS = ", or let jax.lax.map call the convolution for one group after the other"


def _names(spec: Sequence[int], first: str, second: str) -> str:
    """`[b, 0, 1, f]`: the role of each axis."""
    names = [""] * len(spec)
    for i, axis in enumerate(spec):
        names[axis] = (first, second)[i] if i < 2 else str(i - 2)
    return f"[{', '.join(names)}]"


@rule("conv_general_dilated", apart=True)
def _convolution(b: Block, eqn: JaxprEqn, lhs: str, rhs: str) -> str:
    x, y = eqn.invars[0].aval, eqn.invars[1].aval
    out = eqn.outvars[0].aval
    for names, cure in ((("window_strides", "lhs_dilation", "rhs_dilation"), ""),
                        (("feature_group_count", "batch_group_count"), _OF_GROUPS)):
        b.check_known("conv_general_dilated", eqn.params, names, _NON_STATIC, cure)
    if dtypes.issubdtype(x.dtype, np.complexfloating) and b.module.platform != "tpu":
        return _complex(b, eqn, lhs, rhs)
    return _real(b, eqn.params, lhs, rhs, x, y, out)


def _real(b: Block, p: dict[str, Any], lhs: str, rhs: str, x: ShapedArray, y: ShapedArray,
          out: ShapedArray) -> str:
    dn = p["dimension_numbers"]
    if not p["window_strides"] and max(p["feature_group_count"], p["batch_group_count"]) > 1:
        return _with_space(b, p, lhs, rhs, x, y, out)
    if not all(y.shape[axis] for axis in dn.rhs_spec[2:]):  # StableHLO has no empty windows
        return b.constant(0, out)
    if max(p["lhs_dilation"], default=1) > 1 or max(p["rhs_dilation"], default=1) > 1:
        # Cut otherwise than in batches, XLA's partitioner aborts the process or mixes groups up.
        kept = dn.lhs_spec[:p["batch_group_count"] == 1]
        lhs = whole_along(b, lhs, x, [i for i in range(x.ndim) if i not in kept])
        rhs = whole_along(b, rhs, y, range(y.ndim))
    precision = precision_config(p["precision"])[1:-1].split(", ")
    config = ", ".join([f"#stablehlo<precision {name}>" for name in precision])
    pads = ", ".join([int_list(pair) for pair in p["padding"]])
    rank = len(p["window_strides"])
    window = (
        f"stride = {int_list(p['window_strides'])}, pad = [{pads}], "
        f"lhs_dilate = {int_list(p['lhs_dilation'])}, rhs_dilate = {int_list(p['rhs_dilation'])}, "
        f"reverse = [{', '.join(['false'] * rank)}]"
    ) if rank else ""
    return b.line(
        f"stablehlo.convolution({lhs}, {rhs}) dim_numbers = {_names(dn.lhs_spec, 'b', 'f')}x"
        f"{_names(dn.rhs_spec, 'o', 'i')}->{_names(dn.out_spec, 'b', 'f')}, window = {{{window}}} "
        f"{{batch_group_count = {p['batch_group_count']} : i64, "
        f"feature_group_count = {p['feature_group_count']} : i64, precision_config = [{config}]}} :"
        f" ({tensor_type(x)}, {tensor_type(y)}) -> {tensor_type(out)}")


def _with_space(b: Block, p: dict[str, Any], lhs: str, rhs: str, x: ShapedArray, y: ShapedArray,
                out: ShapedArray) -> str:
    """With one spatial axis, of size 1: without any, XLA 0.7 ignores the groups."""
    wide_x, wide_y, wide_out = [a.update(shape=(*a.shape, 1)) for a in (x, y, out)]
    lhs, rhs = reshape(b, lhs, x, wide_x.shape), reshape(b, rhs, y, wide_y.shape)
    numbers = p["dimension_numbers"]
    spatial = {
        **p, "window_strides": (1,), "padding": ((0, 0),), "lhs_dilation": (1,),
        "rhs_dilation": (1,),
        "dimension_numbers": type(numbers)(*[(*spec, 2) for spec in numbers]),
    }
    result = _real(b, spatial, lhs, rhs, wide_x, wide_y, wide_out)
    return reshape(b, result, wide_out, out.shape)


def _complex(b: Block, eqn: JaxprEqn, lhs: str, rhs: str) -> str:
    """(a + ib)(c + id) by three real convolutions: with k = (a + b) c the real part is
    k - b (c + d) and the imaginary one k + a (d - c)."""
    x, y = eqn.invars[0].aval, eqn.invars[1].aval
    out = eqn.outvars[0].aval

    x_real, y_real, out_real = map(part_aval, (x, y, out))
    (x_re, x_im), (y_re, y_im) = parts(b, lhs, x), parts(b, rhs, y)

    def conv(p: str, q: str) -> str:
        return _real(b, eqn.params, p, q, x_real, y_real, out_real)

    k = conv(b.binary("stablehlo.add", x_re, x_im, x_real), y_re)
    re = conv(x_im, b.binary("stablehlo.add", y_re, y_im, y_real))
    im = conv(x_re, b.binary("stablehlo.subtract", y_im, y_re, y_real))
    real = b.binary("stablehlo.subtract", k, re, out_real)
    imag = b.binary("stablehlo.add", k, im, out_real)
    return b.binary("stablehlo.complex", real, imag, out)
