"""References under derivatives and batching."""

import inspect

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core import source_info


def ref_of(*values):
    return jax.new_ref(jnp.array(values, jnp.float32))


# -- functions that use references inside ----------------------------------------------------------


def straight(x):
    total = jax.new_ref(jnp.zeros(3))
    total[...] += x
    total[0] = jnp.sin(x[0]) * total[1]
    jax.ref.addupdate(total, jnp.array([1, 1]), x[:2] ** 2)
    old = jax.ref.swap(total, slice(0, 3, 2), x[1:])
    return (total[...] * jnp.arange(1.0, 4.0)).sum() + (old ** 2).sum()


def straight_values(x):
    total = jnp.zeros(3) + x
    total = total.at[0].set(jnp.sin(x[0]) * total[1])
    total = total.at[jnp.array([1, 1])].add(x[:2] ** 2)
    old = total[::2]
    total = total.at[::2].set(x[1:])
    return (total * jnp.arange(1.0, 4.0)).sum() + (old ** 2).sum()


def looping(x):
    ref = jax.new_ref(x)

    def body(i, c):
        ref[i] = jnp.sin(ref[i]) * ref[0]
        return c * ref[i]

    return lax.fori_loop(0, 3, body, 1.0) + ref[...].sum()


def looping_values(x):
    c = 1.0
    for i in range(3):
        x = x.at[i].set(jnp.sin(x[i]) * x[0])
        c = c * x[i]
    return c + x.sum()


def branching(x):
    ref = jax.new_ref(x)

    def write():
        ref[0] = jnp.sin(ref[0]) * ref[1]
        return ref[2]

    y = lax.cond(x[0] > 0, write, lambda: ref[1] ** 2)
    return y + (ref[...] ** 2).sum()


def branching_values(x):
    y = jnp.where(x[0] > 0, x[2], x[1] ** 2)
    x = jnp.where(x[0] > 0, x.at[0].set(jnp.sin(x[0]) * x[1]), x)
    return y + (x ** 2).sum()


def calling(x):
    ref = jax.new_ref(x)
    jax.jit(lambda r, y: r.at[1].set(y * r[0]))(ref, x[2])
    jax.checkpoint(lambda r: r.at[2].set(jnp.exp(r[1])))(ref)
    return (jax.freeze(ref) ** 2).sum()


def calling_values(x):
    x = x.at[1].set(x[2] * x[0])
    return (x.at[2].set(jnp.exp(x[1])) ** 2).sum()


PAIRS = [(straight, straight_values), (looping, looping_values), (branching, branching_values),
         (calling, calling_values)]
POINTS = [np.array([0.3, 0.7, 1.2], np.float32), np.array([-0.3, 0.7, 1.2], np.float32)]


@pytest.mark.parametrize(("f", "plain"), PAIRS)
@pytest.mark.parametrize("x", POINTS, ids=["positive", "negative"])
@pytest.mark.parametrize("transform", [
    lambda f: f, jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.grad(jax.jit(f)),
    jax.jacfwd, jax.hessian, lambda f: jax.jacfwd(jax.jacfwd(f)),
    lambda f: jax.grad(jax.checkpoint(f)),
    lambda f: lambda x: jax.linearize(f, x)[1](jnp.ones(3)),
    lambda f: lambda x: jax.vmap(f)(jnp.stack([x, -x])),
    lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, -x])),
    lambda f: lambda x: jax.grad(lambda y: jax.vmap(f)(y).sum())(jnp.stack([x, 2 * x])),
    lambda f: lambda x: jax.jit(jax.vmap(jax.value_and_grad(f)))(jnp.stack([x, -x]))[1],
], ids=["value", "grad", "jit-grad", "grad-jit", "jacfwd", "hessian", "jacfwd2", "grad-checkpoint",
        "linearize", "vmap", "vmap-grad", "grad-vmap", "jit-vmap-grad"])
def test_against_values(f, plain, x, transform):
    x = jnp.array(x)
    np.testing.assert_allclose(transform(f)(x), transform(plain)(x), rtol=2e-5, atol=1e-6)


def test_the_linear_program_has_no_references():
    _, pull_back = jax.vjp(straight, POINTS[0])
    assert "Ref" not in str(jax.make_jaxpr(pull_back)(1.0))


def test_forward_mode_through_a_while_loop():
    def f(x):
        ref = jax.new_ref(x)

        def body(i):
            ref[i] = ref[i] * ref[0]
            return i + 1

        lax.while_loop(lambda i: i < 3, body, 0)
        return ref[...].sum()

    y, t = jax.jvp(f, (jnp.arange(1.0, 4.0),), (jnp.ones(3),))
    assert (float(y), float(t)) == (6, 14)


# -- references of outside -------------------------------------------------------------------------


def test_a_reference_of_outside_is_read_and_takes_constants():
    ref = ref_of(1, 2)

    def f(x):
        ref[...] = lax.stop_gradient(x)
        return (x * ref[...]).sum()

    for g in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f)),
              jax.grad(jax.checkpoint(f))):
        ref[...] = jnp.zeros(2)
        assert g(jnp.array([3.0, 4.0])).tolist() == ref[...].tolist() == [3, 4]


@pytest.mark.parametrize("store", [
    lambda ref, x: ref.at[...].set(x), lambda ref, x: ref.addupdate(x),
    lambda ref, x: jax.jit(lambda r, y: r.at[...].set(y))(ref, x),
])
def test_a_reference_of_outside_takes_no_differentiated_values(store):
    ref = ref_of(1, 2)
    with pytest.raises(Exception, match="with a differentiated value on a non-differentiated array "
                                        r"reference of type Ref\{float32\[2\]\}. Move"):
        jax.grad(lambda x: (store(ref, x), x.sum())[1])(jnp.ones(2))


def test_jvp_with_a_tangent_reference():
    def f(ref, x):
        ref[0] = ref[1] * x
        return ref[...]

    ref, tangent = ref_of(1, 2), ref_of(10, 20)
    y, t = jax.jvp(f, (ref, 3.0), (tangent, 0.5))
    assert y.tolist() == [6, 2] and t.tolist() == [61, 20]
    assert ref[...].tolist() == [6, 2] and tangent[...].tolist() == [61, 20]


def test_linearize_with_a_reference():
    ref, tangent = ref_of(1, 2), ref_of(10, 20)
    _, f_jvp = jax.linearize(lambda r: r.at[0].swap(r[1] * 3), ref)
    assert float(f_jvp(tangent)) == 10 and tangent[...].tolist() == [60, 20]


def test_gradients_are_added_to_references():
    _, pull_back = jax.vjp(lambda x, y: (x * y).sum(), jnp.ones(2), jnp.array([2.0, 3.0]))
    gx, gy = ref_of(1, 1), ref_of(0, 0)
    assert repr(pull_back.with_refs(gx, gy)(1.0)) == "(GradRef(), GradRef())"
    pull_back.with_refs(gx, jax.ad.DontWant())(10.0)
    assert gx[...].tolist() == [23, 34] and gy[...].tolist() == [1, 1]
    assert pull_back.with_refs(gx, jax.ad.GradValue())(1.0)[1].tolist() == [1, 1]

    def total(x):
        _, pull_back = jax.vjp(lambda x: jnp.sin(x).sum(), x)
        g = jax.new_ref(jnp.zeros(2))
        pull_back.with_refs(g)(1.0)
        pull_back.with_refs(g)(2.0)
        return g[...]

    x = jnp.array([0.1, 0.2])
    np.testing.assert_allclose(jax.jit(total)(x), 3 * jnp.cos(x), rtol=1e-6)


def test_gradients_of_references():
    def f(r, x):
        r[...] = x * r[...]

    ref, x = ref_of(0, 1, 2), jnp.full(3, 5.0)
    _, pull_back = jax.vjp(f, ref, x)
    g, h = ref_of(1, 1, 1), ref_of(0, 0, 0)
    pull_back.with_refs(g, h)(None)
    assert g[...].tolist() == [5, 5, 5] and h[...].tolist() == [0, 1, 2]
    assert ref[...].tolist() == [0, 5, 10]


def test_errors_of_gradients_of_references():
    ref = ref_of(1, 2)
    with pytest.raises(TypeError, match="grad cannot differentiate with respect to a Ref-typed"):
        jax.grad(lambda r: r[0])(ref)
    _, pull_back = jax.vjp(lambda r: r[0], ref)
    with pytest.raises(ValueError, match=r"the argument at position args\[0\] of .* is Ref-typed"):
        pull_back(1.0)
    with pytest.raises(ValueError, match="arguments to a VJP function's `with_refs` method"):
        pull_back.with_refs(ref, ref)
    assert jax.grad(lambda x, r: x * r[1])(3.0, ref) == 2


# -- custom derivatives ----------------------------------------------------------------------------


@jax.custom_vjp
def stash(ref, x):
    return x


def _stash_bwd(ref, ct):
    ref[...] = ct
    return None, ct


stash.defvjp(lambda ref, x: (x, ref), _stash_bwd)


def stashing(x, ref):
    return (stash(ref, jnp.sin(x)) ** 2).sum()


@pytest.mark.parametrize("gradient", [
    lambda x, ref: jax.grad(stashing)(x, ref),
    lambda x, ref: jax.jit(jax.grad(stashing))(x, ref),
    lambda x, ref: jax.grad(jax.jit(stashing))(x, ref),
    lambda x, ref: jax.grad(lambda x: stashing(x, ref))(x),
    lambda x, ref: jax.jit(jax.grad(jax.jit(lambda x: stashing(x, ref))))(x),
    lambda x, ref: jax.grad(jax.checkpoint(lambda x: stashing(x, ref)))(x),
    lambda x, ref: jax.jit(jax.grad(jax.checkpoint(stashing)))(x, ref),
    lambda x, ref: jax.grad(lambda x: lax.cond(x[0] > 0, stashing, lambda *_: 0.0, x, ref))(x),
], ids=["grad", "jit-grad", "grad-jit", "closed over", "jit-grad-jit", "checkpoint",
        "jit-grad-checkpoint", "cond"])
def test_a_backward_rule_writes(gradient):
    x, ref = jnp.array([0.3, 0.5]), ref_of(0, 0)
    np.testing.assert_allclose(gradient(x, ref), 2 * jnp.sin(x) * jnp.cos(x), rtol=1e-6)
    np.testing.assert_allclose(ref[...], 2 * jnp.sin(x), rtol=1e-6)


def test_a_backward_rule_writes_for_each_example():
    x, ref = jnp.array([[0.3], [0.5]]), jax.new_ref(jnp.zeros((2, 1)))
    for g in (jax.vmap(jax.grad(stashing)), jax.jit(jax.vmap(jax.grad(jax.jit(stashing)))),
              lambda x, ref: jax.grad(lambda x: jax.vmap(stashing)(x, ref).sum())(x)):
        ref[...] = jnp.zeros((2, 1))
        np.testing.assert_allclose(g(x, ref), 2 * jnp.sin(x) * jnp.cos(x), rtol=1e-6)
        np.testing.assert_allclose(ref[...], 2 * jnp.sin(x), rtol=1e-6)


def test_no_backward_pass_no_write():
    x, ref = jnp.array([0.3, 0.5]), ref_of(0, 0)
    assert stashing(x, ref) == jax.jit(stashing)(x, ref)
    assert ref[...].tolist() == [0, 0]


def test_a_backward_rule_writes_in_a_scan():
    def f(x, ref):
        return lax.scan(lambda c, _: (stash(ref, jnp.sin(c)), None), x, None, length=3)[0].sum()

    x, ref = jnp.array([0.3, 0.5]), ref_of(0, 0)
    expected = jax.grad(lambda x: jnp.sin(jnp.sin(jnp.sin(x))).sum())(x)
    for g in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
        ref[...] = jnp.zeros(2)
        np.testing.assert_allclose(g(x, ref), expected, rtol=1e-6)
        last = jnp.cos(jnp.sin(jnp.sin(x))) * jnp.cos(jnp.sin(x))
        np.testing.assert_allclose(ref[...], last, rtol=1e-6)


def test_custom_functions_with_references_of_their_own():
    @jax.custom_jvp
    def f(x):
        ref = jax.new_ref(x)
        ref[...] *= 2
        return ref[...]

    f.defjvp(lambda primals, tangents: (f(*primals), 20 * tangents[0]))
    for g in (f, jax.jit(f)):
        assert float(g(3.0)) == 6 and float(jax.grad(g)(3.0)) == 20
        assert float(jax.jit(jax.grad(g))(3.0)) == 20


# -- batching --------------------------------------------------------------------------------------


def test_vmap_of_references():
    ref = jax.new_ref(jnp.zeros((2, 3)))
    jax.vmap(lambda r, x: r.at[0].set(x))(ref, jnp.array([1.0, 2.0]))
    assert ref[...].tolist() == [[1, 0, 0], [2, 0, 0]]
    jax.vmap(lambda r, x: r.at[1].set(x), in_axes=(1, 0))(ref, jnp.array([4.0, 5.0, 6.0]))
    assert ref[...].tolist() == [[1, 0, 0], [4, 5, 6]]
    jax.vmap(lambda r, i: r.addupdate(1.0, i))(ref, jnp.array([2, 0]))
    assert ref[...].tolist() == [[1, 0, 1], [5, 5, 6]]
    assert jax.vmap(lambda r, i: r[i])(ref, jnp.array([0, 2])).tolist() == [1, 6]
    got = jax.jit(jax.vmap(lambda r, i: (r[jnp.array([0, i])], r[1:]), in_axes=(0, None)))(ref, 2)
    assert got[0].tolist() == [[1, 1], [5, 6]] and got[1].tolist() == [[0, 1], [5, 6]]
    olds = jax.vmap(lambda r, i, x: jax.ref.swap(r, i, x))(
        ref, jnp.array([0, 1]), jnp.array([8.0, 9.0]))
    assert olds.tolist() == [1, 5] and ref[...].tolist() == [[8, 0, 1], [5, 9, 6]]


def test_vmap_of_a_closed_over_reference():
    ref = ref_of(1, 2, 3)
    assert jax.vmap(lambda i: ref[i])(jnp.array([2, 0])).tolist() == [3, 1]
    assert jax.vmap(lambda x: ref[0] + x)(jnp.arange(2.0)).tolist() == [1, 2]
    for f in (lambda x: ref.at[0].set(x), lambda x: ref.addupdate(x, 0),
              lambda x: ref.addupdate(1.0, 0), jax.jit(lambda x: jax.ref.swap(ref, 0, 5.0)),
              jax.grad(lambda x: (ref.at[0].set(5.0), x)[1])):
        with pytest.raises(Exception, match="with vmapped value on an unbatched array reference of "
                                            r"type Ref\{float32\[3\]\}. Move the array reference"):
            jax.vmap(f)(jnp.arange(2.0))


def test_vmap_of_loops_and_branches():
    ref = jax.new_ref(jnp.zeros((3, 3)))

    def count(n, r):
        return lax.while_loop(lambda i: i < n, lambda i: (r.addupdate(1.0, i), i + 1)[1], 0)

    assert jax.vmap(count)(jnp.array([1, 2, 3]), ref).tolist() == [1, 2, 3]
    assert ref[...].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    jax.vmap(lambda p, r: lax.cond(p, lambda: r.at[0].set(9.0), lambda: None))(
        jnp.array([True, False, True]), ref)
    assert ref[:, 0].tolist() == [9, 1, 9]
    jax.jit(jax.vmap(lambda r, x: lax.fori_loop(
        0, 3, lambda i, c: (r.at[i].set(x), c)[1], 0)))(ref, jnp.arange(3.0))
    assert ref[...].tolist() == [[0] * 3, [1] * 3, [2] * 3]


def test_nested_vmap():
    ref = jax.new_ref(jnp.zeros((2, 3)))
    x = jnp.arange(6.0).reshape(2, 3)
    jax.vmap(jax.vmap(lambda r, x: r.at[...].set(x)))(ref, x)
    assert (ref[...] == x).all()

    def own(x):
        r = jax.new_ref(0.0)
        r[...] = x * 2
        return r[...]

    assert (jax.vmap(jax.vmap(own))(x) == 2 * x).all()


def test_writes_at_arrays_of_integers_have_gradients():
    def f(x):
        ref = jax.new_ref(jnp.zeros(5))
        ref[1:3] = x
        ref[jnp.array([0, 4])] = x * 2
        ref[-1] += 1
        return ref[...]

    expected = np.zeros((5, 2), np.float32)
    expected[[1, 2], [0, 1]], expected[[0, 4], [0, 1]] = 1, 2
    x = jnp.arange(2.0)
    for jacobian in (jax.jacrev, jax.jacfwd):
        np.testing.assert_array_equal(jacobian(f)(x), expected)
        np.testing.assert_array_equal(jax.jit(jacobian(f))(x), expected)


def swapped_at(ref, index, value):
    ref[...] = 2 * ref[...] + jax.ref.swap(ref, index, value).sum()


def scanned(ref, index, value):
    lax.scan(lambda _, i: (None, jax.ref.set(ref, i, value)), None, jnp.stack([index, 3 - index]))


def mapped(x):
    ref = jax.new_ref(jnp.zeros(3))
    ref[jnp.array([1, 1])] = jnp.stack([x, 2 * x])
    return ref[...]


REPEATED = jnp.array([1, 0, 1, -1])
WRITES = {
    "set": lambda ref, v: jax.ref.set(ref, REPEATED, v),
    "swap": lambda ref, v: swapped_at(ref, REPEATED, v),
    "add": lambda ref, v: jax.ref.set(ref, REPEATED, ref[REPEATED] + v),
    "part": lambda ref, v: ref.at[:].set(v, REPEATED),
    "part of a part": lambda ref, v: ref.at[jnp.array([2, 2, 1])].at[:2].set(v[:2]),
    "both": lambda ref, v: ref.at[jnp.array([3, 1, 3])].at[jnp.array([2, 0, 2])].set(v[1:]),
    "stride": lambda ref, v: ref.at[::2].set(v, jnp.array([1, 1, 0, 1])),
    "rows": lambda ref, v: ref.reshape(2, 2).at[jnp.array([1, 1])].set(v.reshape(2, 2)),
    "columns": lambda ref, v: ref.reshape(2, 2).T.at[:, jnp.array([0, 0])].set(v.reshape(2, 2)),
    "once": lambda ref, v: ref.at[jnp.array([2])].set(v[:1]),
    "vmap": lambda ref, v: ref.at[...].set(jax.vmap(mapped)(v).sum(1)),
    "scan": lambda ref, v: scanned(ref, REPEATED, v),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_last_has_the_slope(name):
    def f(x):
        ref = jax.new_ref(x[:4])
        WRITES[name](ref, x[4:])
        return ref[...]

    write = jax.jit(f)  # it is linear: what it does to each unit vector is its slope
    expected = np.stack([write(row) for row in np.eye(8, dtype=np.float32)], 1)
    x = jnp.arange(8.0)
    for g in (f, jax.jit(f), jax.checkpoint(f)):
        for jacobian in (jax.jacrev(g), jax.jit(jax.jacrev(g)), jax.jacfwd(g)):
            np.testing.assert_array_equal(jacobian(x), expected)
        second = jax.jacfwd(jax.grad(lambda x, g=g: (g(x) ** 2).sum()))(x)
        np.testing.assert_array_equal(second, 2 * expected.T @ expected)
    batch = jax.grad(lambda x: jax.vmap(f)(x)[1].sum())(jnp.stack([x, x]))
    np.testing.assert_array_equal(batch, [0 * x, expected.sum(0)])


def test_tangents_that_references_hold_are_arrays():
    out, tangent = jax.jvp(lambda x: jax.freeze(jax.new_ref(x)), (1.0,), (2.0,))
    assert isinstance(tangent, jax.Array) and (float(out), float(tangent)) == (1.0, 2.0)


STAGED = {
    "jit": jax.jit, "jit-in-jit": lambda f: jax.jit(lambda x: jax.jit(f)(x) * 1.0),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x * 1.0, x),
    "while": lambda f: jax.jit(lambda x: lax.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]),
    "checkpoint": jax.checkpoint}


@pytest.mark.parametrize("staged", STAGED)
@pytest.mark.parametrize("write", ["set", "part", "addupdate"])
@pytest.mark.parametrize("transform", ["grad", "jit-of-grad", "jvp", "vmap"])
def test_refused_writes_of_staged_programs_say_where_they_are(transform, write, staged):
    ref = ref_of(1, 2, 3)

    def f(x):
        y = x * 2
        if write == "set":
            ref.set(y + ref[...])
        elif write == "part":
            ref.at[0].set(y)
        else:
            ref.addupdate(y, 1)
        return y * x

    g = STAGED[staged](f)
    g(1.0)  # what is traced now is not under the transformation
    first = inspect.getsourcelines(f)[1]
    line = first + {"set": 3, "part": 5, "addupdate": 7}[write]
    with pytest.raises(Exception, match=r"performing an? \S+ operation") as caught:
        {"grad": jax.grad(g), "jit-of-grad": jax.jit(jax.grad(g)), "vmap": lambda x: jax.vmap(g)(
            jnp.full(2, x)), "jvp": lambda x: jax.jvp(g, (x,), (x,))}[transform](1.0)
    assert source_info.raised_at(caught.value).startswith((
        f"{__file__}:{line}:", f"{__file__}:{line} "))  # recorded, or as it is traced


def test_what_serves_where_a_differentiated_value_is_written():
    def f(x, ref, kept=lambda y: y):
        ref[...] += kept(x * 2)
        return x * x

    for g in (f, jax.jit(f)):
        with pytest.raises(Exception, match=r"Under jax\.grad write jax\.lax\.stop"):
            jax.grad(g)(3.0, ref_of(0))
    for wrap in (jax.jit, lambda f: f):
        ref = ref_of(0)
        assert jax.grad(wrap(lambda x, ref=ref: f(x, ref, lax.stop_gradient)))(3.0) == 6
        assert ref[...].tolist() == [6]
        gradient, ref[0] = jax.grad(wrap(lambda x: (x * x, x * 2)), has_aux=True)(3.0)
        assert (gradient, ref[0]) == (6, 6)
        primal, tangent = ref_of(0), ref_of(0)
        assert jax.jvp(wrap(f), (3.0, primal), (1.0, tangent)) == (9, 6) and tangent[0] == 2

        def inside(x):
            made = ref_of(0)
            return f(x, made) + made[0]

        assert jax.grad(wrap(inside))(3.0) == 8
