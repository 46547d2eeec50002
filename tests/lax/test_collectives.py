"""Collectives over the named axes of vmap, against NumPy on the whole batch."""

import itertools
import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr

N = 4  # the size of the axis
RNG = np.random.default_rng(0)
PERM = [(0, 2), (1, 0), (3, 1)]
TURN = [(1, 0), (2, 1), (3, 2), (0, 3)]

# What an operation over "i" of each x[i] of shape (N, 2 N) gives, for x of shape (N, N, 2 N).
OPS = {
    "psum": (lambda x: lax.psum(x, "i"), lambda x: np.broadcast_to(x.sum(0), x.shape)),
    "psum-axes": (lambda x: lax.psum(x, ("i", 1)),
                  lambda x: np.broadcast_to(x.sum((0, 2)), x.shape[:2])),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda x: np.broadcast_to(x.mean(0), x.shape)),
    "pmean-axes": (lambda x: lax.pmean(x, (0, "i")),
                   lambda x: np.broadcast_to(x.mean((0, 1)), (N, 2 * N))),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda x: np.broadcast_to(x.max(0), x.shape)),
    "pmin": (lambda x: lax.pmin(x, ("i",)), lambda x: np.broadcast_to(x.min(0), x.shape)),
    "pmin-axes": (lambda x: lax.pmin(x, (1, "i", 0)),
                  lambda x: np.broadcast_to(x.min(), x.shape[:1])),
    "ppermute": (lambda x: lax.ppermute(x, "i", PERM),
                 lambda x: np.stack([x[1], x[3], x[0], 0 * x[0]])),
    "ppermute-all": (lambda x: lax.ppermute(x, "i", TURN), lambda x: np.roll(x, -1, 0)),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1]), lambda x: x[[2, 0, 3, 1]]),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 2),
                   lambda x: np.broadcast_to(x[2], x.shape)),
    "pbroadcast-traced": (lambda x: lax.pbroadcast(x, "i", lax.psum(jnp.int32(1), "i") - 2),
                          lambda x: np.broadcast_to(x[2], x.shape)),
    "all_gather": (lambda x: lax.all_gather(x, "i"), lambda x: np.stack([x] * N)),
    "all_gather-1": (lambda x: lax.all_gather(x, "i", axis=-1),
                     lambda x: np.stack([np.moveaxis(x, 0, -1)] * N)),
    "all_gather-tiled": (lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
                         lambda x: np.stack([np.concatenate(list(x), 1)] * N)),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), lambda x: x.sum(0)),
    "psum_scatter-tiled": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=-1, tiled=True),
        lambda x: np.moveaxis(x.sum(0).reshape(N, N, 2), 1, 0)),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: np.swapaxes(x, 0, 1)),
    "all_to_all-01": (lambda x: lax.all_to_all(x, "i", 0, 1),
                      lambda x: np.moveaxis(np.moveaxis(x, 1, 0), 1, 2)),
    "all_to_all-tiled": (
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        lambda x: np.stack([np.concatenate([x[s, :, 2 * t:2 * t + 2] for s in range(N)], 0)
                            for t in range(N)])),
    "all_to_all-tiled-same": (
        lambda x: lax.all_to_all(x, "i", -1, -1, tiled=True),
        lambda x: np.stack([np.concatenate([x[s, :, 2 * t:2 * t + 2] for s in range(N)], 1)
                            for t in range(N)])),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), lambda x: np.swapaxes(x, 0, 1)),
    "axis_index": (lambda x: x * lax.axis_index("i"),
                   lambda x: x * np.arange(N, dtype=x.dtype)[:, None, None]),
    "axis_size": (lambda x: x * lax.axis_size("i"), lambda x: x * np.array(N, x.dtype)),
}
LINEAR = [name for name in OPS if name not in ("pmax", "pmin", "pmin-axes")]
X = RNG.normal(size=(N, N, 2 * N)).astype(np.float32)
WRAPS = {
    "plain": lambda f: jax.vmap(f, axis_name="i"),
    "inside": lambda f: jax.vmap(jax.jit(f), axis_name="i"),
    "outside": lambda f: jax.jit(jax.vmap(f, axis_name="i")),
    "both": lambda f: jax.jit(jax.vmap(lambda x: jax.jit(jax.jit(f))(x), axis_name="i")),
}

ops = pytest.mark.parametrize("name", OPS)
wraps = pytest.mark.parametrize("wrap", WRAPS)


@pytest.mark.gpu
@ops
@wraps
def test_values(name, wrap):
    fun, reference = OPS[name]
    got = WRAPS[wrap](fun)(X)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, reference(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "dtype"), [
    (name, dtype) for name in OPS for dtype in ("bfloat16", "int8", "uint32", "complex64", "bool")
    if dtype != "bool" or not name.startswith(("psum_scatter", "axis"))])
def test_dtypes(name, dtype):
    x = jnp.asarray(RNG.integers(0, 3, X.shape)).astype(dtype)
    fun, reference = OPS[name]
    got = WRAPS["plain"](fun)(x)
    summed = np.int32 if dtype == "bool" and name.startswith("psum") else x.dtype
    if name.startswith("pmean") and dtype in ("int8", "uint32", "bool"):
        summed = np.float32
    if not name.startswith("axis"):
        assert got.dtype == summed
    wide = np.asarray(x).astype({"complex64": np.complex64, "bool": np.int32}.get(dtype, float))
    np.testing.assert_allclose(np.asarray(got).astype(wide.dtype if wide.dtype.kind == "c" else
                                                      float), reference(wide), rtol=1e-2)


@ops
@pytest.mark.parametrize("dim", [1, -1])
def test_mapped_axes_anywhere(name, dim):
    fun, reference = OPS[name]
    f = jax.vmap(fun, axis_name="i", in_axes=dim, out_axes=-1)
    np.testing.assert_allclose(f(np.moveaxis(X, 0, dim)), np.moveaxis(reference(X), 0, -1),
                               rtol=1e-5, atol=1e-6)


@ops
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_operands_that_are_not_mapped(name, wrap):
    fun, reference = OPS[name]
    row = jnp.asarray(X[0])
    got = jax.vmap(wrap(lambda: fun(row)), axis_name="i", axis_size=N)()
    np.testing.assert_allclose(got, reference(np.stack([X[0]] * N)), rtol=1e-5, atol=1e-6)


@ops
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_other_axes(name, wrap):
    """Axes without a name, or of another, around and inside the named one."""
    fun, reference = OPS[name]
    x = RNG.normal(size=(2, N, 3, N, 2 * N)).astype(np.float32)
    f = jax.vmap(jax.vmap(jax.vmap(wrap(fun), axis_name="j"), axis_name="i", in_axes=0,
                          out_axes=1), axis_name="k")
    want = np.stack([[reference(x[a, :, b]) for b in range(3)] for a in range(2)])
    np.testing.assert_allclose(f(x), want, rtol=1e-5, atol=1e-6)
    if name.startswith("pbroadcast"):
        sources = np.array([2, 0, 3])
        g = jax.vmap(jax.vmap(wrap(lambda x, s: lax.pbroadcast(x, "i", s)), in_axes=(0, 0)),
                     axis_name="i", in_axes=(0, None))
        np.testing.assert_array_equal(
            g(x[0], sources), np.broadcast_to(x[0][sources, np.arange(3)], x[0].shape))


# What operations over two names give is what they give over one axis of their sizes' product.
OVER_TWO = {
    "psum": lambda x, name: lax.psum(x, name),
    "psum-axes": lambda x, name: lax.psum(x, (0, *name) if isinstance(name, tuple) else (0, name)),
    "pmean": lambda x, name: lax.pmean(x, name),
    "pmax": lambda x, name: lax.pmax(x, name),
    "ppermute": lambda x, name: lax.ppermute(x, name, [(0, 5), (5, 3), (2, 2)]),
    "pshuffle": lambda x, name: lax.pshuffle(x, name, [5, 2, 0, 1, 3, 4]),
    "pbroadcast": lambda x, name: lax.pbroadcast(x, name, 4),
    "all_gather": lambda x, name: lax.all_gather(x, name, axis=1),
    "all_gather-tiled": lambda x, name: lax.all_gather(x, name, tiled=True),
    "psum_scatter": lambda x, name: lax.psum_scatter(x, name),
    "psum_scatter-tiled": lambda x, name: lax.psum_scatter(
        x, name, scatter_dimension=1, tiled=True),
    "all_to_all": lambda x, name: lax.all_to_all(x, name, 0, 1),
    "all_to_all-tiled": lambda x, name: lax.all_to_all(x, name, 1, 0, tiled=True),
    "axis_index": lambda x, name: x + lax.axis_index(name),
    "axis_size": lambda x, name: x + lax.axis_size(name),
}


@pytest.mark.parametrize("name", OVER_TWO)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_two_names(name, wrap):
    x = RNG.normal(size=(6, 6, 12)).astype(np.float32)
    fun = OVER_TWO[name]
    want = jax.vmap(lambda x: fun(x, "k"), axis_name="k")(x)
    # The first name varies slowest, whichever axis is the inner one.
    f = wrap(lambda x: fun(x, ("i", "j")))
    inner_j = jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(x.reshape(2, 3, 6, 12))
    np.testing.assert_allclose(inner_j.reshape(want.shape), want, rtol=1e-5, atol=1e-6)
    inner_i = jax.vmap(jax.vmap(f, axis_name="i"), axis_name="j", in_axes=1, out_axes=1)(
        x.reshape(2, 3, 6, 12))
    np.testing.assert_allclose(inner_i.reshape(want.shape), want, rtol=1e-5, atol=1e-6)


def test_names_shadow_each_other():
    f = jax.vmap(jax.vmap(jax.jit(lambda x: lax.psum(x, "i")), axis_name="i"), axis_name="i")
    np.testing.assert_allclose(f(X), np.broadcast_to(X.sum(1)[:, None], X.shape), rtol=1e-5,
                               atol=1e-6)


# -- ragged exchanges ------------------------------------------------------------------------------

# What each position sends to each: disjoint places in the targets' outputs of 7 rows.
FIRSTS = np.array([[0, 1, 3], [2, 2, 0], [4, 0, 1]], np.int32)
SIZES = np.array([[1, 2, 0], [2, 1, 3], [1, 0, 2]], np.int32)
PLACES = np.array([[5, 0, 0], [1, 4, 0], [3, 0, 5]], np.int32)


def ragged_reference(x, out, firsts, sizes, places):
    out = out.copy()
    n, parts = firsts.shape
    for s in range(n):
        for p in range(parts):
            f, k, to = firsts[s, p], sizes[s, p], places[s, p]
            out[p * n // parts, to:to + k] = x[s, f:f + k]
    return out


def ragged(x, out, firsts, sizes, places, axis_name="i"):
    received = lax.all_to_all(sizes, axis_name, 0, 0, tiled=True)
    return lax.ragged_all_to_all(x, out, firsts, sizes, places, received, axis_name=axis_name)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_ragged_exchange(wrap, dtype):
    x = RNG.normal(size=(3, 5, 2)).astype(dtype)
    out = RNG.normal(size=(3, 7, 2)).astype(dtype)
    f = WRAPS[wrap](lambda args: ragged(*args))
    got = f((x, out, FIRSTS, SIZES, PLACES))
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, ragged_reference(x, out, FIRSTS, SIZES, PLACES))


def test_ragged_exchange_of_several_parts():
    """Two slices for each target, or two names of axes for one."""
    x, out = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 9))
    tables = [np.stack([v, w], 2).reshape(3, 6) for v, w in (
        (FIRSTS, FIRSTS), (SIZES, SIZES.T * 0 + 1), (PLACES, 7 + 0 * PLACES))]
    tables[1][:, 1::2] = np.eye(3, k=1)
    args = [v.astype(np.int32) for v in tables]
    with jax.enable_x64(True):
        got = jax.vmap(ragged, axis_name="i")(x, out, *args)
    np.testing.assert_array_equal(got, ragged_reference(x, out, *args))
    both = [np.stack([v, v[::-1]]).reshape(2, 3, *v.shape[1:]) for v in (x, out)]
    wide = [np.concatenate([v, 0 * v], 1).astype(np.int32) for v in (FIRSTS, SIZES, PLACES)]
    split = [np.stack([v, 0 * v]) for v in wide]
    got = jax.vmap(jax.vmap(lambda *a: ragged(*a, axis_name=("k", "i")), axis_name="i"),
                   axis_name="k")(*both, *split)
    want = ragged_reference(x, out, FIRSTS, SIZES, PLACES)
    np.testing.assert_allclose(got[0], want, rtol=1e-6)
    np.testing.assert_allclose(got[1], both[1][1], rtol=1e-6)


def test_ragged_exchange_along_other_axes():
    x, out = RNG.normal(size=(2, 3, 5)), RNG.normal(size=(2, 3, 7))
    with jax.enable_x64(True):
        got = jax.vmap(jax.vmap(ragged, axis_name="i"), in_axes=(0, 0, None, None, None))(
            x, out, FIRSTS, SIZES, PLACES)
        inner = jax.vmap(jax.vmap(ragged, in_axes=(0, 0, None, None, None)), axis_name="i",
                         in_axes=(1, 1, 0, 0, 0), out_axes=1)(x, out, FIRSTS, SIZES, PLACES)
    want = [ragged_reference(a, b, FIRSTS, SIZES, PLACES) for a, b in zip(x, out, strict=True)]
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(inner, want)


def test_ragged_exchange_derivatives():
    firsts = FIRSTS * 0  # rows go to several positions
    with jax.enable_x64(True):
        x, out = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 7))

        def f(x, out):
            return jax.vmap(ragged, axis_name="i")(x, out, firsts, SIZES, PLACES)

        _, pushed = jax.jvp(f, (x, out), (2 * x, out + 1))
        np.testing.assert_allclose(pushed, ragged_reference(2 * x, out + 1, firsts, SIZES, PLACES))
        ct = RNG.normal(size=out.shape)
        cts = jax.vjp(f, x, out)[1](ct)
        inner = jax.vmap(lambda x, out, ct, *table: jax.vjp(
            lambda x, out: ragged(x, out, *table), x, out)[1](ct), axis_name="i")(
                x, out, ct, firsts, SIZES, PLACES)
        t = RNG.normal(size=x.shape)
        for pulled in (cts, inner):
            both = np.sum(pulled[0] * t) + np.sum(pulled[1] * out)
            np.testing.assert_allclose(both, np.sum(ct * f(t, out)))
        third = jax.grad(jax.grad(jax.grad(lambda s: jnp.sum(f(jnp.sin(s * x), out * s) ** 3))))
        second = jax.grad(jax.grad(lambda s: jnp.sum(f(jnp.sin(s * x), out * s) ** 3)))
        slope = (second(1.0 + 1e-5) - second(1.0 - 1e-5)) / 2e-5
        np.testing.assert_allclose(third(1.0), slope, rtol=1e-6)


@pytest.mark.parametrize(("change", "message"), [
    ({0: np.float32(1)}, "operand and output must be of one dtype"),
    ({1: np.zeros((7, 2), np.float32)}, "and of one shape but for their first axis"),
    ({1: np.zeros(7, np.int32)}, "operand and output must be of one dtype"),
    ({2: np.zeros(3, np.float32)}, "input_offsets must be integer type"),
    ({3: np.zeros((3, 1), np.int32)}, "send_sizes must be rank 1"),
    ({4: np.zeros(0, np.int32)}, "output_offsets must be rank 1 with positive dimension size"),
    ({5: np.zeros(6, np.int32)}, "recv_sizes must have the shape of input_offsets"),
    (dict.fromkeys(range(2, 6), np.zeros(4, np.int32)), "an entry for each of the 3 positions"),
])
def test_bad_ragged_exchanges(change, message):
    args = [np.zeros(5, np.float32), np.zeros(7, np.float32), *[np.zeros(3, np.int32)] * 4]
    for i, x in change.items():
        args[i] = x
    with pytest.raises(ValueError, match=message):
        jax.vmap(lambda: lax.ragged_all_to_all(*args, axis_name="i"), axis_name="i", axis_size=3)()
    with pytest.raises(NotImplementedError, match="axis_index_groups not supported in vmap"):
        jax.vmap(lambda: lax.ragged_all_to_all(
            np.zeros(5), np.zeros(7), *[np.zeros(3, int)] * 4, axis_name="i",
            axis_index_groups=[[0, 1, 2]]), axis_name="i", axis_size=3)()


# -- constants -------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_sums_of_numbers_are_numbers(wrap):
    seen = []

    def f(x):
        seen.extend([lax.psum(1, "i"), lax.psum(1.5, "i"), lax.psum(2j, "i"), lax.pmean(3, "i"),
                     lax.psum(np.int8(2), "i"), lax.axis_size("i"), lax.psum({"a": 1}, "i")["a"]])
        return x

    jax.vmap(wrap(f), axis_name="i")(np.zeros(5))
    assert seen == [5, 7.5, 10j, 3.0, 10, 5, 5]
    assert [type(v) for v in seen] == [int, float, complex, float, np.int8, int, int]
    array = jax.vmap(lambda x: lax.psum(np.ones(2), "i"), axis_name="i", out_axes=None)(np.zeros(5))
    assert type(array) is np.ndarray and array.tolist() == [5, 5]


def test_sums_of_constants_keep_weak_types():
    for f in (lax.psum, lax.pmean, lax.pmax):
        got = jax.vmap(lambda x, f=f: f(x, "i"), in_axes=None, axis_size=3, axis_name="i")(
            jnp.asarray(2.0))
        assert got.weak_type and got.dtype == np.float32


def test_integers_wrap_around():
    f = jax.vmap(lambda x: lax.psum(jnp.int8(1), "i"), axis_name="i", out_axes=None)
    assert int(f(np.zeros(300))) == 300 - 256


def test_keys():
    keys = jax.random.split(jax.random.key(0), 3)
    data = np.asarray(jax.random.key_data(keys))
    turned = jax.jit(jax.vmap(lambda k: lax.pshuffle(k, "i", [1, 2, 0]), axis_name="i"))(keys)
    np.testing.assert_array_equal(jax.random.key_data(turned), data[[1, 2, 0]])
    gathered = jax.vmap(lambda k: lax.all_gather(k, "i"), axis_name="i")(keys)
    np.testing.assert_array_equal(jax.random.key_data(gathered), np.stack([data] * 3))
    with pytest.raises(TypeError, match="psum does not accept dtype key"):
        jax.vmap(lambda k: lax.psum(k, "i"), axis_name="i")(keys)


# -- derivatives -----------------------------------------------------------------------------------


def inexact(fun):
    """The function, through sines and with a sum of cubes, so that no derivative vanishes."""
    return lambda x: jnp.sum(jnp.sin(fun(jnp.sin(x))) ** 3)


@pytest.mark.parametrize("name", LINEAR)
@wraps
def test_both_modes(name, wrap):
    fun, reference = OPS[name]
    f = WRAPS[wrap](fun)
    t = RNG.normal(size=X.shape).astype(np.float32)
    _, pushed = jax.jvp(f, (X,), (t,))
    np.testing.assert_allclose(pushed, reference(t), rtol=1e-5, atol=1e-5)
    out, pull = jax.vjp(f, X)
    ct = RNG.normal(size=out.shape).astype(np.float32)
    np.testing.assert_allclose(np.sum(pull(ct)[0] * t), np.sum(ct * reference(t)), rtol=2e-4)


@ops
def test_gradients_of_each_example(name):
    """Inside the axis a gradient is that of the sum over all examples."""
    f = inexact(OPS[name][0])
    with jax.enable_x64(True):
        x = X.astype(np.float64)
        whole = jax.grad(lambda x: jax.vmap(f, axis_name="i")(x).sum())(x)
        for each in (jax.vmap(jax.grad(f), axis_name="i"),
                     jax.vmap(jax.jit(jax.grad(f)), axis_name="i"),
                     jax.vmap(jax.grad(jax.jit(f)), axis_name="i"),
                     jax.jit(jax.vmap(jax.grad(f), axis_name="i"))):
            np.testing.assert_allclose(each(x), whole, rtol=1e-9, atol=1e-12)
        h = 1e-6
        d = RNG.normal(size=X.shape)
        total = jax.jit(lambda x: jax.vmap(f, axis_name="i")(x).sum())
        slope = (total(x + h * d) - total(x - h * d)) / (2 * h)
        np.testing.assert_allclose(np.sum(whole * d), slope, rtol=1e-6, atol=1e-7)


@ops
def test_third_order(name):
    """Three derivatives along one direction, by all mixtures of modes, against differences."""
    f = inexact(OPS[name][0])
    d = RNG.normal(size=X.shape)

    def along(t):
        return jax.vmap(f, axis_name="i")(x + t * d).sum()

    def forward(g):
        return lambda t: jax.jvp(g, (t,), (1.0,))[1]

    with jax.enable_x64(True):
        x = X.astype(np.float64)
        second = jax.jit(forward(forward(along)))
        h = 1e-5
        slope = (second(h) - second(-h)) / (2 * h)
        for third in (forward(forward(forward(along))), jax.grad(jax.grad(jax.grad(along))),
                      forward(jax.grad(forward(along))), jax.grad(forward(jax.grad(along)))):
            np.testing.assert_allclose(jax.jit(third)(0.0), slope, rtol=1e-6, atol=1e-4)


@ops
def test_second_order_of_each_example(name):
    """Forward over reverse inside the axis is forward over reverse outside of it."""
    f = inexact(OPS[name][0])
    d = RNG.normal(size=X.shape)

    def hvp(grad, x, d):
        return jax.jvp(grad, (x,), (d,))[1]

    with jax.enable_x64(True):
        x = X.astype(np.float64)
        whole = hvp(jax.grad(lambda x: jax.vmap(f, axis_name="i")(x).sum()), x, d)
        each = jax.jit(jax.vmap(lambda x, d: hvp(jax.grad(f), x, d), axis_name="i"))(x, d)
        np.testing.assert_allclose(each, whole, rtol=1e-8, atol=1e-10)


def test_ties_share_the_tangent_of_a_maximum():
    x = np.array([1.0, 3.0, 3.0], np.float32)
    f = jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")
    np.testing.assert_allclose(jax.grad(lambda x: f(x)[0])(x), [0, 0.5, 0.5])
    g = jax.vmap(jax.grad(lambda x: lax.pmax(x, "i")), axis_name="i")
    np.testing.assert_allclose(g(x), [0, 1.5, 1.5])


# -- in other transformations ----------------------------------------------------------------------


def test_in_loops():
    def f(x):
        def body(s):
            return s[0] + 1, lax.ppermute(s[1], "i", TURN) + lax.axis_index("i")

        return lax.while_loop(lambda s: s[0] < lax.pmax(s[0] * 0 + 3, "i"), body, (0, x))[1]

    want = X
    for _ in range(3):
        want = np.roll(want, -1, 0) + np.arange(N)[:, None, None]
    for wrap in WRAPS.values():
        np.testing.assert_allclose(wrap(f)(X), want, rtol=1e-5)
    _, pushed = jax.jvp(jax.vmap(f, axis_name="i"), (X,), (X,))
    np.testing.assert_allclose(pushed, np.roll(X, -3, 0), rtol=1e-5)


def test_in_scans_and_branches():
    def f(x):
        def body(c, y):
            return lax.psum(c, "i") * y, lax.ppermute(c, "i", TURN)

        c, ys = lax.scan(body, x[0], x[:2])
        z = lax.cond(lax.pmax(x[0, 0], "i") > 0, lambda: lax.pmean(c, "i"), lambda: jnp.sin(c))
        return jnp.sum(ys ** 2) + jnp.sum(z ** 2)

    def plain(x):  # of the whole batch
        c, ys = x[:, 0], []
        for k in range(2):
            ys.append(jnp.roll(c, -1, 0))
            c = jnp.sum(c, 0) * x[:, k]
        ys = jnp.stack(ys, 1)
        z = jnp.where(jnp.max(x[:, 0, 0]) > 0, jnp.broadcast_to(jnp.mean(c, 0), c.shape),
                      jnp.sin(c))
        return jnp.sum(ys ** 2, (1, 2)) + jnp.sum(z ** 2, 1)

    with jax.enable_x64(True):
        for x in (X.astype(np.float64), -np.abs(X).astype(np.float64)):
            want = jax.grad(lambda x: plain(x).sum())(x)
            for g, wrap in itertools.product((f, jax.checkpoint(f)), WRAPS.values()):
                np.testing.assert_allclose(wrap(g)(x), plain(x))
                np.testing.assert_allclose(wrap(jax.grad(g))(x), want)
                outside = jax.grad(lambda x, g=g, wrap=wrap: wrap(g)(x).sum())
                np.testing.assert_allclose(outside(x), want)


def test_several_names_in_backward_rules():
    @jax.custom_vjp
    def f(x):
        return lax.psum_scatter(x, ("i", "j"))

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (lax.all_gather(ct, ("i", "j")),))
    x = RNG.normal(size=(2, 3, 6)).astype(np.float32)

    def loss(f, x):
        return jnp.sum(jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(x) ** 2)

    want = jax.grad(lambda x: loss(lambda x: lax.psum_scatter(x, ("i", "j")), x))(x)
    for got in (jax.grad(lambda x: loss(f, x)), jax.jit(jax.grad(lambda x: loss(jax.jit(f), x)))):
        np.testing.assert_allclose(got(x), want, rtol=1e-5, atol=1e-5)  # of sums that may cancel


def test_in_custom_rules():
    @jax.custom_jvp
    def normalized(x):
        return x / lax.psum(x, "i")

    @normalized.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        s = lax.psum(x, "i")
        return x / s, t / s - x * lax.psum(t, "i") / s ** 2

    @jax.custom_vjp
    def scattered(x):
        return lax.psum_scatter(x, "i")

    scattered.defvjp(lambda x: (scattered(x), None), lambda _, ct: (lax.all_gather(ct, "i"),))
    x = np.arange(1.0, 5.0, dtype=np.float32)
    plain = jax.jacrev(jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i"))(x)
    for wrap in WRAPS.values():
        np.testing.assert_allclose(jax.jacrev(wrap(normalized))(x), plain, rtol=1e-5)
        np.testing.assert_allclose(jax.jacfwd(wrap(normalized))(x), plain, rtol=1e-5)
        got = jax.grad(lambda x, wrap=wrap: (wrap(scattered)(x) * x[:, 0]).sum())(X[:, :, 0])
        want = jax.grad(lambda x, wrap=wrap: (wrap(OPS["psum_scatter"][0])(x) * x[:, 0]).sum())(
            X[:, :, 0])
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_spmd_axis_names_change_nothing():
    f = jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i", spmd_axis_name="rows")
    np.testing.assert_allclose(f(X), np.broadcast_to(X.sum(0), X.shape), rtol=1e-5, atol=1e-6)


def test_trees():
    f = jax.vmap(lambda t: lax.psum(t, "i"), axis_name="i")
    got = f({"a": X, "b": (X[:, 0], None)})
    np.testing.assert_allclose(got["b"][0], np.broadcast_to(X[:, 0].sum(0), X[:, 0].shape),
                               rtol=1e-5, atol=1e-6)
    assert got["b"][1] is None


# -- programs --------------------------------------------------------------------------------------


def test_printed():
    def text(f, x=X[0, :, 0]):
        jaxpr = jax.make_jaxpr(f, axis_env=[("i", N), ("j", 2)])(x)
        check_jaxpr(jaxpr)
        return re.sub(r"\s+", " ", str(jaxpr))

    assert "psum[axes=('i',) axis_index_groups=None] a" in text(lambda x: lax.psum(x, "i"))
    assert "psum[axes=(0, 'i') axis_index_groups=None] a" in text(lambda x: lax.psum(x, (0, "i")))
    assert "div b 8.0:f32[]" in text(lambda x: lax.pmean(x, ("i", "j")))
    assert "axis_index[axis_name=i]" in text(lambda x: lax.axis_index("i"))
    assert "pbroadcast[axis_name=i source=1] a" in text(lambda x: lax.pbroadcast(x, "i", 1))
    assert ("all_gather[ all_gather_dimension=0 axis_index_groups=((0, 2), (1, 3)) "
            "axis_name=('i',) axis_size=2 tiled=False ] a") in text(
                lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 2], [1, 3]]))
    assert ("reduce_scatter[ axis_index_groups=None axis_name=('i',) axis_size=4 "
            "scatter_dimension=0 tiled=True ] a") in text(
                lambda x: lax.psum_scatter(x, "i", tiled=True))
    assert ("all_to_all[ axis_index_groups=None axis_name=i concat_axis=0 split_axis=0 "
            "tiled=False ] a") in text(lambda x: lax.all_to_all(x, "i", 0, 0))
    assert "psum[axes=(0,) axis_index_groups=None] a" in str(
        jax.make_jaxpr(jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i"))(X))


def test_effects():
    f = jax.make_jaxpr(lambda x: lax.psum(x, ("i", 0)), axis_env=[("i", 2)])(X)
    assert str(set(f.effects)) == "{NamedAxisEffect(i)}"
    assert not jax.make_jaxpr(jax.vmap(lambda x: lax.psum(x, ("i", 0)), axis_name="i"))(X).effects


def test_a_program_that_left_its_axis():
    closed = jax.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 2)])(X)
    with pytest.raises(NameError, match="unbound axis name: i"):
        jax.core.eval_jaxpr(closed.jaxpr, closed.consts, X)
    with pytest.raises(NameError, match="unbound axis name: i"):
        jax.jit(jax.core.jaxpr_as_fun(closed))(X)
    got = jax.vmap(lambda x: jax.core.jaxpr_as_fun(closed)(x)[0], axis_name="i")(np.stack([X, X]))
    np.testing.assert_allclose(got[0], 2 * X)


# -- errors ----------------------------------------------------------------------------------------


def test_an_array_is_no_name():
    with pytest.raises(TypeError, match=r"axis_name must be the name of an axis, got int32\[\]"):
        jax.lax.psum(1.0, jnp.array(1))


@pytest.mark.parametrize("f", [
    lambda x: lax.psum(x, "i"), lambda x: lax.psum(1, "i"), lambda x: lax.pmean(x, "i"),
    lambda x: lax.pmax(x, "i"), lambda x: lax.pmin(x, ("j", "i")), lambda x: lax.axis_index("i"),
    lambda x: lax.axis_size("i"), lambda x: lax.ppermute(x, "i", []),
    lambda x: lax.pshuffle(x, "i", [0]), lambda x: lax.pbroadcast(x, "i", 0),
    lambda x: lax.all_gather(x, "i"), lambda x: lax.psum_scatter(x, "i"),
    lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: lax.pswapaxes(x, "i", 0)])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_unbound_names(f, wrap):
    with pytest.raises(NameError, match="unbound axis name: i"):
        jax.vmap(wrap(f), axis_name="j")(X)


@pytest.mark.parametrize(("f", "error", "message"), [
    (lambda x: lax.psum(x, ("i", "i")), ValueError, "psum: duplicate value in axes"),
    (lambda x: lax.psum(x, (0, 2)), ValueError, "psum: reduction axes .* out-of-bounds"),
    (lambda x: lax.psum("x", "i"), TypeError, "psum as a JAX value"),
    (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]]), NotImplementedError,
     "psum: axis_index_groups not supported in vmap"),
    (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]), ValueError,
     "must cover all indices exactly once"),
    (lambda x: lax.psum(x, "i", axis_index_groups=3), TypeError, "list of lists"),
    (lambda x: lax.psum(x, ("i", 0), axis_index_groups=[[0, 1], [2, 3]]), ValueError,
     "only supported for reductions over just named axes"),
    (lambda x: lax.pmax(x, "i", axis_index_groups=[[0, 1], [2, 3]]), NotImplementedError,
     "pmax: axis_index_groups not supported in vmap"),
    (lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2, 3]]), NotImplementedError,
     "all_gather: axis_index_groups not supported in vmap"),
    (lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1, 2], [3]]), ValueError,
     "all_gather: axis_index_groups must all be of one size"),
    (lambda x: lax.all_gather(x, "i", axis=3), ValueError, "out of bounds"),
    (lambda x: lax.all_gather(x, "i", axis=0.5), TypeError, "axis must be an integer"),
    (lambda x: lax.all_gather(x, "i", to="away"), ValueError, "unexpected `to` value"),
    (lambda x: lax.psum_scatter(x, "i", scatter_dimension=1), ValueError,
     r"psum_scatter requires the size .* are 4 and 8 respectively\. scatter_dimension=0 has that "
     r"size\. With tiled=True"),
    (lambda x: lax.psum_scatter(x[:3], "i", tiled=True), ValueError, "has to be divisible"),
    (lambda x: lax.psum_scatter(x > 0, "i"), TypeError, "does not accept dtype bool"),
    (lambda x: lax.all_to_all(x, "i", 1, 0), ValueError,
     r"all_to_all requires .* x\.shape\[split_axis\], but they are 4 and 8"),
    (lambda x: lax.all_to_all(x, "i", 0, 2), ValueError, "concat_axis: axis 2 is out of bounds"),
    (lambda x: lax.ppermute(x, "i", np.array(TURN)), TypeError, "must be a list or a tuple"),
    (lambda x: lax.ppermute(x, "i", [0, 1]), TypeError, "each pair of perm"),
    (lambda x: lax.ppermute(x, "i", [(0, 1, 2)]), TypeError, "must hold pairs"),
    (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, "sources must be unique"),
    (lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), ValueError, "targets must be unique"),
    (lambda x: lax.ppermute(x, "i", [(0, 4)]), ValueError, r"targets must be in \[0, 4\)"),
    (lambda x: lax.pshuffle(x, "i", [0, 1, 2, 2]), ValueError, "does not represent a permutation"),
    (lambda x: lax.pshuffle(x, "i", [0, 1, 2]), ValueError, "does not represent a permutation"),
    (lambda x: lax.pbroadcast(x, "i", 4), ValueError, r"source must be in \[0, 4\)"),
    (lambda x: lax.pbroadcast(x, "i", 1.0), TypeError, "integer"),
    (lambda x: lax.pcast(x, "i", to="varying"), ValueError, r"under jax\.shard_map"),
    (lambda x: lax.pcast(x, "i", to="away"), ValueError, "unexpected `to` value"),
])
def test_bad_input(f, error, message):
    with pytest.raises(error, match=message):
        jax.vmap(f, axis_name="i")(X)


def test_axes_of_no_size():
    x = np.zeros((0, 3), np.float32)
    assert jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(x).shape == (0, 3)
    assert jax.vmap(lambda x: lax.ppermute(x, "i", []), axis_name="i")(x).shape == (0, 3)
    assert jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(x).shape == (0, 0, 3)
    assert jax.vmap(lambda x: lax.axis_index("i"), axis_name="i")(x).shape == (0,)


def test_names_may_be_any_hashable_value():
    axis = object()
    f = jax.vmap(lambda x: lax.psum(x, axis), axis_name=axis)
    np.testing.assert_allclose(f(X), np.broadcast_to(X.sum(0), X.shape), rtol=1e-5, atol=1e-6)
    assert lax.pcast(X, (), to="varying") is X


def test_a_collective_that_is_started():
    x = jnp.arange(6.0).reshape(2, 3, 1) * jnp.ones(2)

    def f(x):
        started = lax.psum_scatter_start({"a": x, "b": 2 * x}, "i", scatter_dimension=1)
        return started["a"].done() * started["b"].done()

    def at_once(x):
        return 2 * lax.psum_scatter(x, "i", scatter_dimension=1) ** 2

    for transform in (lambda f: f, jax.jit):
        got, want = [transform(jax.vmap(g, axis_name="i"))(x) for g in (f, at_once)]
        assert got.tolist() == want.tolist()
    got, want = [jax.grad(lambda x, g=g: jax.vmap(g, axis_name="i")(x).sum())(x)
                 for g in (f, at_once)]
    assert got.tolist() == want.tolist()
