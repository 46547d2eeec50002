"""Operators and methods of arrays and tracers."""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp

X = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
Y = np.array([[2.0, 3.0, -1.0], [1.0, 0.5, 2.0]], np.float32)
INTS, SHIFTS = np.array([5, -3, 8], np.int32), np.array([2, 3, 1], np.int32)

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
              operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


def check(got, expected):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
    assert np.shape(got) == np.shape(expected)


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS, ids=lambda op: op.__name__)
def test_binary_operators(op):
    x, y = jnp.asarray(X), jnp.asarray(Y)
    check(op(x, y), op(X, Y))
    check(op(x, Y), op(X, Y))
    check(op(X, y), op(X, Y))
    check(op(x, 2), op(X, 2))
    check(op(2.0, x), op(2.0, X))
    check(op(x, np.float32(2)), op(X, np.float32(2)))
    check(jax.jit(op)(x, y), op(X, Y))
    check(jax.jit(lambda x: op(x, 2))(x), op(X, 2))
    check(jax.jit(lambda x: op(2, x))(x), op(2, X))
    check(jax.jit(lambda x: op(x, Y))(x), op(X, Y))
    check(jax.jit(lambda x: op(X, x))(y), op(X, Y))


@pytest.mark.parametrize("op", BITS, ids=lambda op: op.__name__)
def test_bit_operators(op):
    check(op(jnp.asarray(INTS), jnp.asarray(SHIFTS)), op(INTS, SHIFTS))
    check(op(jnp.asarray(INTS), 2), op(INTS, 2))
    check(op(7, jnp.asarray(SHIFTS)), op(7, SHIFTS))
    check(jax.jit(op)(INTS, SHIFTS), op(INTS, SHIFTS))


def test_other_operators():
    x = jnp.asarray(X)
    for op in (operator.neg, operator.pos, abs):
        check(op(x), op(X))
        check(jax.jit(op)(x), op(X))
    check(~jnp.asarray(INTS), ~INTS)
    check(x ** 2, X ** 2)
    check(2 ** x, 2 ** X)
    check(abs(x) ** 0.5, abs(X) ** 0.5)
    check(jnp.asarray(INTS) ** 2, INTS ** 2)
    check(pow(x, 3), X ** 3)
    check(x @ Y.T, X @ Y.T)
    check(X @ jnp.asarray(Y.T), X @ Y.T)
    for got, expected in zip(divmod(x, 2), divmod(X, 2), strict=True):
        check(got, expected)
    check(round(x, 1), np.round(X, 1))
    assert round(x[0, 0]).dtype == "int32"


@pytest.mark.parametrize("other", [[1.0], None, "a", object(), {}], ids=lambda x: str(type(x)))
def test_operators_with_what_is_no_array(other):
    x = jnp.ones(1)

    def add(x):
        return x + other

    for fun in (add, lambda x: other + x, lambda x: x < other):
        with pytest.raises(TypeError, match=r"unsupported operand|not supported between|can "
                           r"only|must be str"):
            fun(x)
    with pytest.raises(TypeError, match="unsupported operand"):
        jax.jit(add)(x)
    if not isinstance(other, (list, dict)):
        assert (x == other) is False and (x != other) is True


def test_reflected_operators_of_other_classes():
    class Other:
        def __radd__(self, x):
            return "radd"

        def __eq__(self, x):
            return "eq"

    assert jnp.ones(2) + Other() == "radd"
    assert (jnp.ones(2) == Other()) == "eq"


def test_operators_are_functions_of_the_class():
    x = jnp.arange(3.0)
    assert float(jax.Array.__getitem__(x, 1)) == 1
    assert float(jax.jit(lambda x: jax.Array.__getitem__(x, 2))(x)) == 2
    assert jax.Array.__add__(x, 2).tolist() == [2, 3, 4]
    assert jax.Array.__lt__(x, 1).tolist() == [True, False, False]
    assert jax.Array.__rsub__(x, 2).tolist() == [2, 1, 0]
    assert jax.Array.__neg__(x).tolist() == [0, -1, -2]
    assert jax.Array.__pow__(x, 2).tolist() == [0, 1, 4]
    keys = jax.random.split(jax.random.key(0))
    for refused, dtypes in ((lambda: keys << 2, "key<fry>, int"), (lambda: 2 >> keys, "int32, key"),
                            (lambda: divmod(keys, 2), "key<fry>, int")):
        with pytest.raises(TypeError, match=f"does not accept dtypes {dtypes}"):
            refused()


def test_iteration_length_and_membership():
    x = jnp.asarray(X)
    rows = list(x)
    assert len(rows) == len(x) == 2
    check(rows[1], X[1])
    check(jax.jit(lambda x: list(x)[1] + next(reversed(x)))(x), X[1] * 2)
    assert 4.0 in x[1] and 9.0 not in x[1]
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        list(x[0, 0])
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        jax.jit(lambda x: list(x))(1.0)
    with pytest.raises(ValueError, match="search array must be one-dimensional"):
        1.0 in x  # noqa: B015
    with pytest.raises(ValueError, match="query value must be a scalar"):
        x[0] in x[0]  # noqa: B015
    for other in ("a", None, [4.0]):
        with pytest.raises(TypeError, match=r"Array\.__contains__: unsupported operand type"):
            other in x[0]  # noqa: B015


def test_arrays_are_immutable_and_unhashable():
    x = jnp.ones(3)
    for fun in (lambda x: x.__setitem__(0, 1), jax.jit(lambda x: x.__setitem__(0, 1))):
        with pytest.raises(TypeError, match="JAX arrays are immutable"):
            fun(x)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError, match="unhashable"):
        jax.jit(hash)(x)


METHODS = [
    ("all", ()), ("any", ()), ("argmax", (1,)), ("argmin", ()), ("argsort", ()), ("clip", (0, 2)),
    ("conj", ()), ("cumsum", (0,)), ("cumprod", (1,)), ("diagonal", ()), ("max", (0,)),
    ("mean", ()), ("min", ()), ("prod", (1,)), ("ravel", ()), ("repeat", (2, 1)), ("round", (0,)),
    ("sort", (0,)), ("squeeze", ()), ("std", ()), ("sum", (1,)), ("swapaxes", (0, 1)),
    ("take", (np.array([0, 1]), 1)), ("trace", ()), ("var", (0,)), ("flatten", ()),
    ("reshape", (3, 2)), ("reshape", ((3, -1),)), ("reshape", (-1,)), ("transpose", ()),
    ("transpose", (1, 0)), ("transpose", ((1, 0),)), ("copy", ()), ("astype", (np.int32,)),
]


@pytest.mark.parametrize(("name", "args"), METHODS)
def test_methods(name, args):
    x = jnp.asarray(X)
    expected = np.sort(X, *args) if name == "sort" else getattr(X, name)(*args)
    check(getattr(x, name)(*args), expected)
    check(jax.jit(lambda x: getattr(x, name)(*args))(x), expected)


def test_method_keywords():
    x = jnp.asarray(X)
    check(x.sum(axis=0, keepdims=True), X.sum(axis=0, keepdims=True))
    check(x.max(initial=9), X.max(initial=9))
    check(x.compress(jnp.array([False, True]), axis=0), X.compress([False, True], axis=0))
    for got, expected in zip(x.nonzero(), X.nonzero(), strict=True):
        check(got, expected)


def test_properties():
    x, c = jnp.asarray(X), jnp.asarray(X + 2j)
    check(x.T, X.T)
    check(x.mT, X.T)
    check(jax.jit(lambda x: x.T)(x), X.T)
    check(c.real, X)
    check(c.imag, np.full_like(X, 2))
    assert x.real is x
    assert (x.nbytes, x.itemsize, x.size, x.ndim) == (24, 4, 6, 2)
    sizes = []
    jax.jit(lambda x: sizes.append((x.nbytes, x.itemsize)))(x)
    assert sizes == [(24, 4)]
    with pytest.raises(ValueError, match="at least two-dimensional"):
        x[0].mT  # noqa: B018
    with pytest.raises(NotImplementedError, match=r"consider arr.flatten\(\)"):
        x.flat  # noqa: B018


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "uint16", "complex64", "bool",
                                   "float16"])
def test_view(dtype):
    x = jnp.asarray(np.arange(8, dtype=np.float32).reshape(2, 4))
    if dtype == "bool":
        assert x.view(dtype).shape == (2, 16)
        return
    expected = np.asarray(x).view(dtype)
    got = x.view(dtype)
    assert got.shape == expected.shape and got.dtype == dtype
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(got.view("float32"), x)


def test_view_of_bits_and_bytes():
    x = np.array([1, 256, -2], np.int32)
    check(jnp.asarray(x).byteswap(), x.byteswap())
    c = X.astype(np.complex64) + 1j
    np.testing.assert_array_equal(jnp.asarray(c).byteswap().byteswap(), c)
    flags = jnp.asarray(np.array([1.0], np.float32)).view("bool")
    assert flags.tolist() == [False, False, True, True]


def test_view_that_does_not_fit():
    with pytest.raises(ValueError, match="must be a divisor of the total size"):
        jnp.ones(3, "int8").view("int16")


def test_reshape_errors():
    x = jnp.asarray(X)
    with pytest.raises(TypeError, match=r"cannot reshape array of shape \(2, 3\) \(size 6\) into "
                       r"shape \(5, -1\) because"):
        x.reshape(5, -1)
    with pytest.raises(TypeError, match=r"into shape \(2, 2\) \(size 4\)"):
        x.reshape(2, 2)


def test_item_and_namespace():
    x = jnp.asarray(X)
    assert x.item(3) == 0.5
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda x: x.item())(1.0)
    assert x.__array_namespace__() is jnp
    with pytest.raises(ValueError, match="not available"):
        x.__array_namespace__(api_version="1999.12")
    assert hex(jnp.array(255)) == "0xff"


def test_to_device():
    device = jax.devices()[0]
    assert jnp.ones(2).to_device(device).devices() == {device}


def test_reshape_takes_lists_and_other_orders():
    x = jnp.asarray(X)
    check(x.reshape([3, 2]), X.reshape([3, 2]))
    check(x.reshape((np.int64(3), -1)), X.reshape(3, 2))
    check(x.reshape(3, 2, order="F"), X.reshape(3, 2, order="F"))
    check(x.reshape(jnp.asarray(6)), X.reshape(6))


def test_what_only_arrays_have_says_so_of_tracers():
    for name in ("devices", "is_deleted", "on_device_size_in_bytes"):
        with pytest.raises(jax.errors.ConcretizationTypeError, match=name):
            jax.jit(lambda x, name=name: getattr(x, name)())(1.0)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda x: x.is_fully_addressable)(1.0)
    assert jax.grad(lambda x: len(x.devices()) * x)(2.0) == 1  # the value is known there
    for name in ("sharding", "block_until_ready", "copy_to_host_async"):
        with pytest.raises(AttributeError, match=f"The '{name}' .* is not available on traced"):
            jax.jit(lambda x, name=name: getattr(x, name))(1.0)


def test_item_of_a_differentiated_scalar():
    assert jax.grad(lambda x: x * x.item())(2.0) == 2.0


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_operators_refuse_containers(wrap):
    for operation in (lambda x: x * [1, 2], lambda x: (1, 2) * x, lambda x: x == [1],
                      lambda x: x != {}, lambda x: x + [1], lambda x: [1] ** x):
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for"):
            wrap(operation)(jnp.array(2))
    assert (jnp.array(2) == "a") is False


class Quaternion(NamedTuple):
    real: float

    def __rmul__(self, other):
        return "scaled"

    def __rsub__(self, other):
        return "subtracted"

    def __gt__(self, other):
        return "greater"

    def __eq__(self, other):
        return "equal"


@pytest.mark.parametrize("x", [jnp.ones(3), jnp.array(2), jax.random.key(0)],
                         ids=["array", "scalar", "key"])
def test_operators_are_left_to_classes_derived_from_containers(x):
    q = Quaternion(1.0)
    assert (x * q, x - q, x < q, x == q) == ("scaled", "subtracted", "greater", "equal")

    def traced(x):
        assert x * q == "scaled"

    jax.jit(traced)(x)


@pytest.mark.parametrize(("old", "new"), [
    ("complex64", "float32"), ("int32", "int8"), ("float32", "complex64"),
])
def test_view_of_a_scalar_keeps_its_size(old, new):
    with pytest.raises(ValueError, match="0d array is only supported if the itemsize"):
        jnp.ones((), old).view(new)


def test_operands_that_stand_for_arrays_have_their_own_say():
    class Deferred:
        def __init__(self, x):
            self.x = x

        def __getattr__(self, name):
            if not hasattr(self.x, name):
                raise AttributeError(name)
            return Deferred(getattr(self.x, name))

        __hash__ = None

        def __radd__(self, other):
            return other + self.x

    x = jnp.arange(3.0)
    assert (x + Deferred(x)).tolist() == [0, 2, 4]
    assert jax.jit(lambda x: x + Deferred(x))(x).tolist() == [0, 2, 4]


def test_reshape_takes_sizes_that_are_arrays_and_refuses_traced_ones():
    x = jnp.arange(6)
    for shape in (jnp.array([2, 3]), (jnp.array(2), 3), [np.int8(2), 3]):
        assert x.reshape(shape).shape == (2, 3)
    assert x.reshape(jnp.array(2), jnp.array(3)).shape == (2, 3)
    assert x.reshape(jnp.array(6)).shape == x.reshape(np.array(6)).shape == (6,)
    for call in (lambda n: x.reshape(n, 2), lambda n: x.reshape((n, 2)), lambda n: x.reshape([n])):
        with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
            jax.jit(call)(3)
    with pytest.raises(TypeError, match=r"of integer type, got \[2\.0, 3\]"):
        x.reshape([2.0, 3])


@pytest.mark.parametrize("run", [lambda f: f(jnp.ones(3)), lambda f: jax.jit(f)(jnp.ones(3))])
def test_elements_are_not_deleted(run):
    def without(x):
        del x[0]

    with pytest.raises(AttributeError, match=r"use x = jnp.delete\(x, i\), whose result"):
        run(without)
    assert run(lambda x: jnp.delete(x, 0)).shape == (2,)


@pytest.mark.parametrize("name", ["block_until_ready", "copy_to_host_async"])
def test_what_waits_for_arrays_is_for_results(name):
    with pytest.raises(AttributeError, match="Leave it out: call it on what the traced function"):
        jax.jit(lambda x: getattr(x, name)())(1.0)
