"""Padded programs give what the programs themselves give, whatever stands in the padding."""

import itertools

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export, lax
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.dynamic import buckets, padded  # noqa: F401  the rules
from pyjx.dynamic.padded import Padding, garbage, padded_jaxpr, sized_jaxpr
from tests.dynamic.functions import FUNCTIONS, planted

ROOM = 8
SIZES = {1: [(1,), (5,), (8,)], 2: [(1, 8), (5, 3)]}


def with_gradient(function):
    """The function, and the derivative of its results' sines."""
    def loss(*args):
        outs = function.fun(*args)
        return sum(jnp.sin(x).sum() for x in jax.tree.leaves(outs)
                   if jnp.issubdtype(x.dtype, jnp.floating)), outs

    inexact = [i for i in range(len(function.shapes)) if i not in function.integers]
    return jax.grad(loss, inexact, has_aux=True) if function.derived else function.fun


def traced(fun, shapes, integers=()):
    scope = export.SymbolicScope()
    args = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), np.dtype(
        "int32" if i in integers else "float32")) for i, s in enumerate(shapes)]
    closed = jax.jit(fun).trace(*args).jaxpr
    names = sorted({v for a in args for d in a.shape if type(d) is not int for v in d.variables()})
    return closed, names


def values(closed, sizes, integers=()):
    rng = np.random.default_rng(0)
    shapes = [[d if type(d) is int else d.evaluate(sizes) for d in a.shape]
              for a in closed.in_avals]
    return [rng.integers(-3, 9, s).astype(np.int32) if i in integers else
            rng.normal(size=s).astype(np.float32) for i, s in enumerate(shapes)]


def run_padded(program, names, sizes, args):
    """The program on arguments with garbage in their padding, cut nowhere."""
    padded = []
    for x, aval in zip(args, program.in_avals[len(names):], strict=True):
        full = np.full(aval.shape, garbage(x.dtype))
        full[tuple(map(slice, x.shape))] = x
        padded.append(full)
    return jax.jit(jaxpr_as_fun(program))(*[np.int32(sizes[v]) for v in names], *padded)


def test_equal_sizes_have_the_same_room(monkeypatch):
    n, m = export.symbolic_shape("n, m")
    rooms = Padding(n.scope, {"n": 8, "m": 4}, {}).rooms
    assert rooms([n, m, n + m, (n + 1) // 2, 5, n - n // 2]) == (8, 4, 12, 4, 5, 4)
    compared = []
    monkeypatch.setattr(padded, "equal", lambda d, e: compared.append((str(d), str(e))))
    assert rooms([n, n + m, 3 * m, m * n]) == (8, 12, 12, 32)  # by variables that are the same
    assert compared == [("3*m", "m"), (str(m * n), str(n + m))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_padding_is_not_seen(name):
    function = FUNCTIONS[name]
    closed, names = traced(with_gradient(function), function.shapes, function.integers)
    program = padded_jaxpr(closed, tuple((v, ROOM) for v in names), True, False)
    for numbers in SIZES[len(names)]:
        sizes = dict(zip(names, numbers, strict=True))
        args = values(closed, sizes, function.integers)
        expected = jax.jit(jaxpr_as_fun(sized_jaxpr(closed, tuple(sizes.items()))))(*args)
        found = run_padded(program, names, sizes, args)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(x)[tuple(map(slice, y.shape))], y, rtol=3e-5,
                                       atol=3e-5)


def test_programs_of_one_size_are_those_of_the_function():
    function = FUNCTIONS["attention"]
    closed, _ = traced(function.fun, function.shapes)
    sized = sized_jaxpr(closed, (("n", 5),))
    x, = values(closed, {"n": 5})
    np.testing.assert_allclose(jaxpr_as_fun(sized)(x)[0], function.fun(x), rtol=1e-5, atol=1e-6)
    assert "select_n" not in str(jax.make_jaxpr(jaxpr_as_fun(sized_jaxpr(
        traced(lambda x: x.sum(), ["n"])[0], (("n", 5),))))(np.zeros(5, np.float32)))


def test_masks_stand_where_they_are_needed():
    def n_masks(fun, *shapes, zeros=True):
        closed, names = traced(fun, shapes)
        return str(padded_jaxpr(closed, tuple((v, ROOM) for v in names), False, zeros)
                   ).count("select_n")

    assert n_masks(lambda x: jnp.exp(x) * 2, "n, 3") == 0
    assert n_masks(lambda x: x.sum(1), "n, 3") == 0
    assert n_masks(lambda x: x.sum(0), "n, 3") == 0  # there are zeros
    assert n_masks(lambda x: x.sum(0), "n, 3", zeros=False) == 1
    assert n_masks(lambda x: (x * 2).sum(0), "n, 3") == 0
    assert n_masks(lambda x: (x + 1).sum(0), "n, 3") == 1
    assert n_masks(lambda x: jnp.cumsum(x + 1), "n") == 0
    assert n_masks(lambda x: jnp.exp(x) @ x.T, "n, 3") == 0
    assert n_masks(lambda x: jnp.exp(x).T @ x, "n, 3") == 1


@pytest.mark.parametrize(("fun", "shape", "words"), [
    (lambda x: jnp.fft.fft(x), "n", ["`fft`", "dimension n", "length", "test_padding.py"]),
    (jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum()), "n", ["`fft`", "test_padding.py"]),
    (lambda x: jnp.linalg.svd(x, full_matrices=False), "n, 3", ["`svd`", "without `dynamic`"]),
    (lambda x: x + jax.random.normal(jax.random.key(0, impl="rbg"), x.shape), "n",
     ["`random_bits`", "rbg", "threefry"]),
    (lambda x: lax.conv_general_dilated(x, x[:, :, :1].swapaxes(0, 1), (1,), "SAME",
                                        feature_group_count=x.shape[1]), "1, b, 3",
     ["`conv_general_dilated`", "dimension b", "cut into groups"]),
    (lambda x: lax.conv_general_dilated(x, jnp.ones((1, 1, 2)), (1,), [(0, x.shape[2])],
                                        rhs_dilation=x.shape[2:]), "1, 1, n",
     ["`conv_general_dilated`", "dimension n", "rhs_dilation is symbolic"]),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (1,), x.shape, "VALID"), "n",
     ["`reduce_window_sum`", "dimension", "window_strides is symbolic"]),
])
def test_what_cannot_be_padded_is_refused_by_name(fun, shape, words):
    closed, names = traced(fun, [shape])
    with pytest.raises(NotImplementedError) as caught:
        padded_jaxpr(closed, ((names[0], ROOM),))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("fun", [
    lambda x: jnp.sin(x) * 2 + x, lambda x: jnp.where(x > 0, x, jnp.exp(x)),
])
def test_elementwise_operations_give_the_same_bits_at_every_length(fun):
    closed, _ = traced(jax.vmap(jax.grad(fun)), ["n"])
    program = padded_jaxpr(closed, (("n", 40),), True, False)
    plain = jax.jit(jaxpr_as_fun(program))
    whole = values(closed, {"n": 40})[0]
    every = np.asarray(plain(np.int32(40), whole)[0])
    for n in range(1, 40):
        padded = np.where(np.arange(40) < n, whole, np.nan)
        np.testing.assert_array_equal(plain(np.int32(n), padded)[0][:n], every[:n])


@pytest.mark.parametrize("fun", [
    lambda x: jax.nn.softmax(x), lambda x: jnp.cumsum(x[::-1]), lambda x: x.std() * x,
    lambda x: jnp.sort(x) @ x, lambda x: lax_scan(x),
])
def test_every_length(fun):
    closed, _ = traced(lambda x: (fun(x), jax.grad(lambda x: jnp.sin(fun(x)).sum())(x)), ["n"])
    program = jax.jit(jaxpr_as_fun(padded_jaxpr(closed, (("n", 40),), True, False)))
    source = values(closed, {"n": 40})[0]
    for n in itertools.chain(range(2, 9), range(9, 41, 7)):
        found = program(np.int32(n), np.where(np.arange(40) < n, source, np.nan))
        expected = jaxpr_as_fun(sized_jaxpr(closed, (("n", n),)))(source[:n])
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x[tuple(map(slice, y.shape))], y, rtol=3e-5, atol=3e-5)


NUMBERS = np.arange(10, dtype="f")
DOWN = np.array([1, 2, 3, 4, 5, 6, 7, 8, np.inf], "f")
AT_START = lax.ScatterDimensionNumbers((0,), (), ())
ROWS = np.random.default_rng(0).normal(size=(8, 5)).astype("f")


@pytest.mark.parametrize(("fun", "dims", "args"), [
    # numbers that no conversion keeps
    (lambda x: (x - 1).astype(jnp.uint32).min(), ("n",), [np.full(3, 7, "f")]),
    (lambda x: (x + 3e9).astype(jnp.int32).max(), ("n",), [np.full(3, -3e9, "f")]),
    # zeros behind a window that meet what is not finite
    (lambda x, y: jnp.convolve(y, x, "valid"), ("n",), [np.ones(3, "f"), DOWN]),
    (lambda x, y: lax.conv_general_dilated(y, x, (1, 2), [(1, 1), (2, 0)], (1, 2), (2, 1)),
     (None, None, "n", "m"), [np.ones((2, 1, 2, 3), "f"), DOWN.reshape(1, 1, 3, 3)]),
    (lambda x: jax.grad(lambda w: (jnp.convolve(x, w, "same")[:2]).sum())(jnp.ones(2)), ("n",),
     [DOWN]),
    # windows of symbolic sizes in arrays of known ones
    (lambda x, i: jax.vmap(lambda i: lax.dynamic_slice(jnp.arange(10.0), (i,), x.shape))(i), ("n",),
     [np.ones(3, "f"), np.array([0, 7, 9])]),
    (lambda x, i: jax.vmap(lambda i: lax.dynamic_update_slice(jnp.arange(10.0), x, (i,)))(i),
     ("n",), [np.ones(3, "f"), np.array([0, 7, 9])]),
    (lambda x: jnp.split(jnp.arange(8.0), [x.shape[0]]), ("n",), [np.ones(3, "f")]),
    # windows that no index moves
    *[(lambda x, put=put: put(x, jnp.zeros(0, int), x[:-2] * 0 - 7, AT_START), ("n",),
       [NUMBERS[:5]]) for put in (lax.scatter, lax.scatter_add, lax.scatter_min)],
    (lambda x: lax.scatter_add(x, jnp.zeros((x.shape[0], 0), int), x[:, None] * x[:-2],
                               AT_START._replace(update_window_dims=(1,))), ("n",), [NUMBERS[:5]]),
    (lambda x: jax.grad(lambda x: jnp.sin(lax.gather(
        x, jnp.zeros(0, int), lax.GatherDimensionNumbers((0, 1), (), ()),
        (x.shape[0] - 1, x.shape[1] - 2))).sum())(x), ("n", "m"), [ROWS]),
    # what is neutral is not known
    (lambda x: lax.reduce(x, 2.0, lambda a, b: a + b * 1.0, (0,)), ("n", None), [ROWS[:3]]),
    # a kernel for each example
    (lambda x: jax.vmap(lambda r: jnp.convolve(r, r[1:4], "same"))(x), ("n", None), [ROWS[:3]]),
    (lambda x: jax.vmap(jax.grad(lambda k, x: (lax.conv(
        x[None], k, (1,), "SAME") ** 2).sum()), (None, 0))(jnp.ones((3, 1, 2)), x[:, None]),
     ("n", None), [ROWS[:3]]),
    # windows that begin at symbolic places
    (lambda x: jax.grad(lambda x: jnp.sin(lax.reduce_window(
        x, -np.inf, lax.max, (3,), (2,), "SAME")).sum())(x), ("n",), [NUMBERS[:6]]),
    (lambda x: jax.jvp(lambda x: lax.reduce_window(x, -np.inf, lax.max, (3,), (2,), "SAME"),
                       (x,), (x * 2,)), ("n",), [NUMBERS[:5]]),
    # sizes that are equal, and written in several ways
    (lambda x: lax.associative_scan(jnp.multiply, x, reverse=True), ("n", None), [ROWS]),
    (lambda x: lax.map(lambda r: r.sum(), x, batch_size=2), ("n", None), [ROWS[:5]]),
    (lambda x: jax.grad(lambda x: jnp.sin(jax.ops.segment_prod(
        x, jnp.zeros(x.shape[0], int), 2)).sum())(x), ("n", None), [ROWS[:5]]),
    (lambda x: (jnp.diff(x).at[:-1].add(jnp.diff(x)[1:]), x.reshape(-1, order="F")), ("n", None),
     [ROWS[:5]]),
    # matrices
    (lambda x: (jnp.linalg.qr(x), jnp.linalg.svdvals(x), jax.scipy.linalg.lu(x)), ("n", None),
     [ROWS[:4]]),
    (lambda x: (jnp.linalg.qr(x[:, :2], mode="complete"), jnp.linalg.norm(x, 2),
                jax.grad(jnp.linalg.det)(x)), ("n", "n"), [ROWS[:5]]),
    (lambda x: lax.linalg.tridiagonal_solve(x, x + 9, x, x[:, None]), ("n",), [NUMBERS[:5]]),
    # random orders and choices
    (lambda x: jax.random.permutation(jax.random.key(0), x, independent=True), ("n", None), [ROWS]),
    (lambda x: jax.random.permutation(jax.random.key(0), x.shape[0]), ("n",), [NUMBERS[:7]]),
    (lambda x: jax.random.choice(jax.random.key(0), x.shape[0], (2,), False), ("n",), [NUMBERS]),
    (lambda x: jax.random.choice(jax.random.key(0), x, (9,), p=x / x.sum()), ("n",), [NUMBERS]),
])
def test_padding_is_hidden_from(fun, dims, args):
    for room in (8, 16):
        found = planted(fun, dict.fromkeys("x", dims), args, room)
        for x, y in zip(found, jax.tree.leaves(jax.jit(fun)(*args)), strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


def lax_scan(x):
    return jax.lax.scan(lambda c, y: (jnp.tanh(c + y), c * y), 0.0, x)[1]
