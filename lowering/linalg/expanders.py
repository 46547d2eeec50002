"""Linear algebra that XLA has itself, in StableHLO or as calls that its compiler expands; what the
rules of all platforms need: triangles, blocks, and results of calls that may fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals
from lowering.rules import Emit, rule
from lowering.shapes import slice_, transpose
from lowering.types import tensor_type
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

FLAG = np.dtype(np.bool_)
INT = np.dtype(np.int32)


def batch_of(aval: ShapedArray) -> tuple[int, ...]:
    """The shape without the two axes of the matrices."""
    return aval.shape[:-2]


def out_avals(eqn: JaxprEqn) -> list[ShapedArray]:
    return [v.aval for v in eqn.outvars]


def where(b: Block, condition: str, condition_aval: ShapedArray, axes: Sequence[int],
          on_true: str, on_false: str, aval: ShapedArray) -> str:
    """A selection by a condition that is stretched to the operands' shape."""
    flags = aval.update(dtype=FLAG)
    if condition_aval.shape != aval.shape:
        condition = b.broadcast(condition, condition_aval, flags, axes)
    return b.select(condition, on_true, on_false, aval)


def nan_where_failed(b: Block, results: Sequence[str], avals: Sequence[ShapedArray], info: str,
                     batch: Sequence[int], passes: str = "EQ") -> list[str]:
    """The results, with NaN for those matrices of the batch for which `info` is not 0 (or, with
    GE, is negative)."""
    codes = ShapedArray(tuple(batch), INT)
    succeeded = b.compare(passes, info, b.constant(0, codes), codes, "SIGNED")
    axes = range(len(codes.shape))
    return [where(b, succeeded, codes.update(dtype=FLAG), axes, x, _nan(b, a), a)
            for x, a in zip(results, avals, strict=True)]


def _nan(b: Block, aval: ShapedArray) -> str:
    return b.constant(complex(np.nan, np.nan) if aval.dtype.kind == "c" else np.nan, aval)


def triangle(b: Block, x: str, aval: ShapedArray, *, lower: bool) -> str:
    """Matrices with zeros above, or below, the diagonal."""
    return _kept(b, "GE" if lower else "LE", x, aval)


def _kept(b: Block, where_row: str, x: str, aval: ShapedArray) -> str:
    """Matrices with zeros but where the row compares like this with the column."""
    plane = ShapedArray(aval.shape[-2:], INT)
    kept = b.compare(where_row, b.iota(plane, 0), b.iota(plane, 1), plane, "SIGNED")
    axes = (aval.ndim - 2, aval.ndim - 1)
    return where(b, kept, plane.update(dtype=FLAG), axes, x, b.constant(0, aval), aval)


def block(b: Block, x: str, aval: ShapedArray, out: ShapedArray) -> str:
    """The first rows and columns, as many as `out` has."""
    return x if aval.shape == out.shape else slice_(b, x, aval, [0] * aval.ndim, out.shape)


def swapped(b: Block, x: str, aval: ShapedArray) -> tuple[str, ShapedArray]:
    """Matrices with rows and columns exchanged."""
    axes = [*range(aval.ndim - 2), aval.ndim - 1, aval.ndim - 2]
    return transpose(b, x, aval, axes), aval.update(shape=[aval.shape[i] for i in axes])


def conjugated(b: Block, x: str, aval: ShapedArray) -> str:
    return b.line(f"chlo.conj {x} : {tensor_type(aval)} -> {tensor_type(aval)}")


def identity(b: Block, aval: ShapedArray) -> str:
    """Ones on the diagonal."""
    return _kept(b, "EQ", b.constant(1, aval), aval)


def of_some(emit: Emit, b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    """What `emit` computes of matrices, if they and the result have elements. Of nothing the
    factors that have some are the identity, and orders are as they were."""
    outs = out_avals(eqn)
    if in_avals(eqn)[0].size and outs[0].size:
        return emit(b, eqn, *operands)
    found = [b.iota(a, a.ndim - 1) if a.dtype == INT else
             identity(b, a) if a.size else b.constant(0, a) for a in outs]
    return found if eqn.primitive.multiple_results else found[0]


def complex_of(b: Block, real: str, imag: str, aval: Any) -> str:
    return b.line(f"stablehlo.complex {real}, {imag} : {tensor_type(aval)}")


def check_choice(eqn: JaxprEqn, param: str, known: Sequence[str], platform: str,
                 error: type[Exception] = NotImplementedError) -> None:
    """Raise unless the algorithm that is asked for is one of those that the platform has."""
    chosen = eqn.params[param]
    if chosen is not None and chosen.name not in known:
        raise error(f"{eqn.primitive}: {chosen} is not implemented on {platform}. Leave it out, or "
                    f"choose among {', '.join(known)}.")


@rule("cholesky", within=of_some)
def _cholesky(b: Block, eqn: JaxprEqn, x: str) -> str:
    (aval,) = out_avals(eqn)
    return triangle(b, b.line(f"stablehlo.cholesky {x}, lower = true : {tensor_type(aval)}"),
                    aval, lower=True)


@rule("triangular_solve", within=of_some)
def triangular_solve(b: Block, eqn: JaxprEqn, a: str, x: str) -> str:
    (matrix, right), params = in_avals(eqn), eqn.params
    turned = "NO_TRANSPOSE"
    if params["transpose_a"]:
        turned = "ADJOINT" if params["conjugate_a"] else "TRANSPOSE"
    elif params["conjugate_a"]:
        a = conjugated(b, a, matrix)
    flags = {key: str(params[key]).lower() for key in ("left_side", "lower", "unit_diagonal")}
    return b.line(
        f'"stablehlo.triangular_solve"({a}, {x}) <{{left_side = {flags["left_side"]}, lower = '
        f'{flags["lower"]}, transpose_a = #stablehlo<transpose {turned}>, unit_diagonal = '
        f'{flags["unit_diagonal"]}}}> : ({tensor_type(matrix)}, {tensor_type(right)}) -> '
        f"{tensor_type(right)}")


@rule("lu", platform="tpu", within=of_some)
def _lu(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    avals = out_avals(eqn)
    return b.custom_call("LuDecomposition", [x], [avals[0]], avals, api_version=1)


@rule("geqrf", platform="tpu", within=of_some)
def _geqrf(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    packed, taus = out_avals(eqn)
    return b.custom_call("Qr", [x], [packed], [packed, taus], api_version=1)


@rule("householder_product", platform="tpu", within=of_some)
def _householder_product(b: Block, eqn: JaxprEqn, a: str, taus: str) -> str:
    (out,) = out_avals(eqn)
    return b.custom_call("ProductOfElementaryHouseholderReflectors", [a, taus], in_avals(eqn),
                         [out], api_version=1)[0]


@rule("eigh", platform="tpu", within=of_some)
def _eigh(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    """By Jacobi's method, in at most 100 sweeps, to a tolerance of 1e-6."""
    avals = out_avals(eqn)
    check_choice(eqn, "algorithm", ("JACOBI",), "TPU")
    lower, sort = int(eqn.params["lower"]), int(eqn.params["sort_eigenvalues"])
    return b.custom_call("Eigh", [x], [avals[0]], avals, config=f"{lower},{sort},100,1e-6",
                         api_version=1)
