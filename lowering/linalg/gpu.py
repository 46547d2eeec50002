"""cuSOLVER and its like on NVIDIA's GPUs, hipSOLVER on AMD's: jaxlib's wrappers, which have the
same operands and attributes, map over the leading axes and overwrite their first operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals
from lowering.linalg.expanders import (
    batch_of,
    block,
    check_choice,
    complex_of,
    conjugated,
    nan_where_failed,
    of_nothing,
    out_avals,
    swapped,
)
from lowering.linalg.lapack import GPUS, codes_of
from lowering.rules import rule
from lowering.shapes import pad
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

# Up to this many rows and columns Jacobi's method is the fastest for singular values.
_JACOBI_ROWS = 1024


def _call(b: Block, function: str, operands: Sequence[str], takes: Sequence[ShapedArray],
          gives: Sequence[ShapedArray], aliases: Mapping[int, int] | None = None,
          batch_axes: int | None = None, **config: Any) -> list[str]:
    return b.custom_call(
        f"{GPUS[b.module.platform]}{function}", operands, takes, gives, family="linalg",
        config=config, aliases=aliases,
        batch_axes=takes[0].ndim - 2 if batch_axes is None else batch_axes)


@rule("lu_pivots_to_permutation", platform=tuple(GPUS))
def _permutation(b: Block, eqn: JaxprEqn, pivots: str) -> str:
    (given,), (out,) = in_avals(eqn), out_avals(eqn)
    if not given.size or not out.size:
        return b.iota(out, out.ndim - 1)
    return _call(b, "_lu_pivots_to_permutation", [pivots], [given], [out],
                 batch_axes=given.ndim - 1)[0]






@rule("cholesky_update", platform=tuple(GPUS))
def _cholesky_update(b: Block, eqn: JaxprEqn, r: str, w: str) -> str:
    takes = in_avals(eqn)
    if not takes[0].size:
        return r
    return b.custom_call(f"{GPUS[b.module.platform]}_cholesky_update_ffi", [r, w], takes, takes,
                         family="linalg", aliases={0: 0, 1: 1})[0]


_EIGH_ALGORITHMS = {None: 0, "QR": 1, "JACOBI": 2}


@rule("eigh", platform=tuple(GPUS))
def _eigh(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    vectors, values = out_avals(eqn)
    if not vectors.size:
        return of_nothing(b, eqn)
    check_choice(eqn, "algorithm", ("QR", "JACOBI"), "GPU")
    chosen = eqn.params["algorithm"]
    *found, info = _call(b, "solver_syevd_ffi", [x], [vectors],
                         [vectors, values, codes_of(vectors)], {0: 0},
                         algorithm=np.uint8(_EIGH_ALGORITHMS[chosen and chosen.name]),
                         lower=eqn.params["lower"])
    return nan_where_failed(b, found, [vectors, values], info, batch_of(vectors))



@rule("tridiagonal_solve", platform=tuple(GPUS))
def _tridiagonal_solve(b: Block, eqn: JaxprEqn, *operands: str) -> str:
    takes, (out,) = in_avals(eqn), out_avals(eqn)
    if not out.size:
        return operands[3]
    if eqn.params["perturb_singular"]:
        return _call(b, "_tridiagonal_solve_perturbed", operands, takes, [out],
                     batch_axes=out.ndim - 2)[0]
    *batch, n, _ = out.shape
    wide = out
    names: Sequence[str] = operands
    if n < _FEWEST_ROWS:
        grown = [a.update(shape=(*batch, _FEWEST_ROWS, *a.shape[len(batch) + 1:])) for a in takes]
        names = [_with_rows(b, x, a, g, i == 1)
                 for i, (x, a, g) in enumerate(zip(operands, takes, grown, strict=True))]
        takes, wide = grown, grown[3]
    x = _call(b, "sparse_gtsv2_ffi", names, takes, [wide], aliases={0: 3},
              batch_axes=out.ndim - 2)[0]
    return block(b, x, wide, out)


_FEWEST_ROWS = 3  # that cuSPARSE takes


def _with_rows(b: Block, x: str, aval: ShapedArray, out: ShapedArray, ones: bool) -> str:
    """The operand with more rows of zeros or ones behind its own."""
    config = [(0, n - m, 0) for m, n in zip(aval.shape, out.shape, strict=True)]
    return pad(b, x, aval, b.constant(int(ones), ShapedArray((), aval.dtype)), config)[0]


_MAGMA = {None: "auto", "MAGMA": "on", "LAPACK": "off"}


@rule("eig", platform=tuple(GPUS))
def _eig(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    """By MAGMA if it is there, else by LAPACK on the host."""
    aval = in_avals(eqn)[0]
    if not aval.size:
        return of_nothing(b, eqn)
    check_choice(eqn, "implementation", ("LAPACK", "MAGMA"), "GPU")
    avals, chosen = out_avals(eqn), eqn.params["implementation"]
    values, vectors = avals[0], aval.update(dtype=avals[0].dtype)
    left, right = (eqn.params[f"compute_{side}_eigenvectors"] for side in ("left", "right"))
    is_complex = aval.dtype.kind == "c"
    parts = [values] if is_complex else [values.update(dtype=aval.dtype)] * 2
    *w, vl, vr, info = _call(
        b, f"hybrid_eig_{'comp' if is_complex else 'real'}", [x], [aval],
        [*parts, vectors, vectors, codes_of(aval)],
        left=left, magma=_MAGMA[chosen and chosen.name], right=right)
    found = [w[0] if is_complex else complex_of(b, w[0], w[1], values)]
    found += [vl] * left + [vr] * right
    return nan_where_failed(b, found, avals, info, batch_of(aval))


# -- singular values -------------------------------------------------------------------------------


@rule("svd", platform=tuple(GPUS))
def _svd(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    aval = in_avals(eqn)[0]
    if not aval.size:
        return of_nothing(b, eqn)
    check_choice(eqn, "algorithm", ("DEFAULT", "QR", "JACOBI", "POLAR"), "GPU")
    chosen = eqn.params["algorithm"]
    name = "DEFAULT" if chosen is None else chosen.name
    if name == "DEFAULT":
        name = "JACOBI" if max(aval.shape[-2:]) <= _JACOBI_ROWS else "QR"
    emit = _svd_by_rotations if name == "QR" else _svd_with_v
    found, info = emit(b, eqn, x, name)
    avals = out_avals(eqn)
    return nan_where_failed(b, found[:len(avals)], avals, info, batch_of(aval))


def _svd_by_rotations(b: Block, eqn: JaxprEqn, x: str, name: str) -> tuple[list[str], str]:
    """`gesvd` takes matrices with as many rows as columns at least: others are read as their
    transposes, which is the other order of memory."""
    aval, values = in_avals(eqn)[0], eqn.outvars[0].aval
    uv, full = eqn.params["compute_uv"], eqn.params["full_matrices"]
    *batch, m, n = aval.shape
    wide = m < n
    if wide:
        x, aval = swapped(b, x, aval)
        m, n = n, m
    if uv:
        left = aval.update(shape=(*batch, m, m if full else n))
        right = aval.update(shape=(*batch, n, n))
    else:
        left = right = aval.update(shape=())
    _, s, u, vt, info = _call(
        b, "solver_gesvd_ffi", [x], [aval], [aval, values, left, right, codes_of(aval)],
        {0: 0}, compute_uv=uv, full_matrices=full, transposed=False)
    if wide and uv:  # A^T = U S V^T, so A = V S U^T
        u, vt = swapped(b, vt, right)[0], swapped(b, u, left)[0]
    return [s, u, vt], info


def _svd_with_v(b: Block, eqn: JaxprEqn, x: str, name: str) -> tuple[list[str], str]:
    """By Jacobi's method (`gesvdj`), whose factors are always the full ones, or by the polar
    decomposition (`gesvdp`). They return V, not its adjoint."""
    aval, avals = in_avals(eqn)[0], out_avals(eqn)
    *batch, m, n = aval.shape
    full = name == "JACOBI" or eqn.params["full_matrices"]
    k = min(m, n)
    left = aval.update(shape=(*batch, m, m if full else k))
    right = aval.update(shape=(*batch, n, n if full else k))
    _, s, u, v, info = _call(
        b, f"solver_gesvd{name[0].lower()}_ffi", [x], [aval],
        [aval, avals[0], left, right, codes_of(aval)],
        {0: 0}, compute_uv=eqn.params["compute_uv"], full_matrices=full)
    if not eqn.params["compute_uv"]:
        return [s], info
    vh, turned = swapped(b, v, right)
    if aval.dtype.kind == "c":
        vh = conjugated(b, vh, turned)
    return [s, block(b, u, left, avals[1]), block(b, vh, turned, avals[2])], info
