"""References in programs for each device, and types that say what varies."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.sharding import Mesh, NamedSharding
from pyjx.sharding import PartitionSpec as P

X = np.arange(16, dtype=np.float32)
CUT = P("i")


@pytest.fixture
def line():
    return Mesh(np.array(jax.devices()), ("i",))


@pytest.fixture
def smap(line):
    def make(f, in_specs=CUT, out_specs=CUT, **options):
        return jax.shard_map(f, mesh=line, in_specs=in_specs, out_specs=out_specs, **options)

    return make


def add_to(ref, x):
    ref[...] += x
    return ref[...] * 2


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("jit", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_a_reference_is_an_argument(line, smap, jit, check_vma):
    ref = jax.new_ref(jax.device_put(X, NamedSharding(line, P("i"))))
    out = jit(smap(add_to, (P("i"), P("i")), check_vma=check_vma))(ref, X)
    np.testing.assert_array_equal(out, 4 * X)
    np.testing.assert_array_equal(ref[...], 2 * X)
    assert ref[...].sharding.spec == P("i")


def test_a_reference_is_closed_over(smap):
    ref = jax.new_ref(jnp.zeros(3))

    def f(x):
        ref[...] += 1
        return x

    jax.jit(smap(f))(X)
    smap(f)(X)
    np.testing.assert_array_equal(ref[...], np.full(3, 2))


def test_references_around_scan_and_vmap(smap):
    def write(ref, x):
        ref[...] += x

    @jax.jit
    def total(ref, x):
        def body(_, k):
            smap(write, (P("i"), P("i")), None)(ref, x * k)
            return _, None
        lax.scan(body, None, jnp.arange(3.0))
        return ref[...]

    np.testing.assert_array_equal(total(jax.new_ref(X), X), 4 * X)

    @jax.jit
    def mapped(start, x):
        ref = jax.new_ref(start)
        return jax.vmap(smap(add_to, (P("i"), P("i"))))(ref, x), ref[...]

    outs = mapped(np.ones((2, 16), np.float32), np.stack([X, -X]))
    np.testing.assert_array_equal(outs[1], 1 + np.stack([X, -X]))
    np.testing.assert_array_equal(outs[0], 2 * outs[1])


def test_gradients_through_references(smap):
    def own(x):
        ref = jax.new_ref(jnp.zeros_like(x))
        ref[...] = jnp.sin(x)
        return ref[...] ** 2

    def given(x):
        ref = jax.new_ref(x)
        smap(lambda r: r.__setitem__(..., jnp.sin(r[...])), (P("i"),), None)(ref)
        return (ref[...] ** 2).sum()

    expected = 2 * np.sin(X) * np.cos(X)
    np.testing.assert_allclose(jax.grad(lambda x: smap(own)(x).sum())(X), expected, atol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(given))(X), expected, atol=1e-5)


def test_what_varies_is_not_written_to_what_is_the_same_on_all(smap):
    def f(ref, x):
        ref[...] += x.sum()
        return x

    with pytest.raises(ValueError, match="swap requires the value's varying manual axes to match"):
        jax.jit(smap(f, (P(), P("i"))))(jax.new_ref(X), X)
    with pytest.raises(ValueError, match="requires the value's varying manual axes to match"):
        smap(lambda x: add_to(jax.new_ref(jnp.zeros(2)), x))(X)


def test_the_same_reference_twice(smap):
    ref = jax.new_ref(X)
    with pytest.raises(ValueError, match="only one reference"):
        jax.jit(smap(lambda r, s: r.__setitem__(..., s[...]), (P("i"), P("i")), None))(ref, ref)


def test_references_are_not_returned(smap):
    words = "traced for shard_map returned a mutable array reference of type Ref.* line .*test_sha"
    with pytest.raises(ValueError, match=f"(?s){words}"):
        smap(jax.new_ref)(X)
    with pytest.raises(ValueError, match="array was passed in as the argument r"):
        smap(lambda r: (0 * X[:1], r), P(), (P("i"), P()))(jax.new_ref(X))


# -- what varies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [
    jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: jnp.full_like(x, 2),
    lambda x: jnp.full_like(x, np.float32(2)), lambda x: lax.full_like(x, 3),
    lambda x: jnp.zeros_like(x, shape=(4,)),
])
def test_what_is_made_like_a_value_varies_as_it_does(smap, make):
    found = []
    smap(lambda x: found.append(jax.typeof(make(x)).vma) or x)(X)
    assert found == [{"i"}]


def test_backward_rules_get_cotangents_that_vary_as_results_do(smap):
    @jax.custom_vjp
    def total(x):
        return lax.psum(x, "i")

    total.defvjp(lambda x: (total(x), None), lambda _, ct: (lax.pcast(ct, "i", to="varying"),))
    f = smap(lambda x: total(x * x), P("i"), P())
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(X), 2 * X)


def test_a_backward_rule_that_forgets_to_add_up_is_refused(smap):
    @jax.custom_vjp
    def scaled(w, x):
        return w * x

    scaled.defvjp(lambda w, x: (w * x, (w, x)), lambda r, ct: (ct * r[1], ct * r[0]))
    f = smap(scaled, (P(), P("i")))
    with pytest.raises(ValueError, match="manual axis types do not match"):
        jax.grad(lambda w: f(w, X).sum())(np.ones(2, np.float32))


def test_linear_calls_may_end_variation(smap):
    def f(x):
        return jax.custom_derivatives.linear_call(
            lambda _, x: lax.psum(x, "i"), lambda _, ct: lax.pcast(ct, "i", to="varying"), (), x)

    out = jax.grad(lambda x: smap(f, P("i"), P())(x).sum())(X)
    np.testing.assert_array_equal(out, np.ones(16))


def test_devices_that_choose_differently_add_up_outside_of_the_choice(smap):
    """The sum of cotangents in one branch would wait for devices that are in the other."""
    def f(w, x):
        return lax.cond(lax.axis_index("i") > 3, lambda w, x: w * x, lambda w, x: x * 0, w, x)

    def closing(w, x):
        return lax.cond(lax.axis_index("i") > 3, lambda: w * x, lambda: x * 0)

    def cast(w, x):
        return closing(lax.pcast(w, "i", to="varying"), x)

    def grad(f):
        return jax.grad(lambda w: smap(f, (P(), P("i")))(w, X).sum())(np.ones(1, np.float32))

    np.testing.assert_array_equal(grad(f), [X[8:].sum()])
    np.testing.assert_array_equal(grad(cast), [X[8:].sum()])
    with pytest.raises(ValueError, match=r"axes \('i',\) take branches .* float32\[1\]"):
        grad(closing)
