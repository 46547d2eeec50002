"""Operations that XLA has itself, in StableHLO or as calls that its compiler expands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowering.builder import Block, in_avals
from lowering.linalg.pieces import check_choice, conjugated, of_nothing, out_avals, triangle
from lowering.rules import rule
from lowering.types import quoted, tensor_type, tensor_types
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn


def _call(b: Block, target: str, operands: Sequence[str], takes: Sequence[Any],
          gives: Sequence[ShapedArray], config: str = "") -> list[str]:
    results = tensor_type(gives[0]) if len(gives) == 1 else f"({tensor_types(gives)})"
    return b.multi(
        f"stablehlo.custom_call @{target}({', '.join(operands)}) {{backend_config = "
        f"{quoted(config)}}} : ({tensor_types(takes)}) -> {results}", len(gives))


@rule("cholesky")
def _cholesky(b: Block, eqn: JaxprEqn, x: str) -> str:
    (aval,) = out_avals(eqn)
    if not aval.size:
        return x
    return triangle(b, b.line(f"stablehlo.cholesky {x}, lower = true : {tensor_type(aval)}"),
                    aval, lower=True)


@rule("triangular_solve")
def triangular_solve(b: Block, eqn: JaxprEqn, a: str, x: str) -> str:
    (matrix, right), params = in_avals(eqn), eqn.params
    if not right.size:
        return x
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


@rule("lu", platform="tpu")
def _lu(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    avals = out_avals(eqn)
    if not avals[0].size:
        return [x, b.constant(0, avals[1]), _positions(b, avals[2])]
    return _call(b, "LuDecomposition", [x], [avals[0]], avals)


def _positions(b: Block, aval: ShapedArray) -> str:
    return b.line(f"stablehlo.iota dim = {aval.ndim - 1} : {tensor_type(aval)}")


@rule("geqrf", platform="tpu")
def _geqrf(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    packed, taus = out_avals(eqn)
    if not packed.size:
        return [x, b.constant(0, taus)]
    return _call(b, "Qr", [x], [packed], [packed, taus])


@rule("householder_product", platform="tpu")
def _householder_product(b: Block, eqn: JaxprEqn, a: str, taus: str) -> str:
    (out,) = out_avals(eqn)
    if not out.size:
        return a
    return _call(b, "ProductOfElementaryHouseholderReflectors", [a, taus], in_avals(eqn), [out])[0]


@rule("eigh", platform="tpu")
def _eigh(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    """By Jacobi's method, in at most 100 sweeps, to a tolerance of 1e-6."""
    avals = out_avals(eqn)
    if not avals[0].size:
        return of_nothing(b, eqn)
    check_choice(eqn, "algorithm", ("JACOBI",), "TPU")
    lower, sort = int(eqn.params["lower"]), int(eqn.params["sort_eigenvalues"])
    return _call(b, "Eigh", [x], [avals[0]], avals, f"{lower},{sort},100,1e-6")
