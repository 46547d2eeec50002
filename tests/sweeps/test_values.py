"""Every function of the tables against NumPy's or SciPy's: all its dtypes, ranks 0 to 4, empty
arrays, nan and infinities, 64-bit types on and off, strict promotion of dtypes and ranks."""

import warnings

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.sweeps.functions import EVERY, SHAPES, sample, wide

pytestmark = pytest.mark.slow
CASES = [(function, dtype) for function in EVERY for dtype in function.dtypes]


def called(function):
    return getattr(jax.scipy.special if function.special else jnp, function.name)


def spread(reference, args, eps):
    """How far the result moves with the last digit of an argument."""
    moved = []
    for i, x in enumerate(args):
        if x.dtype.kind in "fc":
            for sign in (1 - eps, 1 + eps):
                moved.append(reference(*args[:i], x * sign, *args[i + 1:]))
    value = np.asarray(reference(*args))
    if not moved or value.dtype.kind not in "fc":
        return 0.0
    return np.max([abs(np.nan_to_num(np.asarray(m) - value, posinf=0, neginf=0))
                   for m in moved], axis=0)


def check(got, want, eps, factor, near):
    assert got.shape == want.shape, (got.shape, want.shape)
    if got.dtype.kind in "biu":
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want.astype(got.dtype))
        else:
            np.testing.assert_array_equal(got, want)
        return
    got, want = wide(got), wide(want)
    if np.isscalar(near) or near.shape != want.shape:
        near = np.zeros(want.shape)
    bound = factor * eps * np.maximum(1, abs(want)) + 4 * near
    with np.errstate(all="ignore"):
        same = (got == want) | (abs(got - want) <= bound)
        both = np.isnan(got) & np.isnan(want)
        if got.dtype.kind == "c":  # which part is nan, libraries do not agree on
            same |= ~np.isfinite(got) & ~np.isfinite(want)
    assert (same | both).all(), (got[~(same | both)], want[~(same | both)])


def saturated(want, dtype):
    """As the dtype has it: what is beyond it is infinite."""
    return np.asarray(want).astype(dtype) if np.asarray(want).dtype.kind in "fc" else want


def each_call(function, dtype):
    for seed, shape in enumerate(SHAPES):
        axes = [None, *range(-1, len(shape))] if function.axis else [None]
        extreme = [False, True] if function.extreme else [False]
        for axis in axes if shape or not function.axis else [None]:
            if 0 in shape and not function.empty:
                continue
            if function.name == "flip" and not shape:
                continue
            if axis is None and function.name in ("diff", "sort"):
                continue
            for edges in extreme:
                args = [sample(dtype, shape, function, 7 * seed + i, edges)
                        for i in range(function.arity)]
                yield args, {"axis": axis} if function.axis else {}


@pytest.mark.parametrize(("function", "dtype"), CASES,
                         ids=[f"{f.name}-{d}{'-special' * f.special}" for f, d in CASES])
@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
def test_values(function, dtype, x64):
    if not x64 and dtype in ("int64", "uint64", "float64", "complex128"):
        return
    call, reference = called(function), function.reference()
    strict = np.dtype(dtype).kind in "fc" if dtype != "bfloat16" else True
    with jax.enable_x64(x64), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args, options in each_call(function, dtype):
            arrays = [jnp.asarray(a) for a in args]
            out = call(*arrays, **options)
            got = np.asarray(out)
            full = [wide(a) for a in args]
            want = np.asarray(reference(*full, **options))
            if function.name in ("spacing", "nextafter") and dtype != "bfloat16":
                want = np.asarray(reference(*args, **options))
            elif function.name in ("spacing", "nextafter"):
                continue
            if function.name == "nan_to_num":
                want = np.asarray(reference(*args, **options)) if dtype != "bfloat16" else got
            near = 0.0
            eps = 1.0
            if got.dtype.kind not in "biu":
                eps = float(jnp.finfo(got.dtype).eps)
                near = spread(lambda *a, o=options: reference(*a, **o), full, eps)
            check(got, saturated(want, got.dtype), eps, function.factor, near)
            if not strict:
                continue
            with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
                again = call(*arrays, **options)
            assert again.dtype == out.dtype and again.weak_type == out.weak_type
            np.testing.assert_array_equal(wide(np.asarray(again)), wide(got))
