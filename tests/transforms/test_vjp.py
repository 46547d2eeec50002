"""jvp, vjp, linearize and linear_transpose."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

pytestmark = [pytest.mark.gpu, pytest.mark.smoke]

X = np.float32([0.5, 1.0, 2.0])


def f(x):
    return {"a": x * 2, "b": (jnp.sin(x),)}


def raises(error, message):
    return pytest.raises(error, match=".*" + __import__("re").escape(message))


# -- jvp -------------------------------------------------------------------------------------------


def test_jvp():
    y, dy = jax.jvp(jnp.sin, (X,), (X,))
    np.testing.assert_allclose(y, np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(dy, np.cos(X) * X, rtol=1e-6)
    assert jax.tree.structure(jax.jvp(f, [X], [X])[1]) == jax.tree.structure(f(X))


def test_jvp_with_auxiliary_data():
    y, dy, aux = jax.jvp(lambda x: (x * 2, [x, "a"]), (3.0,), (1.0,), has_aux=True)
    assert (float(y), float(dy), aux) == (6.0, 2.0, [3.0, "a"])


def test_jvp_of_integers_and_constants():
    zero = np.zeros((), jax.float0)
    y, dy = jax.jvp(lambda x: x * 2.0, (np.int32(3),), (zero,))
    assert (float(y), float(dy)) == (6.0, 0.0)
    assert jax.jvp(lambda x: x * 2, (np.int32(3),), (zero,))[1].dtype == jax.float0
    assert float(jax.jvp(lambda x: 2.0, (3.0,), (1.0,))[1]) == 0.0
    assert jax.jvp(lambda x, y: x, (3.0, None), (1.0, None))[0] == 3.0


DTYPES = ("primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case "
          "of int/bool primal dtype the tangent dtype must be float0. Got primal dtype {} and so "
          "expected tangent dtype {}, but got tangent dtype {} instead.")


@pytest.mark.parametrize(("primals", "tangents", "error", "message"), [
    (1.0, 1.0, TypeError, "primal and tangent arguments to jax.jvp must be tuples or lists; "
     "found float and float."),
    ((1.0,), [1.0], TypeError, "must have the same tree structure; primals have tree structure "
     "PyTreeDef((*,)) whereas tangents have tree structure PyTreeDef([*])."),
    ((1.0,), (1,), TypeError, DTYPES.format("float32", "float32", "int32")),
    ((1,), (1,), TypeError, DTYPES.format("int32", "[('float0', 'V')]", "int32")),
    ((X,), (X.astype("float16"),), TypeError, DTYPES.format("float32", "float32", "float16")),
    ((X,), (np.ones(4, "float32"),), ValueError, "jvp called with different primal and tangent "
     "shapes; Got primal shape (3,) and tangent shape as (4,)"),
    (("a",), (1.0,), TypeError, "Argument 'a' of type <class 'str'> is not a valid JAX type"),
])
def test_jvp_errors(primals, tangents, error, message):
    with raises(error, message):
        jax.jvp(lambda x: x, primals, tangents)


def test_jvp_of_what_is_no_function():
    with raises(TypeError, "Expected a callable value, got 3"):
        jax.jvp(3, (1.0,), (1.0,))


# -- vjp -------------------------------------------------------------------------------------------


def test_vjp():
    y, pull_back = jax.vjp(f, X)
    (ct,) = pull_back({"a": X, "b": (X,)})
    np.testing.assert_allclose(ct, 2 * X + np.cos(X) * X, rtol=1e-6)
    assert jax.tree.structure(y) == jax.tree.structure(f(X))


def test_vjp_of_no_arguments_and_of_unused_ones():
    assert jax.vjp(lambda: 1.0)[1](1.0) == ()
    a, b = jax.vjp(lambda a, b: a * 1.0, 1.0, X)[1](1.0)
    assert float(a) == 1.0
    assert b.tolist() == [0.0, 0.0, 0.0]


def test_vjp_of_integers():
    zero = np.zeros((), jax.float0)
    assert jax.vjp(lambda x: x * 2, 1)[1](zero)[0].dtype == jax.float0
    assert jax.vjp(lambda x: x * 2.0, 1)[1](1.0)[0].dtype == jax.float0


def test_vjp_with_auxiliary_data():
    y, pull_back, aux = jax.vjp(lambda x: (x * 2, {"x": x}), 3.0, has_aux=True)
    assert (float(y), aux, float(pull_back(1.0)[0])) == (6.0, {"x": 3.0}, 2.0)


def test_the_function_is_a_pytree():
    pull_back = jax.vjp(lambda x, y: x * y, 3.0, 5.0)[1]
    assert sorted(map(float, jax.tree.leaves(pull_back))) == [3.0, 5.0]
    doubled = jax.tree.map(lambda x: 2 * x, pull_back)
    assert [float(ct) for ct in doubled(1.0)] == [10.0, 6.0]


def test_the_function_crosses_jit_without_new_traces():
    traces = []

    @jax.jit
    def apply(pull_back, ct):
        traces.append(1)
        return pull_back(ct)

    def g(x):
        return jnp.sin(x) * x
    for x in (1.0, 2.0, 3.0):
        pull_back = jax.jit(lambda x: jax.vjp(g, x)[1])(x) if x == 2.0 else jax.vjp(g, x)[1]
        expected = np.sin(x) + x * np.cos(x)
        assert float(apply(pull_back, 1.0)[0]) == pytest.approx(expected, rel=1e-5)
    assert len(traces) <= 2


def test_arguments_may_be_left_out():
    pull_back = jax.vjp(lambda x, y: x * y, 3.0, 5.0, saveable_args=(True, False))[1]
    assert repr(pull_back.args_res) == "[3.0, NotSaveable()]"
    with raises(ValueError, "args_res has NotSaveable() entries"):
        pull_back(1.0)
    pull_back.args_res[1] = 5.0
    assert [float(ct) for ct in pull_back(1.0)] == [5.0, 3.0]


def test_some_arguments_only():
    _y, pull_back = jax.vjp(lambda x, y: (x * y, y), 3.0, 5.0, in_nzs=(True, False))
    assert pull_back.out_nzs == (True, False)
    assert [float(ct) for ct in pull_back((1.0, 1.0))] == [5.0, 0.0]


JAX_TYPE = "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got {}, but " \
    "expected float32[3] because the corresponding output of the differentiated function had JAX " \
    "type float32[3]"


@pytest.mark.parametrize(("ct", "error", "message"), [
    ((X, X), ValueError, "  * out was a <class 'dict'> in the original output, but a <class "
     "'tuple'> here, so their Python types differ."),
    ({"a": None, "b": (X,)}, ValueError, "  * out['a'] was a pytree leaf in the original output, "
     "but a <class 'NoneType'> here, so their Python types differ."),
    ({"a": X, "b": (X, X)}, ValueError, "out['b']"),
    ({"a": X, "c": (X,)}, ValueError, "with keys ('a', 'c') here"),
    ({"a": X[:2], "b": (X,)}, ValueError, JAX_TYPE.format("float32[2]")),
    ({"a": X.astype("int32"), "b": (X,)}, ValueError, JAX_TYPE.format("int32[3]")),
    ({"a": "x", "b": (X,)}, TypeError, "Argument 'x' of type <class 'str'> is not a valid JAX"),
])
def test_cotangents_of_another_type(ct, error, message):
    pull_back = jax.vjp(f, X)[1]
    with raises(error, message):
        pull_back(ct)


def test_cotangents_must_not_be_splatted():
    with raises(TypeError, "The function returned by `jax.vjp` applied to f was called with 2 "
                "arguments, but functions returned by `jax.vjp` must be called with a single"):
        jax.vjp(f, X)[1](X, X)


# -- linearize -------------------------------------------------------------------------------------


def test_linearize():
    y, f_jvp = jax.linearize(f, X)
    assert jax.tree.structure(y) == jax.tree.structure(f(X))
    np.testing.assert_allclose(f_jvp(X)["b"][0], np.cos(X) * X, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(f_jvp)(np.eye(3, dtype="float32"))["a"], 2 * np.eye(3))
    np.testing.assert_allclose(jax.jit(lambda g, t: g(t))(f_jvp, X)["a"], 2 * X)


def test_the_program_of_a_linearized_function():
    """As of the partial that JAX gives: func(*args, *tangents), and func's first argument."""
    _, f_jvp = jax.linearize(lambda d, n: jnp.sin(d["a"]) * n, {"a": 1.0}, 3)
    none = np.zeros((), jax.dtypes.float0)
    assert [np.shape(x) for x in f_jvp.args] == [()]  # the cosine
    assert f_jvp.func(*f_jvp.args, {"a": 2.0}, none) == f_jvp({"a": 2.0}, none)
    text = str(f_jvp.func.args[0])
    assert text.count(" mul ") == 2 and " sin " not in text and " cos " not in text
    policy = jax.checkpoint_policies.everything_saveable
    for f, sines in ((jnp.sin, 0), (lambda x: jnp.sin(jnp.sin(x)), 1)):
        text = str(jax.linearize(jax.checkpoint(f), 1.0)[1].func.args[0])
        assert text.count(" sin ") == sines and text.count(" cos ") == sines + 1
        text = str(jax.linearize(jax.checkpoint(f, policy=policy), 1.0)[1].func.args[0])
        assert " sin " not in text and " cos " not in text


def test_linearize_does_not_run_the_function_again():
    runs = []

    def g(x):
        runs.append(1)
        return x * x

    f_jvp = jax.linearize(g, 3.0)[1]
    assert [float(f_jvp(t)) for t in (1.0, 2.0)] == [6.0, 12.0]
    assert len(runs) == 1


@pytest.mark.parametrize(("tangents", "error", "message"), [
    (((X,),), TypeError, "expected PyTreeDef((*,)), got PyTreeDef(((*,),))"),
    ((X, X), TypeError, "expected PyTreeDef((*,)), got PyTreeDef((*, *))"),
    ((X[:2],), ValueError, "linearized function called on tangent values inconsistent with the "
     "original primal values:\nGot tangent aval float32[2] for primal aval float32[3] but "
     "expected float32[3]."),
    ((X.astype("int32"),), ValueError, "Got tangent aval int32[3] for primal aval float32[3]"),
])
def test_linearize_errors(tangents, error, message):
    f_jvp = jax.linearize(f, X)[1]
    with raises(error, message):
        f_jvp(*tangents)


# -- linear_transpose ------------------------------------------------------------------------------


def test_linear_transpose():
    a = np.arange(6, dtype="float32").reshape(2, 3)
    (ct,) = jax.linear_transpose(lambda x: a @ x, X)(np.float32([1, 10]))
    np.testing.assert_allclose(ct, np.float32([1, 10]) @ a)


class Type:
    shape = (3,)
    dtype = np.dtype("float32")


def test_linear_transpose_needs_only_types():
    x_ct, y_ct = jax.linear_transpose(lambda x, y: {"o": x * 2.0 + y}, Type(), Type())({"o": X})
    np.testing.assert_allclose(x_ct, 2 * X)
    np.testing.assert_allclose(y_ct, X)


def test_linear_transpose_of_a_choice_whose_program_is_known():
    for _ in range(20):
        jax.lax.select(jnp.ones(3, bool), jnp.ones(3), jnp.zeros(3))
    with pytest.raises(TypeError, match="'select_n' is not linear in one of its operands"):
        jax.linear_transpose(lambda x: jnp.where(x > 0, x, 2 * x), X)(jnp.ones(3))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize(("fun", "message"), [
    (lambda x: x * x, "both operands of 'mul' depend on the arguments"),
    (lambda x: jnp.dot(x, x), "both operands of 'dot_general' depend on the arguments"),
    (lambda x: 1 / x, "'div' is not linear in one of its operands"),
    (lambda x: jnp.where(x > 0, x, 2 * x), "'select_n' is not linear in one of its operands"),
    (lambda x: jax.lax.fori_loop(0, x[0].astype(int), lambda _, x: 2 * x, x),
     "the condition of a while_loop depends on its arguments"),
])
def test_linear_transpose_of_what_is_not_linear(fun, message, wrap):
    with pytest.raises(TypeError, match=message):
        jax.linear_transpose(wrap(fun), X)(fun(X))


def test_what_is_not_linear_is_told_as_it_was_written():
    with pytest.raises(NotImplementedError, match=r"'integer_pow' is not linear.*test_vjp.py:\d+"):
        jax.linear_transpose(lambda x: 3 * x + x ** 2, X)(X)
    with pytest.raises(TypeError, match="both operands of 'mul'") as raised:
        jax.linear_transpose(lambda x: 3 * x + x * x, X)(X)
    assert "test_vjp.py:" in raised.value.__notes__[0]


def test_linear_transpose_of_integers():
    assert int(jax.linear_transpose(lambda x: x * 2, 1)(3)[0]) == 6


@pytest.mark.parametrize(("fun", "x", "ct", "error", "message"), [
    (jnp.sin, 1.0, 1.0, NotImplementedError,
     "Transpose rule (for reverse-mode differentiation) for 'sin' not implemented: 'sin' is not "
     "linear. It was applied at "),
    (lambda x: jnp.sin(x), 1.0, 1.0, NotImplementedError, "test_vjp.py"),
    (lambda x: (x, x), 1.0, 1.0, TypeError, "cotangent tree does not match function output, "
     "expected PyTreeDef((*, *)) but got PyTreeDef(*)"),
    (lambda x: x, X, 3.0, TypeError, "cotangent type does not match function output, expected "
     "(ShapedArray(float32[3]),) but got [3.0]"),
    (lambda x: x, True, True, TypeError, "linear_transpose only supports [float, complex, or "
     "float0] -> [float, complex, or float0], and integer -> integer functions, but got "
     "[dtype('bool')] -> [dtype('bool')]."),
    (lambda x: x, "a", 1.0, TypeError, "is not a valid JAX type"),
])
def test_linear_transpose_errors(fun, x, ct, error, message):
    with raises(error, message):
        jax.linear_transpose(fun, x)(ct)


def test_the_line_of_an_operation_without_a_rule_is_said_once():
    with pytest.raises(NotImplementedError) as caught:
        jax.linear_transpose(lambda x: jnp.sin(x), 1.0)(1.0)
    assert "\n".join([str(caught.value), *caught.value.__notes__]).count("test_vjp.py") == 1


def test_a_long_operation_is_one_step_of_an_eager_derivative():
    x = jnp.array([1.0, 2.0, 4.0])
    _, pull_back = jax.vjp(jnp.var, x)
    assert [primitive.name for primitive, *_ in pull_back._program.eqns] == ["jit"]
    np.testing.assert_allclose(pull_back(1.0)[0], jax.jit(jax.grad(jnp.var))(x), rtol=1e-6)
    batch = jax.vmap(jnp.var)(jnp.stack([x, 2 * x]))
    np.testing.assert_allclose(batch, [np.var(x), np.var(2 * x)], rtol=1e-6)


@pytest.mark.parametrize("transform", [jax.vmap, lambda f: jax.vmap(jax.jit(f))],
                         ids=["plain", "jit"])
def test_scalars_are_part_of_the_functions_that_are_passed_on(transform):
    """They go beside operands of any shape, which arrays do not."""
    def pulled(x, t):
        _, pull_back = jax.vjp(lambda x: jnp.sin(2.5 * x) * 3.0, x)
        _, push = jax.linearize(lambda x: jnp.sin(2.5 * x) * 3.0, x)
        return jax.jit(lambda f, g, t: (f(t)[0], g(t)))(pull_back, push, t)

    x = jnp.ones(3)
    expected = 7.5 * np.cos(2.5) * np.eye(3)
    for in_axes in ((None, 0), (0, 0)):
        xs = x if in_axes[0] is None else jnp.ones((3, 3))
        for out in transform(jax.vmap(pulled, in_axes))(xs[None], jnp.eye(3)[None]):
            np.testing.assert_allclose(out[0], expected, rtol=1e-6, atol=1e-7)
    pull_back = jax.vjp(lambda x: 2.5 * x, x)[1]
    assert pull_back.opaque_residuals == []
    assert jax.tree.leaves(pull_back) == []


def test_arguments_are_taken_out_and_put_back():
    pull_back = jax.vjp(lambda x, y: x * y, jnp.float32(2), jnp.float32(5))[1]
    pull_back.args_res = [None, None]
    assert pull_back.args_res == [None, None]
    with raises(ValueError, "args_res has NotSaveable"):
        pull_back(1.0)
    pull_back.args_res = [jnp.float32(3), jnp.float32(7)]
    assert [float(ct) for ct in pull_back(1.0)] == [7.0, 3.0]
    other = pull_back.replace(args_res=[1.0, 2.0])
    assert [float(ct) for ct in other(1.0)] == [2.0, 1.0]
    with raises(TypeError, "'fun'"):
        pull_back.replace(fun=None)

    @jax.jit
    def forward():
        pull_back = jax.vjp(lambda t, u: t["u"] * t["v"] * u, {"u": 2.0, "v": 5.0}, 3.0)[1]
        given = pull_back.args_res
        pull_back.args_res = [None, None]
        return pull_back, given

    pull_back, given = forward()
    with raises(ValueError, "one for each argument, got 1"):
        pull_back.args_res = [None]
    pull_back.args_res = [{"u": 2.0}, 3.0]
    with raises(ValueError, "an argument of the structure"):
        pull_back(1.0)
    pull_back.args_res = given
    cts = jax.jit(lambda f: f(1.0))(pull_back)
    assert jax.tree.map(float, cts) == ({"u": 15.0, "v": 6.0}, 10.0)


def test_the_program_that_is_transposed():
    pull_back = jax.vjp(lambda x, n: (x * x * n, x), jnp.float32(3), 2)[1]
    assert [len(pull_back.jaxpr.outvars), pull_back.structured_residuals] == [2, []]
    assert "mul" in str(pull_back.jaxpr)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_a_transposed_function_is_a_pytree(wrap):
    traces = []

    @jax.jit
    def apply(transposed, ct):
        traces.append(1)
        return transposed(ct)[0]

    def made(w):
        return jax.linear_transpose(lambda x: w * x, jnp.ones(3))

    for w in (np.arange(3.0), np.ones(3)):
        transposed = wrap(made)(jnp.asarray(w))
        assert isinstance(transposed, jax.tree_util.Partial)
        np.testing.assert_array_equal(apply(transposed, jnp.ones(3)), w)
    assert len(traces) == 1
    rows = wrap(jax.vmap(made))(jnp.eye(3))
    np.testing.assert_array_equal(jax.vmap(lambda f: f(jnp.ones(3))[0])(rows), np.eye(3))
    np.testing.assert_array_equal(
        jax.lax.scan(lambda f, ct: (f, f(ct)[0]), transposed, jnp.eye(3))[1], np.eye(3))


def test_what_stands_for_gradients_leaves_transformed_functions():
    pull_back = jax.vjp(lambda x, y: x * y, 2.0, 3.0)[1]

    def pulled(f):
        return f.with_refs(jax.ad.DontWant(), jax.ad.GradValue())(1.0)

    for out in (pulled(pull_back), jax.jit(pulled)(pull_back)):
        assert out == (jax.ad.DidntWant(), 2.0)
        assert jax.tree.leaves(out) == [2.0]
    assert jax.jit(lambda x: x)(jax.ad.GradRef()) == jax.ad.GradRef()


def test_what_makes_the_program_of_a_pull_back_may_be_replaced():
    calls = []
    _, pull_back = jax.vjp(lambda x, y: x * y, 2.0, 3.0)
    made = pull_back.fun

    def counted(*values):
        calls.append(1)
        return made(*values)

    pull_back.fun = counted
    assert [float(ct) for ct in pull_back(1.0)] == [3.0, 2.0] and calls == [1]
    again = jax.tree.unflatten(jax.tree.structure(pull_back), jax.tree.leaves(pull_back))
    assert [float(ct) for ct in again(1.0)] == [3.0, 2.0] and calls == [1]


def passing_on():
    @jax.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    return [lambda x: x, f]


@pytest.mark.parametrize("f", passing_on(), ids=["function", "custom_jvp"])
@pytest.mark.parametrize("value", [1.5, np.float32(1.5), 2j])
def test_scalars_that_are_passed_on_as_tangents_stay_what_they_are(f, value):
    assert [type(x) for x in jax.jvp(f, (value,), (value,))] == [type(value)] * 2
    out, tangent, aux = jax.jvp(lambda x: (f(x), 3), (value,), (value,), has_aux=True)
    assert [type(x) for x in (out, tangent, aux)] == [type(value)] * 2 + [int]
    assert type(jax.linearize(f, value)[1](value)) is type(value)
    assert type(jax.vjp(f, value)[1](value)[0]) is type(value)
    assert type(jax.linear_transpose(f, value)(value)[0]) is type(value)
    # What the library makes is an array: a zero, and what scalars were computed to.
    assert isinstance(jax.vjp(lambda x, y: x, value, value)[1](value)[1], jax.Array)
    assert isinstance(jax.jvp(lambda x: 2 * f(x), (value,), (value,))[1], jax.Array)
    assert isinstance(jax.grad(lambda x: f(x).real)(1.5), jax.Array)
