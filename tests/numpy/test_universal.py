"""Universal functions as objects, `frompyfunc` and `vectorize`, against NumPy's."""

import copy
import functools
import inspect
import pickle

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

UFUNCS = {
    "add": 0, "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0, "logaddexp": -np.inf,
    "logaddexp2": -np.inf, "logical_and": True, "logical_or": False, "logical_xor": False,
    "maximum": None, "minimum": None, "multiply": 1, "negative": None, "subtract": None,
}
BINARY = [name for name in UFUNCS if name != "negative"]
rng = np.random.default_rng(0)
x = rng.standard_normal((3, 4, 2)).astype(np.float32)
i = rng.integers(-9, 9, (3, 4, 2)).astype(np.int32)
mask = x > -0.5


def operand(name):
    return i if name.startswith("bitwise") else x


def close(got, want):
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(want, np.float64),
                               rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "identity"), UFUNCS.items())
def test_attributes(name, identity):
    function = getattr(jnp, name)
    assert isinstance(function, jnp.ufunc)
    assert repr(function) == f"<jnp.ufunc '{name}'>"
    assert function.identity == identity
    nin = 1 if name == "negative" else 2
    assert (function.nin, function.nout, function.nargs) == (nin, 1, nin)
    assert function.__name__ == name and ">>> " in function.__doc__
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function
    assert str(inspect.signature(function)).startswith("(*args")
    wrapped = functools.wraps(function)(lambda *args: function(*args))
    assert wrapped.__name__ == name


def test_the_call_is_that_of_the_compiled_callable():
    """No Python stands between a call and C++."""
    assert type(jnp.add.__call__) is type(jax.jit(lambda x: x))
    assert type(jnp.ufunc.__call__).__name__ == "member_descriptor"


@pytest.mark.parametrize("name", BINARY)
def test_reduce(name):
    function, reference, a = getattr(jnp, name), getattr(np, name), operand(name)
    close(function.reduce(a), reference.reduce(a))
    close(function.reduce(a, axis=-1, keepdims=True), reference.reduce(a, axis=-1, keepdims=True))
    close(jax.jit(function.reduce)(a), reference.reduce(a))
    initial = 3 if name.startswith("bitwise") else 0.5
    for axis in (1, None, (0, 2)):
        if name == "subtract" and axis != 1:
            continue  # NumPy: not reorderable
        close(function.reduce(a, axis=axis, initial=initial, where=mask),
              reference.reduce(a, axis=axis, initial=initial, where=mask))
    if function.identity is not None:
        close(function.reduce(a, where=mask), reference.reduce(a, where=mask))
        assert function.reduce(jnp.zeros(0, a.dtype)).item() == reference.reduce(
            np.zeros(0, a.dtype))
    else:
        with pytest.raises(ValueError, match="does not have an identity, so to use a where mask"):
            function.reduce(a, where=mask)
        with pytest.raises(ValueError, match="zero-size array to reduction operation"):
            function.reduce(jnp.zeros(0))


def test_dtypes_of_reductions():
    b = jnp.array([True, False, True])
    assert jnp.add.reduce(b).dtype == "int32" and jnp.add.reduce(b).item() == 2
    assert jnp.multiply.reduce(b).dtype == "int32"
    assert jnp.add.reduce(x, dtype="int32").dtype == "int32"
    assert jnp.bitwise_and.reduce(i, dtype="int8").dtype == "int8"
    assert jnp.logical_and.reduce(x).dtype == bool
    assert jnp.maximum.reduce(jnp.ones(3, "bfloat16")).dtype == jnp.bfloat16
    assert jnp.maximum.accumulate(b).tolist() == [True, True, True]


@pytest.mark.parametrize("name", BINARY)
def test_accumulate(name):
    function, reference, a = getattr(jnp, name), getattr(np, name), operand(name)
    for axis in (0, 1, -1):
        close(function.accumulate(a, axis), reference.accumulate(a, axis))
    close(jax.jit(function.accumulate)(a), reference.accumulate(a))
    assert function.accumulate(jnp.zeros((0, 2), a.dtype)).shape == (0, 2)
    with pytest.raises(ValueError, match="axis 5 is out of bounds"):
        function.accumulate(a, 5)


@pytest.mark.parametrize("name", BINARY)
def test_at(name):
    function, reference, a = getattr(jnp, name), getattr(np, name), operand(name)
    second = 3 if name.startswith("bitwise") else 0.5
    for index in (0, (0, 1), np.array([0, 0, 2]), (slice(None), np.array([1, 1]))):
        if name.startswith("logical"):
            want = (a != 0).copy()
            reference.at(want, index, True)
            got = function.at(a != 0, index, True, inplace=False)
        else:
            want = a.copy()
            reference.at(want, index, second)
            got = function.at(a, index, second, inplace=False)
        close(got, want)
        assert got.dtype == want.dtype
    with pytest.raises(NotImplementedError, match="Because JAX arrays are immutable"):
        function.at(a, 0, 1)
    with pytest.raises(TypeError, match="b is for functions of two numbers, which need it"):
        function.at(a, 0, inplace=False)


def test_at_of_one_operand():
    want = x.copy()
    np.negative.at(want, np.array([0, 0, 1]))
    close(jnp.negative.at(x, np.array([0, 0, 1]), inplace=False), want)
    out_of_bounds = jnp.subtract.at(jnp.ones(2), jnp.array([5]), 1.0, inplace=False)
    assert out_of_bounds.tolist() == [1.0, 1.0]
    assert jnp.logaddexp.at(jnp.ones(2), jnp.array([5]), 1.0, inplace=False).tolist() == [1, 1]


@pytest.mark.parametrize("name", ["add", "maximum", "minimum", "subtract", "bitwise_and"])
def test_weak_types_of_methods(name):
    a, function = jnp.broadcast_to(3, (4,)), getattr(jnp, name)
    assert a.weak_type
    assert not function.accumulate(a).weak_type and not function.reduce(a).weak_type
    assert function.reduceat(a, np.array([0, 2])).weak_type
    assert not jnp.logaddexp.accumulate(1.0 * a).weak_type
    assert jnp.logaddexp.reduceat(1.0 * a, np.array([0, 2])).weak_type


@pytest.mark.parametrize("name", BINARY)
def test_reduceat_and_outer(name):
    function, reference, a = getattr(jnp, name), getattr(np, name), operand(name)
    for axis, indices in ((0, [0, 2, 1]), (1, [0, 0, 3, 1]), (2, [1])):
        close(function.reduceat(a, np.array(indices), axis),
              reference.reduceat(a, indices, axis))
    close(function.outer(a[0, 0], a[0]), reference.outer(a[0, 0], a[0]))
    close(jax.jit(function.outer)(a[0, 0], a[0]), reference.outer(a[0, 0], a[0]))
    with pytest.raises(ValueError, match="indices must be one-dimensional"):
        function.reduceat(a, np.array([[0]]))
    with pytest.raises(TypeError, match="requires ndarray or scalar arguments"):
        function.outer(a, [1])


def test_derivatives_of_reductions():
    for name in ("logaddexp", "logaddexp2"):
        gradient = jax.grad(lambda v, name=name: getattr(jnp, name).reduce(v))(x[:, 0, 0])
        assert abs(gradient.sum().item() - 1) < 1e-6
    masked = jax.grad(lambda v: jnp.logaddexp.reduce(v, where=v > 10))(jnp.ones(2))
    assert not jnp.isnan(masked).any()
    assert jax.grad(jnp.subtract.reduce)(jnp.ones(3)).tolist() == [1, -1, -1]
    batched = jax.vmap(jnp.subtract.reduce)(x)
    close(batched, np.stack([np.subtract.reduce(v) for v in x]))


def test_frompyfunc():
    function = jnp.frompyfunc(lambda a, b: a + 2 * b, 2, 1, identity=0)
    reference = np.frompyfunc(lambda a, b: a + 2 * b, 2, 1)
    assert repr(function) == "<jnp.ufunc '<lambda>'>"
    close(function(x, x[0]), x + 2 * x[0])
    assert function(3, 4).dtype == "int32"
    close(function.reduce(i, initial=0), reference.reduce(i, initial=0))
    close(function.accumulate(i, 1), reference.accumulate(i, 1))
    close(function.outer(i[0, 0], i[0, 0]), reference.outer(i[0, 0], i[0, 0]))
    assert jax.make_jaxpr(function)(1.0, 2.0).eqns[-1].primitive.name == "add"
    pair = jnp.frompyfunc(lambda a: (a, -a), 1, 2)
    assert [part.tolist() for part in pair(jnp.arange(2))] == [[0, 1], [0, -1]]
    for method in ("reduce", "accumulate", "outer", "reduceat"):
        arguments = (jnp.ones(2),) * (2 if method in ("outer", "reduceat") else 1)
        with pytest.raises(ValueError, match=f"{method} only supported for binary ufuncs"):
            getattr(pair, method)(*arguments)
    assert jnp.frompyfunc(max, 2, 1) == jnp.frompyfunc(max, 2, 1) != jnp.frompyfunc(min, 2, 1)
    assert pickle.loads(pickle.dumps(jnp.frompyfunc(max, 2, 1))) == jnp.frompyfunc(max, 2, 1)
    with pytest.raises(TypeError, match="func must be a function"):
        jnp.frompyfunc(3, 1, 1)
    with pytest.raises(TypeError):
        jnp.frompyfunc(abs, 1.5, 1)


def test_out_and_where():
    assert jnp.add(1, 2, out=None, where=None).item() == 3
    with pytest.raises(NotImplementedError, match=r"out argument of <jnp\.ufunc 'add'>"):
        jnp.add(1, 2, out=x)
    with pytest.raises(NotImplementedError, match=r"where argument of <jnp\.ufunc 'maximum'>"):
        jnp.maximum(1, 2, where=x)
    with pytest.raises(NotImplementedError, match=r"out argument of add.accumulate\(\)"):
        jnp.add.accumulate(x, out=x)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        jnp.add(1)


def test_functions_that_take_their_argument_by_keyword():
    assert jnp.trunc(x=1.5) == 1 and jnp.isreal(x=1.5) and not jnp.iscomplex(x=1.5)


# -- vectorize -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shapes", "want"), [
    (((2, 3), (3,)), (2,)), (((5, 2, 3), (3,)), (5, 2)), (((5, 1, 2, 3), (4, 3)), (5, 4, 2)),
    (((1, 2, 3), (0, 3)), (0, 2)), (((6, 1, 2, 3), (1, 7, 3)), (6, 7, 2)),
])
def test_signatures(shapes, want):
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    function = jnp.vectorize(lambda m, v: m @ v, signature="(m,n),(n)->(m)")
    reference = np.einsum("...mn,...n->...m", a, b)
    assert reference.shape == want
    close(function(a, b), reference)
    close(jax.jit(function)(a, b), reference)


def test_vectorize_over_scalars():
    calls = []

    @jnp.vectorize
    def function(a, b):
        calls.append((a.shape, b.shape))
        return a + b, {"product": a * b}

    total, parts = function(x, x[:, :1])
    assert calls == [((), ())]
    close(total, x + x[:, :1])
    close(parts["product"], x * x[:, :1])
    close(jnp.vectorize(lambda a, b: a * b)([1.0, 2.0], 3.0), np.array([3.0, 6.0]))
    close(jax.grad(lambda a: jnp.sum(function(a, 2.0)[1]["product"]))(x), np.full(x.shape, 2.0))


def test_excluded_arguments():
    def function(a, b, c=1):
        return a.sum() + b + c

    close(jnp.vectorize(function, excluded={1, "c"})(jnp.ones(2), 2.0, c=3), np.array([6.0, 6.0]))
    rows = jnp.vectorize(function, excluded={1}, signature="(n)->()")
    close(rows(jnp.ones((2, 3)), 2.0), np.array([6.0, 6.0]))
    named = jnp.vectorize(lambda a, mode: a if mode == "same" else -a, excluded={1})
    assert named(jnp.ones(2), "other").tolist() == [-1, -1]
    assert jnp.vectorize(lambda a, b=None: a)(jnp.ones(2), None).tolist() == [1, 1]


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: jnp.vectorize(abs, excluded={1.5}), TypeError,
     "jax.numpy.vectorize can only exclude integer or string arguments, but excluded={1.5}"),
    (lambda: jnp.vectorize(abs, excluded={-1}), ValueError, "contains negative numbers"),
    (lambda: jnp.vectorize(abs, signature="(n)->(n")(x), ValueError,
     "not a valid gufunc signature"),
    (lambda: jnp.vectorize(abs, signature="(n),(n)->()")(x), TypeError,
     "wrong number of positional arguments: expected 2, got 1 on vectorized function with"),
    (lambda: jnp.vectorize(abs, signature="(n,m)->()")(jnp.ones(3)), ValueError,
     "does not have enough dimensions for all core dimensions"),
    (lambda: jnp.vectorize(jnp.add, signature="(n),(n)->(n)")(jnp.ones(3), jnp.ones(2)), ValueError,
     "inconsistent size for core dimension 'n': 2 vs 3"),
    (lambda: jnp.vectorize(lambda a: (a, a), signature="(n)->(n)")(x), TypeError,
     "wrong number of output arguments: expected 1, got 2"),
    (lambda: jnp.vectorize(lambda a: a[None], signature="(n)->(n)")(x), ValueError,
     "does not match core dimensions"),
    (lambda: jnp.vectorize(lambda a: a[:1], signature="(n)->(n)")(x), ValueError,
     "inconsistent size for core dimension 'n': 1 vs 2"),
    (lambda: jnp.vectorize(jnp.add)(x, jnp.ones(5)), ValueError,
     "Incompatible shapes for broadcasting"),
    (lambda: jnp.vectorize(lambda a, b: a)(x, b=x), TypeError, "pass it by position"),
])
def test_errors_of_vectorize(call, error, message):
    with pytest.raises(error, match=message):
        call()
