"""LAPACK on CPU, and what libraries for GPUs call by the same names: jaxlib's wrappers, which map
over the leading axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals
from lowering.linalg.expanders import (
    INT,
    batch_of,
    check_choice,
    complex_of,
    conjugated,
    nan_where_failed,
    of_nothing,
    out_avals,
    plus,
    triangle,
    triangular_solve,
)
from lowering.rules import rule
from pyjx.core.avals import ShapedArray
from pyjx.core.integers import min_dim
from pyjx.core.jaxpr import JaxprEqn

_PREFIX = {np.dtype(np.float32): "s", np.dtype(np.float64): "d", np.dtype(np.complex64): "c",
           np.dtype(np.complex128): "z"}
# Functions of real matrices that have another name for complex ones.
_COMPLEX_NAMES = {"syevd": "heevd", "sytrd": "hetrd", "orgqr": "ungqr", "ormqr": "unmqr"}


# What functions of GPUs begin with: NVIDIA's and AMD's.
GPUS = {"cuda": "cu", "rocm": "hip"}
_EVERYWHERE = ("cpu", *GPUS)


def _is_complex(aval: ShapedArray) -> bool:
    return bool(aval.dtype.kind == "c")


def _real(aval: ShapedArray) -> Any:
    return np.finfo(aval.dtype).dtype


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
    if not aval.size:
        return x
    factor, info = _call(b, "potrf", [x], [aval], [aval, codes_of(aval)], {0: 0}, lower=True)
    (factor,) = nan_where_failed(b, [factor], [aval], info, batch_of(aval))
    return triangle(b, factor, aval, lower=True)


@rule("triangular_solve", platform="cpu")
def _triangular_solve(b: Block, eqn: JaxprEqn, a: str, x: str) -> str:
    takes, params = in_avals(eqn), eqn.params
    if not takes[1].size:
        return x
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
    if not factors.size:
        return [x, b.constant(0, pivots)]
    packed, rows, info = _call(b, "getrf", [x], [factors], [factors, pivots, codes_of(factors)],
                               aliases={0: 0})
    # A positive code says that a pivot is zero: the factors are right.
    (packed,) = nan_where_failed(b, [packed], [factors], info, batch_of(factors), "GE")
    return [packed, plus(b, rows, -1, pivots)]


@rule("geqrf", platform=_EVERYWHERE)
def _geqrf(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    packed, taus = out_avals(eqn)
    if not packed.size:
        return [x, b.constant(0, taus)]
    return _call(b, "geqrf", [x], [packed], [packed, taus], aliases={0: 0})


@rule("geqp3", platform=_EVERYWHERE)
def _geqp3(b: Block, eqn: JaxprEqn, x: str, free: str) -> list[str]:
    packed, order, taus = out_avals(eqn)
    if not packed.size:
        return [x, b.iota(order, order.ndim - 1),
                b.constant(0, taus)]
    config, wanted = {}, eqn.params["use_magma"]
    if b.module.platform in GPUS:
        config["magma"] = "auto" if wanted is None else "on" if wanted else "off"
    found, places, scales = _call(
        b, "geqp3", [x, free], in_avals(eqn), [packed, order, taus], {0: 0, 1: 1}, **config)
    return [found, plus(b, places, -1, order), scales]


@rule("householder_product", platform=_EVERYWHERE)
def _householder_product(b: Block, eqn: JaxprEqn, a: str, taus: str) -> str:
    (out,) = out_avals(eqn)
    if not out.size:
        return a
    return _call(b, "orgqr", [a, taus], in_avals(eqn), [out], aliases={0: 0})[0]


@rule("ormqr", platform=_EVERYWHERE)
def _ormqr(b: Block, eqn: JaxprEqn, a: str, taus: str, c: str) -> str:
    (out,) = out_avals(eqn)
    if not out.size or not in_avals(eqn)[0].size:
        return c
    return _call(b, "ormqr", [a, taus, c], in_avals(eqn), [out], {0: 2}, left=eqn.params["left"],
                 transpose=eqn.params["transpose"])[0]


@rule("eigh", platform="cpu")
def _eigh(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    vectors, values = out_avals(eqn)
    if not vectors.size:
        return of_nothing(b, eqn)
    check_choice(eqn, "algorithm", ("QR",), "CPU")
    *found, info = _call(b, "syevd", [x], [vectors], [vectors, values, codes_of(vectors)], {0: 0},
                         mode="V", lower=eqn.params["lower"])
    return nan_where_failed(b, found, [vectors, values], info, batch_of(vectors))


@rule("svd", platform="cpu")
def _svd(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    aval = in_avals(eqn)[0]
    if not aval.size:
        return of_nothing(b, eqn)
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


@rule("eig", platform="cpu")
def _eig(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    aval = in_avals(eqn)[0]
    if not aval.size:
        return of_nothing(b, eqn)
    check_choice(eqn, "implementation", ("LAPACK",), "CPU", ValueError)
    avals = out_avals(eqn)
    values, vectors = avals[0], aval.update(dtype=avals[0].dtype)
    parts = [values] if _is_complex(aval) else [values.update(dtype=_real(aval))] * 2
    left, right = (eqn.params[f"compute_{side}_eigenvectors"] for side in ("left", "right"))
    *w, vl, vr, info = _call(b, "geev", [x], [aval], [*parts, vectors, vectors, codes_of(aval)],
                             compute_left="V" if left else "N", compute_right="V" if right else "N")
    found = [w[0] if len(w) == 1 else complex_of(b, w[0], w[1], values)]
    found += [vl] * left + [vr] * right
    return nan_where_failed(b, found, avals, info, batch_of(aval))


@rule("schur", platform="cpu")
def _schur(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    aval = in_avals(eqn)[0]
    if not aval.size:
        return of_nothing(b, eqn)
    avals, codes = out_avals(eqn), codes_of(aval)
    vectors = eqn.params["compute_schur_vectors"]
    values = aval.update(shape=aval.shape[:-1])
    parts = [values] if _is_complex(aval) else [values, values]
    form, z, *_, info = _call(
        b, "gees", [x], [aval], [aval, aval, *parts, codes, codes],
        {0: 0}, mode="V" if vectors else "N", sort="N")
    return nan_where_failed(b, [form, z][:len(avals)], avals, info, batch_of(aval))


@rule("hessenberg", platform="cpu")
def _hessenberg(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    packed, taus = out_avals(eqn)
    if not packed.size or packed.shape[-1] == 1:
        return [x, b.constant(0, taus)]
    *found, info = _call(b, "gehrd", [x], [packed], [packed, taus, codes_of(packed)], {0: 0},
                         low=np.int32(1), high=np.int32(packed.shape[-1]))
    return nan_where_failed(b, found, [packed, taus], info, batch_of(packed))


@rule("tridiagonal", platform=_EVERYWHERE)
def _tridiagonal(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    avals = out_avals(eqn)
    if not avals[0].size:
        return of_nothing(b, eqn)
    *found, info = _call(b, "sytrd", [x], [avals[0]], [*avals, codes_of(avals[0])],
                         {0: 0}, lower=eqn.params["lower"])
    return nan_where_failed(b, found, avals, info, batch_of(avals[0]))


@rule("tridiagonal_solve", platform="cpu")
def _tridiagonal_solve(b: Block, eqn: JaxprEqn, *operands: str) -> str:
    takes, (out,) = in_avals(eqn), out_avals(eqn)
    if not out.size:
        return operands[3]
    if eqn.params["perturb_singular"]:
        return b.custom_call("tridiagonal_solve_perturbed_ffi", operands, takes, [out],
                             family="lapack", batch_axes=out.ndim - 2)[0]
    *_, x, info = b.custom_call(
        f"lapack_{_PREFIX[out.dtype]}gtsv_ffi", operands, takes, [*takes, codes_of(out)],
        family="lapack", batch_axes=out.ndim - 2, aliases={i: i for i in range(4)})
    return nan_where_failed(b, [x], [out], info, batch_of(out))[0]
