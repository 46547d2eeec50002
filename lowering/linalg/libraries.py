"""LAPACK on CPU, cuSOLVER and its like on NVIDIA's GPUs, hipSOLVER on AMD's: jaxlib's wrappers,
which map over the leading axes. Those of GPUs overwrite their first operand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from lowering import rules
from lowering.builder import Block, in_avals
from lowering.linalg.expanders import (
    INT,
    batch_of,
    block,
    check_choice,
    complex_of,
    conjugated,
    nan_where_failed,
    of_some,
    out_avals,
    swapped,
    triangle,
    triangular_solve,
)
from lowering.shapes import pad
from pyjx.core.avals import ShapedArray
from pyjx.core.integers import min_dim
from pyjx.core.jaxpr import JaxprEqn

rule = partial(rules.rule, foreign=True, within=of_some)

_PREFIX = {np.dtype(np.float32): "s", np.dtype(np.float64): "d", np.dtype(np.complex64): "c",
           np.dtype(np.complex128): "z"}
# Functions of real matrices that have another name for complex ones.
_COMPLEX_NAMES = {"syevd": "heevd", "sytrd": "hetrd", "orgqr": "ungqr", "ormqr": "unmqr"}


# What functions of GPUs begin with: NVIDIA's and AMD's.
GPUS = {"cuda": "cu", "rocm": "hip"}
_EVERYWHERE = ("cpu", *GPUS)


def _is_complex(aval: ShapedArray) -> bool:
    return bool(aval.dtype.kind == "c")


def _call(b: Block, function: str, operands: Sequence[str], takes: Sequence[ShapedArray],
          gives: Sequence[ShapedArray], aliases: Mapping[int, int] | None = None, **config: Any
          ) -> list[str]:
    """Call a routine for matrices of the type of the first operand's: LAPACK's, or that of the
    same name for GPUs. Letters in its configuration are numbers; `lower` is one for LAPACK."""
    first, family = takes[0], "lapack"
    if b.module.platform in GPUS:
        kind = "hybrid_geqp3" if function == "geqp3" else f"solver_{function}_ffi"
        target, family = f"{GPUS[b.module.platform]}{kind}", "linalg"
    else:
        if _is_complex(first):
            function = _COMPLEX_NAMES.get(function, function)
        target = f"lapack_{_PREFIX[first.dtype]}{function}_ffi"
        config = dict([_of_lapack(*item) for item in config.items()])
    return b.custom_call(target, operands, takes, gives, family=family, config=config,
                         aliases=aliases, batch_axes=first.ndim - 2)


def _call_gpu(b: Block, function: str, operands: Sequence[str], takes: Sequence[ShapedArray],
              gives: Sequence[ShapedArray], aliases: Mapping[int, int] | None = None,
              batch_axes: int | None = None, **config: Any) -> list[str]:
    """Call what libraries of GPUs have by a name of their own."""
    return b.custom_call(f"{GPUS[b.module.platform]}{function}", operands, takes, gives,
                         family="linalg", config=config, aliases=aliases,
                         batch_axes=takes[0].ndim - 2 if batch_axes is None else batch_axes)


def _of_lapack(key: str, value: Any) -> tuple[str, Any]:
    if key == "lower":
        key, value = "uplo", "L" if value else "U"
    return key, np.uint8(ord(value)) if type(value) is str else value


def codes_of(aval: ShapedArray) -> ShapedArray:
    """The type of the code `info` that a function returns for each matrix."""
    return ShapedArray(batch_of(aval), INT)


@rule("cholesky", platform=_EVERYWHERE)
def _cholesky(b: Block, eqn: JaxprEqn, x: str) -> str:
    (aval,) = out_avals(eqn)
    factor, info = _call(b, "potrf", [x], [aval], [aval, codes_of(aval)], {0: 0}, lower=True)
    (factor,) = nan_where_failed(b, [factor], [aval], info, batch_of(aval))
    return triangle(b, factor, aval, lower=True)


@rule("triangular_solve", platform="cpu")
def _triangular_solve(b: Block, eqn: JaxprEqn, a: str, x: str) -> str:
    takes, params = in_avals(eqn), eqn.params
    if takes[0].dtype not in _PREFIX:
        return triangular_solve(b, eqn, a, x)
    if params["conjugate_a"] and not params["transpose_a"]:
        a = conjugated(b, a, takes[0])
    turned = "N" if not params["transpose_a"] else "C" if params["conjugate_a"] else "T"
    return _call(b, "trsm", [a, x], takes, [takes[1]], {0: 1},
                 side="L" if params["left_side"] else "R", lower=params["lower"],
                 trans_x=turned, diag="U" if params["unit_diagonal"] else "N")[0]


@rule("getrf", platform=_EVERYWHERE)
def _getrf(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    factors, pivots = out_avals(eqn)
    packed, rows, info = _call(b, "getrf", [x], [factors], [factors, pivots, codes_of(factors)],
                               aliases={0: 0})
    # A positive code says that a pivot is zero: the factors are right.
    (packed,) = nan_where_failed(b, [packed], [factors], info, batch_of(factors), "GE")
    return [packed, b.plus(rows, -1, pivots)]


@rule("geqrf", platform=_EVERYWHERE)
def _geqrf(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    packed, taus = out_avals(eqn)
    return _call(b, "geqrf", [x], [packed], [packed, taus], aliases={0: 0})


@rule("geqp3", platform=_EVERYWHERE)
def _geqp3(b: Block, eqn: JaxprEqn, x: str, free: str) -> list[str]:
    packed, order, taus = out_avals(eqn)
    config, wanted = {}, eqn.params["use_magma"]
    if b.module.platform in GPUS:
        config["magma"] = "auto" if wanted is None else "on" if wanted else "off"
    found, places, scales = _call(
        b, "geqp3", [x, free], in_avals(eqn), [packed, order, taus], {0: 0, 1: 1}, **config)
    return [found, b.plus(places, -1, order), scales]


@rule("householder_product", platform=_EVERYWHERE)
def _householder_product(b: Block, eqn: JaxprEqn, a: str, taus: str) -> str:
    (out,) = out_avals(eqn)
    return _call(b, "orgqr", [a, taus], in_avals(eqn), [out], aliases={0: 0})[0]


@rules.rule("ormqr", platform=_EVERYWHERE, foreign=True)
def _ormqr(b: Block, eqn: JaxprEqn, a: str, taus: str, c: str) -> str:
    (out,) = out_avals(eqn)
    if not out.size or not in_avals(eqn)[0].size:
        return c
    return _call(b, "ormqr", [a, taus, c], in_avals(eqn), [out], {0: 2}, left=eqn.params["left"],
                 transpose=eqn.params["transpose"])[0]


_EIGH_ALGORITHMS = {None: 0, "QR": 1, "JACOBI": 2}  # of GPUs


@rule("eigh", platform=_EVERYWHERE)
def _eigh(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    vectors, values = out_avals(eqn)
    config: dict[str, Any] = {"mode": "V"}
    if b.module.platform in GPUS:
        check_choice(eqn, "algorithm", ("QR", "JACOBI"), "GPU")
        chosen = eqn.params["algorithm"]
        config = {"algorithm": np.uint8(_EIGH_ALGORITHMS[chosen and chosen.name])}
    else:
        check_choice(eqn, "algorithm", ("QR",), "CPU")
    *found, info = _call(b, "syevd", [x], [vectors], [vectors, values, codes_of(vectors)], {0: 0},
                         **config, lower=eqn.params["lower"])
    return nan_where_failed(b, found, [vectors, values], info, batch_of(vectors))


@rule("svd", platform="cpu")
def _svd(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    aval = in_avals(eqn)[0]
    check_choice(eqn, "algorithm", ("DEFAULT", "DIVIDE_AND_CONQUER", "QR"), "CPU")
    algorithm = eqn.params["algorithm"]
    function = "gesvd" if algorithm is not None and algorithm.name == "QR" else "gesdd"
    *batch, m, n = aval.shape
    k, avals = min_dim(m, n), out_avals(eqn)
    if eqn.params["compute_uv"]:
        mode = "A" if eqn.params["full_matrices"] else "S"
        factors = avals[1:]
    else:
        mode = "N"
        factors = [aval.update(shape=(*batch, m, k)), aval.update(shape=(*batch, k, n))]
    _, values, left, right, info = _call(
        b, function, [x], [aval], [aval, avals[0], *factors, codes_of(aval)],
        {0: 0}, mode=mode)
    return nan_where_failed(b, [values, left, right][:len(avals)], avals, info, batch)


_MAGMA = {None: "auto", "MAGMA": "on", "LAPACK": "off"}


@rule("eig", platform=_EVERYWHERE)
def _eig(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    """By LAPACK; for GPUs by MAGMA if it is there, else by LAPACK on the host."""
    aval = in_avals(eqn)[0]
    avals, chosen = out_avals(eqn), eqn.params["implementation"]
    values, vectors = avals[0], aval.update(dtype=avals[0].dtype)
    parts = [values] if _is_complex(aval) else [values.update(dtype=np.finfo(aval.dtype).dtype)] * 2
    gives = [*parts, vectors, vectors, codes_of(aval)]
    left, right = (eqn.params[f"compute_{side}_eigenvectors"] for side in ("left", "right"))
    if b.module.platform in GPUS:
        check_choice(eqn, "implementation", ("LAPACK", "MAGMA"), "GPU")
        *w, vl, vr, info = _call_gpu(
            b, f"hybrid_eig_{'comp' if _is_complex(aval) else 'real'}", [x], [aval], gives,
            left=left, magma=_MAGMA[chosen and chosen.name], right=right)
    else:
        check_choice(eqn, "implementation", ("LAPACK",), "CPU", ValueError)
        *w, vl, vr, info = _call(b, "geev", [x], [aval], gives, compute_left="V" if left else "N",
                                 compute_right="V" if right else "N")
    found = [w[0] if len(w) == 1 else complex_of(b, w[0], w[1], values)]
    found += [vl] * left + [vr] * right
    return nan_where_failed(b, found, avals, info, batch_of(aval))


@rule("schur", platform="cpu")
def _schur(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    aval = in_avals(eqn)[0]
    avals, codes = out_avals(eqn), codes_of(aval)
    vectors = eqn.params["compute_schur_vectors"]
    values = aval.update(shape=aval.shape[:-1])
    parts = [values] if _is_complex(aval) else [values, values]
    form, z, *_, info = _call(b, "gees", [x], [aval], [aval, aval, *parts, codes, codes], {0: 0},
                              mode="V" if vectors else "N", sort="N")
    return nan_where_failed(b, [form, z][:len(avals)], avals, info, batch_of(aval))


@rule("hessenberg", platform="cpu")
def _hessenberg(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    packed, taus = out_avals(eqn)
    if packed.shape[-1] == 1:
        return [x, b.constant(0, taus)]
    *found, info = _call(b, "gehrd", [x], [packed], [packed, taus, codes_of(packed)], {0: 0},
                         low=np.int32(1), high=np.int32(packed.shape[-1]))
    return nan_where_failed(b, found, [packed, taus], info, batch_of(packed))


@rule("tridiagonal", platform=_EVERYWHERE)
def _tridiagonal(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    avals = out_avals(eqn)
    *found, info = _call(b, "sytrd", [x], [avals[0]], [*avals, codes_of(avals[0])],
                         {0: 0}, lower=eqn.params["lower"])
    return nan_where_failed(b, found, avals, info, batch_of(avals[0]))


@rule("tridiagonal_solve", platform="cpu")
def _tridiagonal_solve(b: Block, eqn: JaxprEqn, *operands: str) -> str:
    takes, (out,) = in_avals(eqn), out_avals(eqn)
    if eqn.params["perturb_singular"]:
        return b.custom_call("tridiagonal_solve_perturbed_ffi", operands, takes, [out],
                             family="lapack", batch_axes=out.ndim - 2)[0]
    *_, x, info = b.custom_call(
        f"lapack_{_PREFIX[out.dtype]}gtsv_ffi", operands, takes, [*takes, codes_of(out)],
        family="lapack", batch_axes=out.ndim - 2, aliases={i: i for i in range(4)})
    return nan_where_failed(b, [x], [out], info, batch_of(out))[0]


# -- on GPUs alone ---------------------------------------------------------------------------------


@rule("lu_pivots_to_permutation", platform=tuple(GPUS))
def _permutation(b: Block, eqn: JaxprEqn, pivots: str) -> str:
    (given,), (out,) = in_avals(eqn), out_avals(eqn)
    return _call_gpu(b, "_lu_pivots_to_permutation", [pivots], [given], [out],
                     batch_axes=given.ndim - 1)[0]


@rule("cholesky_update", platform=tuple(GPUS))
def _cholesky_update(b: Block, eqn: JaxprEqn, r: str, w: str) -> str:
    takes = in_avals(eqn)
    return b.custom_call(f"{GPUS[b.module.platform]}_cholesky_update_ffi", [r, w], takes, takes,
                         family="linalg", aliases={0: 0, 1: 1})[0]


@rule("tridiagonal_solve", platform=tuple(GPUS))
def _tridiagonal_solve_on_gpu(b: Block, eqn: JaxprEqn, *operands: str) -> str:
    takes, (out,) = in_avals(eqn), out_avals(eqn)
    if eqn.params["perturb_singular"]:
        return _call_gpu(b, "_tridiagonal_solve_perturbed", operands, takes, [out],
                         batch_axes=out.ndim - 2)[0]
    *batch, n, _ = out.shape
    wide = out
    names: Sequence[str] = operands
    if n < _FEWEST_ROWS:
        grown = [a.update(shape=(*batch, _FEWEST_ROWS, *a.shape[len(batch) + 1:])) for a in takes]
        names = [_with_rows(b, x, a, g, i == 1)
                 for i, (x, a, g) in enumerate(zip(operands, takes, grown, strict=True))]
        takes, wide = grown, grown[3]
    x = _call_gpu(b, "sparse_gtsv2_ffi", names, takes, [wide], aliases={0: 3},
                  batch_axes=out.ndim - 2)[0]
    return block(b, x, wide, out)


_FEWEST_ROWS = 3  # that cuSPARSE takes


def _with_rows(b: Block, x: str, aval: ShapedArray, out: ShapedArray, ones: bool) -> str:
    """The operand with more rows of zeros or ones behind its own."""
    config = [(0, n - m, 0) for m, n in zip(aval.shape, out.shape, strict=True)]
    return pad(b, x, aval, b.constant(int(ones), ShapedArray((), aval.dtype)), config)[0]


# -- singular values on GPUs -----------------------------------------------------------------------

# Up to this many rows and columns Jacobi's method is the fastest for singular values.
_JACOBI_ROWS = 1024


@rule("svd", platform=tuple(GPUS))
def _svd_on_gpu(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    aval = in_avals(eqn)[0]
    check_choice(eqn, "algorithm", ("DEFAULT", "QR", "JACOBI", "POLAR"), "GPU")
    chosen = eqn.params["algorithm"]
    name = "DEFAULT" if chosen is None else chosen.name
    if name == "DEFAULT":
        few = all([type(n) is int and n <= _JACOBI_ROWS for n in aval.shape[-2:]])
        name = "JACOBI" if few else "QR"
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
    _, s, u, vt, info = _call(b, "gesvd", [x], [aval], [aval, values, left, right, codes_of(aval)],
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
    _, s, u, v, info = _call(b, f"gesvd{name[0].lower()}", [x], [aval],
                             [aval, avals[0], left, right, codes_of(aval)], {0: 0},
                             compute_uv=eqn.params["compute_uv"], full_matrices=full)
    if not eqn.params["compute_uv"]:
        return [s], info
    vh, turned = swapped(b, v, right)
    if aval.dtype.kind == "c":
        vh = conjugated(b, vh, turned)
    return [s, block(b, u, left, avals[1]), block(b, vh, turned, avals[2])], info
