"""References as arguments: parts of them, the same one twice, freed ones, those of custom rules."""

import subprocess
import sys

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.extend import core
from pyjx.interpreters import mlir
from pyjx.sharding import AxisType
from pyjx.sharding import PartitionSpec as P

X = np.arange(6, dtype=np.float32).reshape(2, 3)

# -- parts of references ---------------------------------------------------------------------------

PARTS = {
    "row": (lambda r: r.at[1], np.s_[1]),
    "columns": (lambda r: r.at[:, 1:], np.s_[:, 1:]),
    "part of a part": (lambda r: r.at[1].at[1:], np.s_[1, 1:]),
    "traced": (lambda r: r.at[jnp.int32(1)], np.s_[1]),
    "all": (lambda r: r.at[...], np.s_[...]),
    "turned": (lambda r: r.T, np.s_[...]),
    "known place": (lambda r: r.at[0, jax.ds(1, 2)], np.s_[0, 1:3]),
    "traced place": (lambda r: r.at[0, jax.ds(jnp.int32(1), 2)], np.s_[0, 1:3]),
    "place from the end": (lambda r: r.at[:, jax.ds(jnp.int32(-2), 2)], np.s_[:, 1:3]),
    "place too far": (lambda r: r.at[:, jax.ds(jnp.int32(7), 2)], np.s_[:, 1:3]),
}


def raised(part):
    part[...] += 10.0


def mapped_over_one_device(f):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P()))


TAKERS = {
    "jit": jax.jit(raised),
    "in jit": lambda part: jax.jit(lambda: jax.jit(raised)(part))(),
    "remat": jax.checkpoint(raised),
    "cond": lambda part: lax.cond(True, raised, lambda part: None, part),
    "switch": lambda part: lax.switch(1, [lambda part: None, raised], part),
    "scan": lambda part: lax.scan(lambda c, _: (raised(part), None), None, None, length=1)[0],
    "shard_map": mapped_over_one_device(raised),
    "grad": lambda part: jax.grad(lambda x, part: (raised(part), x)[1])(1.0, part),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("part", PARTS)
def test_functions_take_parts(part, taker):
    view, index = PARTS[part]
    ref = jax.new_ref(X)
    TAKERS[taker](view(ref))
    want = X.copy()
    want[index] += 10
    np.testing.assert_array_equal(ref[...], want)


@pytest.mark.parametrize("taker", ["jit", "cond", "remat"])
def test_functions_take_parts_under_derivatives_and_batches(taker):
    def f(x):
        ref = jax.new_ref(x)
        TAKERS[taker](ref.at[1])
        return (ref[...] ** 2).sum()

    np.testing.assert_allclose(jax.grad(f)(X), 2 * (X + [[0], [10]]))
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(np.stack([X, -X])),
                               [2 * (X + [[0], [10]]), 2 * (-X + [[0], [10]])])


def test_a_program_for_parts_at_any_place():
    traces = []

    @jax.jit
    def f(part):
        traces.append(1)
        raised(part)

    ref = jax.new_ref(X)
    for i in (0, 1, 1):
        f(ref.at[i])
    np.testing.assert_array_equal(ref[...], X + [[10], [20]])
    assert len(traces) == 1


@pytest.mark.parametrize("take", [
    lambda part: jax.vmap(raised)(part), lambda part: lax.map(raised, part),
    lambda part: lax.scan(lambda c, x: (c, None), None, part),
    lambda part: jax.shard_map(
        raised, mesh=jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,)), in_specs=P("i"),
        out_specs=P())(part),
])
def test_parts_are_not_divided(take):
    with pytest.raises(TypeError, match="TransformedRefs are not allowed"):
        take(jax.new_ref(X).at[:, 1:])


def test_errors_of_places():
    with pytest.raises(ValueError, match="Out of bound slice: start=2, size=2"):
        jax.new_ref(X).at[:, jax.ds(2, 2)]
    with pytest.raises(ValueError, match="Out of bound slice: size=4, stride=1"):
        jax.new_ref(X).at[:, jax.ds(jnp.int32(0), 4)]
    with pytest.raises(NotImplementedError, match="a `ds` whose start is traced and whose stride"):
        jax.new_ref(X).at[:, jax.ds(jnp.int32(0), 2, 0)]


@pytest.mark.parametrize("index", [
    lambda i: (jax.ds(i, 2), jax.ds(i + 1, 2)), lambda i: (np.array([1, 0]), jax.ds(i, 2)),
    lambda i: (jax.ds(i, 2), i), lambda i: (i, jax.ds(i, 1)), lambda i: (jax.ds(i, 1), slice(1, 3)),
    lambda i: (jax.ds(i, 2), np.array([[2, 0]]))])
def test_slices_whose_starts_are_traced_stand_beside_all_others(index):
    def seen(i):
        ref = jax.new_ref(jnp.arange(12).reshape(3, 4))
        ref[index(i)] += 100
        return ref[index(i)], ref[...]

    for got, want in zip(jax.jit(seen)(1), seen(1), strict=True):
        np.testing.assert_array_equal(got, want)


# -- the same one twice ----------------------------------------------------------------------------


def nothing(left, right):
    return None


def with_rules():
    f = jax.custom_vjp(nothing)
    f.defvjp(lambda left, right: (None, None), lambda _, g: (None, None))
    return f


@pytest.mark.parametrize(("call", "names"), [
    (lambda r: lax.cond(True, nothing, nothing, r, r), "left and right"),
    (lambda r: lax.switch(0, [nothing] * 3, r, r), "left and right"),
    (lambda r: lax.scan(lambda c, _: (None, None), (r, r), None, length=1), r"c\[0\] and c\[1\]"),
    (lambda r: lax.scan(lambda c, x: (None, None), r, r), "c and x"),
    (lambda r: lax.map(lambda x: None, (r, r)), r"x\[0\] and x\[1\]"),
    (lambda r: lax.fori_loop(0, 2, lambda i, c: c, (r, r)), r"c\[0\] and c\[1\]"),
    (lambda r: jax.vmap(nothing)(r, r), "left and right"),
    (lambda r: with_rules()(r, r), "left and right"),
    (lambda r: with_rules()({"a": r}, [r]), r"left\['a'\] and right\[0\]"),
    (lambda r: jax.jit(with_rules())(r, r), "left and right"),
    (lambda r: jax.vjp(with_rules(), r, r), "left and right"),
    (lambda r: jax.vjp(jax.jit(with_rules()), r, r), "left and right"),
    (lambda r: mapped_over_one_device(nothing)(r, r), "left and right"),
    (lambda r: jax.shard_map(nothing, mesh=jax.make_mesh((1,), ("i",)), in_specs=P(),
                             out_specs=P())(r, r), "left and right"),
])
def test_one_reference_is_passed_once(call, names):
    with pytest.raises(ValueError, match=f"only one reference to a mutable array.*at.* {names}"):
        call(jax.new_ref(jnp.zeros(3)))


@pytest.mark.parametrize(("call", "name"), [
    (lambda r: lax.cond(True, lambda left: r[...], lambda left: left[...], r), "left"),
    (lambda r: lax.cond(True, lambda left: left[...], lambda left: r[...], r), "left"),
    (lambda r: lax.scan(lambda c, _: (r[...] + c[...], None), r, None, length=1), "c"),
    (lambda r: lax.scan(lambda c, x: (c, r[0] + x[...]), None, r), "x"),
])
def test_a_reference_is_passed_or_closed_over(call, name):
    with pytest.raises(ValueError, match=f"both closed over and passed as the argument {name}"):
        call(jax.new_ref(jnp.zeros(3)))


# -- freed ones ------------------------------------------------------------------------------------


@pytest.mark.parametrize("use", [
    lambda r: r[...], lambda r: r.at[...][...], lambda r: r.__setitem__(..., 1.0), jax.freeze,
    jax.free_ref, lambda r: jax.jit(lambda r: r[...])(r),
    lambda r: lax.cond(True, lambda: r[...], lambda: 1.0),
])
@pytest.mark.parametrize("wrap", [jax.jit, lambda f: jax.jit(jax.grad(lambda x: (f(x), x)[1])),
                                  lambda f: jax.jit(lambda x: jax.vmap(f)(x[None]))])
def test_what_is_freed_is_not_used(use, wrap):
    def f(x):
        ref = jax.new_ref(x)
        jax.free_ref(ref)
        return use(ref)

    with pytest.raises(ValueError, match="used after it was freed"):
        wrap(f)(jnp.float32(1.0))


def test_an_argument_may_be_freed():
    @jax.jit
    def f(ref):
        ref[...] += 1
        jax.free_ref(ref)

    ref = jax.new_ref(1.0)
    f(ref)
    f(ref)
    assert ref[...] == 3


# -- custom rules ----------------------------------------------------------------------------------


def ruled(f, fwd, bwd):
    g = jax.custom_vjp(f)
    g.defvjp(fwd, bwd)
    return g


TRIPLE = ruled(lambda r: 3 * r[...], lambda r: (3 * r[...], None), lambda _, g: (7 * g,))
PRODUCT = ruled(lambda r, x: r[...] * x, lambda r, x: (r[...] * x, (r[...], x)),
                lambda res, g: (11 * g, 13 * g))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint])
def test_rules_give_the_cotangent_of_what_a_reference_holds(wrap):
    triple, product = wrap(TRIPLE), wrap(PRODUCT)

    def read_afterwards(x):
        ref = jax.new_ref(x)
        return triple(ref) + ref[...] ** 2

    f = lambda x: triple(jax.new_ref(x))  # noqa: E731
    assert jax.grad(f)(2.0) == jax.jit(jax.grad(f))(2.0) == 7
    assert jax.grad(read_afterwards)(2.0) == 7 + 4
    assert jax.grad(lambda x: product(jax.new_ref(x), x))(2.0) == 24
    xs = np.float32([1, 2])
    np.testing.assert_array_equal(jax.vmap(jax.grad(f))(xs), [7, 7])
    np.testing.assert_array_equal(jax.grad(lambda x: jax.vmap(f)(x).sum())(xs), [7, 7])
    total = jax.new_ref(100.0)
    _, pull_back = jax.vjp(product, jax.new_ref(5.0), 2.0)
    assert pull_back.with_refs(total, jax.ad.GradValue())(1.0)[1] == 13 and total[...] == 111


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_what_rules_write_has_no_tangent(wrap):
    def write(r):
        r[...] *= 3

    f = wrap(ruled(write, lambda r: (write(r), None), lambda _, g: (7.0,)))

    def written(x):
        ref = jax.new_ref(x)
        f(ref)
        return ref[...]

    assert written(2.0) == 6 and jax.grad(written)(2.0) == 1


def test_rules_in_loops_take_no_differentiated_references():
    def f(x):
        ref = jax.new_ref(x)
        return lax.scan(lambda c, _: (c + TRIPLE(ref), None), 0.0, None, length=2)[0]

    assert f(2.0) == 12
    with pytest.raises(NotImplementedError, match="takes a reference that is differentiated"):
        jax.grad(f)(2.0)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_rules_return_no_references(wrap):
    with_residual = wrap(ruled(lambda x, r: x * 2, lambda x, r: (x * 2, jax.new_ref(1.0)),
                               lambda res, g: (g, None)))
    with pytest.raises(ValueError, match=r"custom_vjp fwd function .* at output tree path \[1\]"):
        jax.vjp(with_residual, 3.0, jax.new_ref(0.0))
    same = wrap(ruled(lambda r: r, lambda r: (r, None), lambda _, g: (g,)))
    with pytest.raises(ValueError, match=r"custom_vjp primal function .* returned a mutable array"):
        same(jax.new_ref(1.0))
    with pytest.raises(ValueError, match="returned a mutable array"):
        jax.vjp(same, jax.new_ref(1.0))


def test_lowering_rules_may_make_references():
    plus_two = core.Primitive("plus_two_by_reference")
    plus_two.def_abstract_eval(lambda x: x)

    def rule(x):
        ref = jax.new_ref(x)
        ref[...] += 2
        return jax.freeze(ref)

    mlir.register_lowering(plus_two, mlir.lower_fun(rule, multiple_results=False))
    assert jax.jit(plus_two.bind)(5.0) == 7


# -- what derivatives do not see -------------------------------------------------------------------


def noting(x, ref):
    out = 3 * x * x
    ref[...] += out
    return out


@pytest.mark.parametrize("wrap", [
    lambda f: f, jax.jit, jax.checkpoint, lambda f: jax.jit(jax.checkpoint(f)),
    lambda f: lambda x, r: lax.cond(x > 0, f, lambda x, r: x, x, r),
    lambda f: lambda x, r: lax.scan(lambda c, _: (c, f(x, r)), x, None, length=1)[1][0],
])
def test_values_are_noted_once_beside_derivatives(wrap):
    f = wrap(noting)
    ref = jax.new_ref(1.0, kind="no_grad_no_remat")
    assert jax.grad(f)(2.0, ref) == 12 and ref[...] == 13
    assert jax.jvp(lambda x: f(x, ref), (2.0,), (1.0,))[1] == 12 and ref[...] == 25
    refs = jax.new_ref(jnp.ones(2), kind="no_grad_no_remat")
    np.testing.assert_array_equal(jax.vmap(jax.grad(f))(jnp.array([2.0, 3.0]), refs), [12, 18])
    np.testing.assert_array_equal(refs[...], [13, 28])


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint])
def test_what_is_noted_is_a_constant(wrap):
    def f(x):
        ref = jax.new_ref(0.0, kind="no_grad_no_remat")
        ref[...] = jnp.sin(x)
        return jnp.sin(x) * ref[...]

    np.testing.assert_allclose(jax.grad(wrap(f))(2.0), np.sin(2) * np.cos(2), rtol=1e-6)


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("placeholder", [object(), 3, "returned", jax.ad.GradValue()])
def test_a_gradient_that_has_no_reference_is_returned(placeholder):
    total = jax.new_ref(jnp.zeros(4))
    _, pull_back = jax.vjp(jax.jit(lambda x, i: x[i] ** 2), jnp.arange(4.0), 3)
    pull_back.with_refs(total, placeholder)(1.0)
    np.testing.assert_array_equal(total[...], [0, 0, 0, 6])
    _, pull_back = jax.vjp(lambda x, y: x * y, 2.0, 3.0)
    assert pull_back.with_refs(placeholder, jax.ad.DontWant())(1.0)[0] == 3
    with pytest.raises(ValueError, match="unexpected tree structure"):
        pull_back.with_refs(placeholder, None)
    _, pull_back = jax.vjp(lambda x, r: x * r[...], 2.0, jax.new_ref(3.0))
    with pytest.raises(ValueError, match=r"args\[1\].*is Ref-typed"):
        pull_back.with_refs(jax.ad.GradValue(), placeholder)(1.0)


# -- what describes references ---------------------------------------------------------------------


def counted(ref):
    ref[...] += 1.0
    return ref[0]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint])
def test_structs_describe_references(wrap):
    struct = jax.ShapeDtypeStruct((3,), np.float32, is_ref=True)
    f = wrap(counted)
    assert jax.typeof(struct) == jax.typeof(jax.new_ref(jnp.zeros(3)))
    assert jax.eval_shape(f, struct) == jax.ShapeDtypeStruct((), np.float32)
    assert "Ref{f32[3]}" in str(jax.make_jaxpr(f)(struct))
    ref = jax.new_ref(jnp.zeros(3))
    assert jax.jit(f).lower(struct).compile()(ref) == 1
    np.testing.assert_array_equal(ref[...], [1, 1, 1])


def test_structs_describe_references_before_there_is_one():
    code = ("import pyjx as jax\n"
            "r = jax.ShapeDtypeStruct((3,), 'float32', is_ref=True)\n"
            "assert 'Ref{f32[3]}' in str(jax.make_jaxpr(lambda r: r[0])(r))")
    subprocess.run([sys.executable, "-c", code], check=True)
