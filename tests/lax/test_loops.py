"""Loops: carries, derivatives, batches, errors."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.passes.dce import dce
from pyjx.experimental import sparse

pytestmark = [pytest.mark.gpu, pytest.mark.smoke]


def power(x, n=5):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, x))[1]


def test_carry_is_a_pytree():
    out = lax.while_loop(lambda d: d["i"] < 3, lambda d: {"i": d["i"] + 1, "v": d["v"] * 2.0},
                         {"i": 0, "v": jnp.ones(2)})
    assert int(out["i"]) == 3
    np.testing.assert_array_equal(out["v"], [8.0, 8.0])


def test_no_iteration_gives_the_start():
    assert float(lax.while_loop(lambda x: x < 0, lambda x: x + 1, 2.0)) == 2.0


def test_jaxpr_is_legal_and_closes_over_operands():
    closed = jax.make_jaxpr(power)(2.0)
    check_jaxpr(closed)
    assert closed.eqns[0].params["body_nconsts"] == 1


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_forward_derivatives(wrap):
    f = wrap(power)
    np.testing.assert_allclose(jax.jvp(f, (2.0,), (1.0,))[1], 6 * 2.0**5)
    np.testing.assert_allclose(jax.jacfwd(jax.jacfwd(f))(2.0), 30 * 2.0**4)
    np.testing.assert_allclose(jax.linearize(f, 2.0)[1](1.0), 6 * 2.0**5)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_reverse_mode_is_refused(wrap):
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work") as caught:
        jax.grad(wrap(power))(2.0)
    assert f"{__file__}:" in caught.value.__notes__[0]
    assert caught.value.__notes__[0].endswith("(power)")


@pytest.mark.parametrize("wrap", [jax.jit, jax.checkpoint])
def test_reverse_mode_is_refused_where_a_tangent_ends_in_the_loop(wrap):
    def f(x):
        body = lambda c: (c[0] + 1, jnp.zeros(3), c[2] * 2)  # noqa: E731
        _, a, b = lax.while_loop(lambda c: c[0] < 2, body, (0, x, x))
        return a.sum() + b.sum()

    x = jnp.ones(3)
    assert float(jax.jvp(wrap(f), (x,), (x,))[1]) == 12.0
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.grad(wrap(f))(x)


def test_reverse_mode_past_a_loop_without_tangents():
    def f(x):
        n = lax.while_loop(lambda i: i < 4, lambda i: i + 1, 0)
        return x * n

    assert float(jax.grad(f)(2.0)) == 4.0


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_batches(axes):
    def f(n, x):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, 1.0))[1]

    ns = np.arange(4) if axes[0] == 0 else 3
    xs = np.arange(1.0, 5.0, dtype=np.float32) if axes[1] == 0 else np.float32(2.0)
    expected = np.broadcast_to(xs**ns, (4,))
    np.testing.assert_allclose(jax.vmap(f, axes)(ns, xs), expected)
    np.testing.assert_allclose(jax.jit(jax.vmap(f, axes))(ns, xs), expected)


def test_examples_that_are_done_keep_their_values():
    f = jax.vmap(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * 3, x))
    np.testing.assert_array_equal(f(jnp.array([1, 2, 20])), [27, 18, 20])


def test_constants_of_the_condition_are_batched():
    f = jax.vmap(lambda limit: lax.while_loop(lambda v: v < limit, lambda v: v + 2, 0))
    np.testing.assert_array_equal(f(jnp.array([1, 4, 7])), [2, 4, 8])


@pytest.mark.parametrize(("cond", "body", "start", "message"), [
    (lambda x: x, lambda x: x + 1, 1, r"boolean scalar, but got output type.* \[ShapedArray\(int"),
    (lambda x: x + 1.5, lambda x: x < 3, 1, "boolean scalar"),  # the two are exchanged
    (lambda x: (x < 3,), lambda x: x + 1, 1, "boolean scalar, but got pytree"),
    (lambda x: x < 3, lambda x: (x, x), 1, "input carry x is a pytree leaf but .*tuple"),
    (lambda x: x < 3, lambda x: x + 1.0, np.int32(1), r"input carry x has type int32\[\] but"),
    (lambda s: s[1] < 3, lambda s: (s[1] + 1.0, s[0]), (0, 0),
     r"carry component s\[1\] has type int32\[\] but .* float32\[\], so the dtypes do not match"),
    (lambda d: d["a"] < 3, lambda d: {"a": d["a"]}, {"a": 0, "b": 1},
     r"2 children but .* 1 child, .* key sets: \{'b'\}"),
    (3, lambda x: x, 1, "should be callable"),
])
def test_bad_functions(cond, body, start, message):
    with pytest.raises(TypeError, match=message):
        lax.while_loop(cond, body, start)


@pytest.mark.parametrize(("body", "start", "types"), [
    (lambda x: x + 1, 0, [("int32", True)]),
    (lambda x: np.float32(1) + x, 0.0, [("float32", False)]),
    (lambda x: jnp.asarray(1, "bfloat16") + x, 0.0, [("bfloat16", False)]),
    (lambda x: x.astype("int8") + 1, 0, [("int8", False)]),
    (lambda s: (s[0] + 1.0, s[1] + np.float32(2)), (0, 0), [("float32", False)] * 2),
])
def test_weakly_typed_carries_take_the_type_that_the_body_gives(body, start, types):
    out = lax.while_loop(lambda s: jax.tree.leaves(s)[0] < 3, body, start)
    assert [(str(x.dtype), x.weak_type) for x in jax.tree.leaves(out)] == types


@pytest.mark.parametrize("result", [None, ()])
def test_a_condition_without_a_value(result):
    with pytest.raises(TypeError, match="must return a boolean scalar"):
        jax.lax.while_loop(lambda c: result, lambda c: c, 1)


def test_under_disable_jit_numbers_are_arrays():
    seen = []
    with jax.disable_jit():
        out = jax.lax.while_loop(lambda c: c < 3, lambda c: seen.append(c) or c + 1.5, 0)
        assert all(isinstance(x, jax.Array) for x in [*seen, out]) and float(out) == 3.0
        assert isinstance(jax.lax.while_loop(lambda c: False, lambda c: c, 2), jax.Array)


def test_under_disable_jit_examples_are_looped_over_together():
    """Python cannot ask each example of a batch whether to go on."""
    def count(x, **kwargs):
        return lax.while_loop(lambda c: c < 3, lambda c: c + 1, x, **kwargs)

    xs = np.array([-1, 2, 5])
    with jax.disable_jit():
        assert jax.vmap(count)(xs).tolist() == [3, 3, 5]
        assert jax.vmap(lambda x: count(x, max_steps=2))(xs).tolist() == [1, 3, 5]
        assert count(1) == 3 and count(-1, max_steps=2) == 1


def test_what_the_body_does_not_change_is_a_constant():
    def run(w):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, w))[1] * 2

    assert jax.grad(run)(2.0) == 2.0
    (eqn,) = [e for e in jax.make_jaxpr(run)(2.0).eqns if e.primitive.name == "while"]
    assert len(eqn.outvars) == 1


def test_dead_components_of_the_carry_go():
    def run(x, y):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2, jnp.sin(c[2])),
                              (0, x, y))

    closed = dce(jax.make_jaxpr(lambda x, y: run(x, y)[1])(1.0, 2.0))
    check_jaxpr(closed)
    (eqn,) = closed.eqns
    assert len(eqn.outvars) == 2 and closed.jaxpr.invars[1] not in eqn.invars
    assert "sin" not in str(closed)
    assert jax.jit(lambda x, y: run(x, y)[1])(1.0, 2.0) == 8.0
    kept = dce(jax.make_jaxpr(run)(1.0, 2.0))
    assert len(kept.eqns[0].outvars) == 3


@pytest.mark.parametrize("bounds", [(0, np.int64(2**32 + 3)), (np.int64(-2**40), 5), (0, 2**31)])
def test_bounds_beyond_the_index_are_refused(bounds):
    for call in (lax.fori_loop, jax.jit(lax.fori_loop, static_argnums=(0, 1, 2))):
        with pytest.raises(OverflowError, match=r"fori_loop: (lower|upper): .* too large to conv"):
            call(*bounds, lambda i, c: c, 0)
    with jax.enable_x64(True):
        assert int(lax.fori_loop(2**40, 2**40 + 3, lambda i, c: c + 1, 0)) == 3


def test_nodes_that_differ_in_their_metadata():
    x = sparse.BCOO.fromdense(jnp.eye(2))
    other = sparse.BCOO((x.data, x.indices), shape=x.shape)
    there, here = [rf"BCOO'> with pytree metadata \{{.*'indices_sorted': {flag}"
                   for flag in (True, False)]
    with pytest.raises(TypeError, match=f"The input carry c is a .*{there}.* but .*{here}"):
        lax.while_loop(lambda c: True, lambda c: other, x)
    with pytest.raises(TypeError, match=f"true_fun output is a .*{there}.* but .*{here}"):
        lax.cond(jnp.bool_(True), lambda: x, lambda: other)


@pytest.mark.parametrize("jitted", [False, True])
def test_errors_in_bodies_name_the_users_function(jitted):
    def body(i, total):
        return {"sum": total["sum"] + float(total["sum"] * i)}

    def element(x):
        return float(x)

    loop = lambda n: lax.fori_loop(0, n, body, {"sum": 1.0})  # noqa: E731
    words = (f"function body at {__file__}:.* for fori_loop.* depends on the values of the "
             r"arguments i and total\['sum'\]\.")
    with pytest.raises(jax.errors.ConcretizationTypeError, match=words):
        (jax.jit(loop) if jitted else loop)(3)
    words = f"function element at {__file__}:.* for map.* the value of the argument x"
    for batch_size in (None, 2):
        with pytest.raises(jax.errors.ConcretizationTypeError, match=words):
            lax.map(element, jnp.ones(3), batch_size=batch_size)


def test_under_disable_jit_bodies_do_not_change_arrays_of_the_caller():
    def step(x):
        x += 1
        return x

    def scanned(x, _):
        x += 1
        return x, x

    x = np.zeros(2, np.float32)
    with jax.disable_jit():
        last, every = jax.lax.scan(scanned, x, None, length=3)
        ends = [jax.lax.fori_loop(0, 3, lambda i, x: step(x), x),
                jax.lax.while_loop(lambda x: x[0] < 3, step, x), last]
        set_at = jax.lax.fori_loop(0, 2, lambda i, x: x.at[i].set(i + 1), x)
    assert not x.any()
    assert all((end == 3).all() for end in ends) and set_at.tolist() == [1, 2]
    assert every.tolist() == [[1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize("call", [
    lambda f: lax.fori_loop(0, 3, lambda i, c: f(c), 0.0),
    lambda f: lax.while_loop(lambda c: c < 3, f, 0.0), lambda f: lax.while_loop(f, abs, 0.0),
    lambda f: lax.cond(True, f, abs, 0.0), lambda f: lax.switch(1, [abs, f], 0.0),
])
def test_a_function_without_return_is_told_so(call):
    def forgets(c):
        c + 1.0

    with pytest.raises(TypeError, match="returns None: is a `return` missing"):
        call(forgets)
