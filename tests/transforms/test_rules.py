"""Every kind of rule under every transformation, and pairs of these, beside the plain function."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.arithmetic import TOGETHER
from pyjx.core.primitive import Primitive
from pyjx.custom_batching import custom_vmap, sequential_vmap
from pyjx.custom_derivatives import SymbolicZero
from pyjx.engine import rules
from pyjx.transforms.custom_gradient import linear_call

WS = np.float32([0.3, -0.7, 1.1])
POINT = np.float32(0.6)


def plain(w, x):
    return jnp.sin(x * w) + w


def slopes(w, x):
    """The derivatives of `plain`."""
    return jnp.cos(x * w) * x + 1, jnp.cos(x * w) * w


# -- functions with rules: of both arguments; of the second where they close over the first --------


def by_jvp(symbolic_zeros=False, nondiff=False):
    f = jax.custom_jvp(lambda tag, w, x: plain(w, x), nondiff_argnums=0) if nondiff else (
        jax.custom_jvp(plain))

    def rule(primals, tangents):
        parts = [s * t for s, t in zip(slopes(*primals), tangents, strict=True)
                 if type(t) is not SymbolicZero]
        return plain(*primals), sum(parts[1:], parts[0])

    if nondiff:
        f.defjvp(lambda tag, primals, tangents: rule(primals, tangents))
        return lambda w, x: f("tag", w, x)
    f.defjvp(rule, symbolic_zeros=symbolic_zeros)
    return f


def by_jvps():
    f = jax.custom_jvp(plain)
    f.defjvps(lambda t, out, w, x: slopes(w, x)[0] * t, lambda t, out, w, x: slopes(w, x)[1] * t)
    return f


def by_vjp(symbolic_zeros=False, nondiff=False, **options):
    f = jax.custom_vjp(lambda tag, w, x: plain(w, x), nondiff_argnums=0) if nondiff else (
        jax.custom_vjp(plain))

    def fwd(*args):
        w, x = [a.value for a in args] if symbolic_zeros else args
        return plain(w, x), slopes(w, x)

    def bwd(residuals, ct):
        return (None, None) if type(ct) is SymbolicZero else (residuals[0] * ct, residuals[1] * ct)

    if nondiff:
        f.defvjp(lambda tag, *args: fwd(*args), lambda tag, *args: bwd(*args))
        return lambda w, x: f("tag", w, x)
    f.defvjp(fwd, bwd, symbolic_zeros=symbolic_zeros, **options)
    return f


def by_remat_rules():
    f = jax.custom_vjp(plain)
    f.defremat(lambda w, x: (plain(w, x), x), lambda x, w, _: (plain(w, x), slopes(w, x)),
               lambda r, ct: (r[0] * ct, r[1] * ct))
    return f


def by_accumulators():
    f = jax.custom_vjp(plain)

    def bwd(residuals, ct, w, x):
        w.accum(residuals[0] * ct)
        x.accum(residuals[1] * ct)

    f.defvjp_with_accums(lambda w, x: (plain(w, x), slopes(w, x)), bwd)
    return f


def by_gradient():
    return jax.custom_gradient(
        lambda w, x: (plain(w, x), lambda ct: tuple(s * ct for s in slopes(w, x))))


def by_vmap():
    f = custom_vmap(plain)
    f.def_vmap(lambda size, batched, w, x: (plain(w, x), any(batched)))
    return f


def by_root(w, x):
    return lax.custom_root(lambda y: y - plain(w, x), lax.stop_gradient(w), lambda f, y: y - f(y),
                           lambda g, y: y / g(1.0))


def by_solve(w, x):
    def solve(matvec, b):
        return b / matvec(1.0)

    return lax.custom_linear_solve(lambda y: y * 2, 2 * plain(w, x), solve, solve)


def by_linear_call(w, x):
    return linear_call(lambda w, y: y * w, lambda w, ct: ct * w, 2.0, plain(w, x) / 2)


def by_conversion(w, x):
    converted, consts = jax.closure_convert(lambda x: plain(w, x), x)
    return converted(x, *consts)


def closing_by_jvp(w):
    f = jax.custom_jvp(lambda x: plain(w, x))
    f.defjvp(lambda p, t: (f(*p), slopes(w, p[0])[1] * t[0]))
    return f


def closing_by_vjp(w):
    f = jax.custom_vjp(lambda x: plain(w, x))
    f.defvjp(lambda x: (f(x), slopes(w, x)[1]), lambda slope, ct: (slope * ct,))
    return f


def closing_by_gradient(w):
    return jax.custom_gradient(lambda x: (plain(w, x), lambda ct: slopes(w, x)[1] * ct))


def closing(made):
    return lambda w: lambda x: made(w, x)


# kind -> (function, what closes over the first argument or None, whether it has a forward mode)
KINDS = {
    "custom_jvp": (by_jvp(), closing_by_jvp, True),
    "custom_jvp-symbolic": (by_jvp(True), None, True),
    "custom_jvp-nondiff": (by_jvp(nondiff=True), None, True),
    "custom_jvp-jvps": (by_jvps(), None, True),
    "custom_vjp": (by_vjp(), closing_by_vjp, False),
    "custom_vjp-symbolic": (by_vjp(True), None, False),
    "custom_vjp-nondiff": (by_vjp(nondiff=True), None, False),
    "custom_vjp-optimize_remat": (by_vjp(optimize_remat=True), None, False),
    "custom_vjp-remat": (by_remat_rules(), None, False),
    "custom_vjp-accums": (by_accumulators(), None, False),
    "custom_gradient": (by_gradient(), closing_by_gradient, False),
    "custom_vmap": (by_vmap(), None, True),
    "sequential_vmap": (sequential_vmap(plain), None, True),
    "custom_root": (by_root, closing(by_root), True),
    "custom_linear_solve": (by_solve, closing(by_solve), True),
    "linear_call": (by_linear_call, closing(by_linear_call), True),
    "closure_convert": (by_conversion, closing(by_conversion), True),
}

# what is done with the operands: f(w, x) -> a function of one number
OPERANDS = {
    "both": lambda f: lambda x: f(x, x),
    "first": lambda f: lambda x: f(x, POINT),  # the other has no tangent
    "second": lambda f: lambda x: f(POINT, x),
    "mapped": lambda f: lambda x: jax.vmap(lambda w: f(w, x))(WS).sum(),
    "mapped-in-jit": lambda f: lambda x: jax.jit(jax.vmap(f, (None, 0)))(x, WS).sum(),
    "mapped-twice": lambda f: lambda x: jax.vmap(
        lambda w: jax.vmap(lambda v: f(w * x, v), 0)(WS))(WS).sum(),
}


# -- transformations: from functions of one number to such -----------------------------------------


def checked_shape(f):
    def run(x):
        shape = jax.eval_shape(f, x)
        assert (shape.shape, shape.dtype) == ((), np.float32)
        return f(x)
    return run


def of_jaxpr(f):
    def run(x):
        closed = jax.make_jaxpr(f)(x)
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]
    return run


FORWARD = {  # they push tangents along
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1],
    "jacfwd": jax.jacfwd,
    "hessian": jax.hessian,
    "mapped-tangents": lambda f: lambda x: jax.vmap(
        lambda t: jax.jvp(f, (x,), (t,))[1])(WS).sum(),
}
LOOPS = {  # they have no reverse mode
    "while": lambda f: lambda x: lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
}
REVERSE = {
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](jnp.ones_like(x))[0],
    "grad": jax.grad,
    "jacrev": jax.jacrev,
    "mapped-cotangents": lambda f: lambda x: jax.vmap(jax.vjp(f, x)[1])(WS)[0].sum(),
}
LINEARIZE = {"linearize": lambda f: lambda x: jax.linearize(f, x)[1](jnp.ones_like(x))}
OTHERS = {
    "jit": jax.jit,
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])).sum(),
    "vmap-last": lambda f: lambda x: jax.vmap(
        lambda r: f(r[0]), in_axes=1, out_axes=0)(jnp.stack([x, 2 * x])[None]).sum(),
    "checkpoint": jax.checkpoint,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "map": lambda f: lambda x: lax.map(f, jnp.stack([x, 2 * x])).sum(),
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    "mapped-cond": lambda f: lambda x: jax.vmap(
        lambda w: lax.cond(w > 0, f, lambda x: x, x * w))(WS).sum(),
    "eval_shape": checked_shape,
    "make_jaxpr": of_jaxpr,
}
TRANSFORMS = {**FORWARD, **LOOPS, **REVERSE, **LINEARIZE, **OTHERS}


def is_defined(forward, *names):
    """Whether transformations, the outermost first, apply to functions with or without a forward
    mode."""
    for outer, inner in itertools.combinations(names, 2):
        if inner == "while" and (outer in REVERSE or outer in LINEARIZE or outer == "hessian"):
            return False
    if forward:
        return True
    # a backward rule gives what is differentiated again, by any mode; the function itself is not
    at = [i for i, name in enumerate(names) if name in FORWARD or name in LINEARIZE]
    back = [i for i, name in enumerate(names) if name in REVERSE]
    return not at or (bool(back) and max(back) > max(at))


def check(kind, operands, *names):
    rule, _, _ = KINDS[kind]
    got, want = OPERANDS[operands](rule), OPERANDS[operands](plain)
    compare(got, want, *names)


def compare(got, want, *names):
    for name in reversed(names):
        got, want = TRANSFORMS[name](got), TRANSFORMS[name](want)
    np.testing.assert_allclose(got(POINT), want(POINT), rtol=2e-4, atol=2e-5)


SINGLE = [(kind, name) for kind, (_, _, forward) in KINDS.items() for name in TRANSFORMS
          if is_defined(forward, name)]
PAIRS = [(kind, outer, inner) for kind, (_, _, forward) in KINDS.items()
         for outer, inner in itertools.product(TRANSFORMS, repeat=2)
         if is_defined(forward, outer, inner)]
# A part of the pairs in which each kind meets each transformation on both sides.
SOME = [case for i, case in enumerate(PAIRS) if i % 29 == 0]


@pytest.mark.parametrize(("kind", "name"), SINGLE)
def test_a_rule_under_a_transformation(kind, name):
    operands = list(OPERANDS)[hash_of(kind, name) % len(OPERANDS)]
    check(kind, operands, name)


def hash_of(*names):
    return sum(map(len, names)) + sum(map(ord, "".join(names)))


@pytest.mark.parametrize(("kind", "outer", "inner"), SOME)
def test_a_rule_under_two_transformations(kind, outer, inner):
    check(kind, list(OPERANDS)[hash_of(kind, outer, inner) % len(OPERANDS)], outer, inner)


CLOSING = [(kind, name) for kind, (_, made, forward) in KINDS.items() if made
           for name in TRANSFORMS if is_defined(forward, name)]


@pytest.mark.parametrize(("kind", "name"), CLOSING)
def test_a_rule_that_closes_over_what_is_mapped(kind, name):
    made = KINDS[kind][1]
    compare(lambda x: jax.vmap(lambda w: made(w)(x))(WS).sum(),
            lambda x: jax.vmap(lambda w: plain(w, x))(WS).sum(), name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operands", OPERANDS)
def test_all_rules_under_all_transformations(kind, operands):
    failed = []
    forward = KINDS[kind][2]
    for names in [*[(n,) for n in TRANSFORMS], *itertools.product(TRANSFORMS, repeat=2)]:
        if is_defined(forward, *names):
            try:
                check(kind, operands, *names)
            except Exception as error:
                failed.append((names, type(error).__name__, str(error)[:200]))
    assert not failed, f"{len(failed)} failed, such as {failed[:5]}"


def test_a_derivative_that_follows_from_the_rest_is_found_by_several_threads_at_once(monkeypatch):
    primitive = Primitive("linear_of_test", shape_rule=lambda x: x, linear=TOGETHER)
    make = rules.jvp_linear

    def jvp_linear(given):
        monkeypatch.setattr(rules, "jvp_linear", make)
        rules.forward_rule(given)  # as another thread does meanwhile
        return make(given)

    monkeypatch.setattr(rules, "jvp_linear", jvp_linear)
    assert rules.forward_rule(primitive) is primitive.jvp is not None


@jax.custom_vjp
def _by_vjp(x, y):
    return x * y


@jax.custom_jvp
def _by_jvp(x, y):
    return x * y


@jax.custom_gradient
def _by_gradient(x, y):
    return "out", lambda g: (g, g)


@jax.custom_gradient
def _by_pull_back(x, y):
    return x * y, lambda g: (g, "k")


@pytest.mark.parametrize(("f", "fwd", "bwd", "of"), [
    (_by_vjp, lambda x, y: ("out", (x, y)), lambda r, g: (g, g), "the fwd rule <lambda> at "),
    (_by_vjp, lambda x, y: (x, (x, "s")), lambda r, g: (g, g), "the fwd rule <lambda> at "),
    (_by_vjp, lambda x, y: (x, (x, abs)), lambda r, g: (g, g), "the fwd rule <lambda> at "),
    (_by_jvp, lambda p, t: (p[0], "t"), None, "the rule <lambda> at "),
    (_by_gradient, None, None, "function _by_gradient at "),
    (_by_pull_back, None, None, "function <lambda> at "),
])
def test_what_a_rule_returns_is_told_of_the_rule_alone(f, fwd, bwd, of):
    if bwd is not None:
        f.defvjp(fwd, bwd)
    elif fwd is not None:
        f.defjvp(fwd)
    with pytest.raises(TypeError, match=" returned a value of type <class ") as caught:
        jax.grad(f)(1.0, 2.0)
    assert str(caught.value).startswith(of) and "argument" not in str(caught.value)


@pytest.mark.parametrize(("product", "rhs"), [
    (jnp.matmul, np.ones((3, 3))),
    (lambda x, w: lax.conv(x[None, None], w[None, None], (1, 1), "SAME"), np.ones((2, 2)))])
def test_a_tangent_of_written_zeros_makes_no_product(product, rhs):
    """XLA would make sums over the other factor of it, for which a TPU lets more wait."""
    x, w = np.arange(9.0, dtype="float32").reshape(3, 3), np.float32(rhs)

    def pushed(x, w, zero):
        return jax.jvp(product, (x, w), (zero(x), jnp.cos(w)))

    def of_zeros(x, w):
        return pushed(x, w, jnp.zeros_like)

    def of_values(x, w):
        return pushed(x, w, lambda x: 0 * x)

    assert [str(jax.make_jaxpr(fun)(x, w)).count("dimension_numbers=")
            for fun in (of_zeros, of_values)] == [2, 3]
    for one, other in zip(jax.jit(of_zeros)(x, w), jax.jit(of_values)(x, w), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert not jax.jit(lambda x: jax.jvp(lambda x: x @ x, (x,), (jnp.zeros_like(x),))[1])(x).any()


MOVES = {
    "jnp.split": lambda x: jnp.split(x, 2),
    "lax.split": lambda x: lax.split(x, (1, 3)),
    "unstack": jnp.unstack,
    "in a branch": lambda x: lax.cond(x.sum() > 0, jnp.unstack, lambda x: jnp.unstack(-x), x),
    "reshape": lambda x: x.reshape(2, 2),
    "concatenate": lambda x: jnp.concatenate([x, 2 * x]),
    "stack": lambda x: jnp.stack([x, x]),
    "select": lambda x: jnp.where(x > 2, x, -x),
    "pad": lambda x: jnp.pad(x, 1),
    "gather": lambda x: x[jnp.array([2, 0])],
    "scatter": lambda x: x.at[jnp.array([1])].set(x[0]),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_zeros_that_are_written_move_as_other_tangents_do(move):
    x = np.arange(1, 5, dtype=np.float32)

    def pushed(x):
        return jax.jvp(move, (x,), (jnp.zeros_like(x),))

    def summed(x):
        return sum([jnp.sum(part) for part in jax.tree.leaves(pushed(x))])

    outs, tangents = jax.jit(pushed)(x)
    assert jax.tree.map(jax.typeof, tangents) == jax.tree.map(jax.typeof, outs)
    assert not any([t.any() for t in jax.tree.leaves(tangents)])
    slopes = jax.grad(lambda x: sum([jnp.sum(part) for part in jax.tree.leaves(move(x))]))(x)
    np.testing.assert_array_equal(jax.jit(jax.grad(summed))(x), slopes)
    mapped = jax.jit(jax.vmap(pushed))(np.stack([x, x]))[1]
    assert all([t.shape[0] == 2 and not t.any() for t in jax.tree.leaves(mapped)])


@pytest.mark.parametrize("number", [2.0, np.float32(2)])
def test_products_and_moves_of_written_zeros_have_the_types_of_others(number):
    mesh = jax.sharding.AbstractMesh((2,), ("x",), (jax.sharding.AxisType.Explicit,))
    rows = jax.P("x", None)

    def full(value):
        return lax.broadcast_in_dim(type(number)(value), (4, 4), (), out_sharding=rows)

    def pushed(make):
        return jax.jvp(lambda x: (lax.dot(x, x.T, out_sharding=rows), x.T,
                                  lax.split(x, (1, 3), 1)), (full(number),), (make(),))[1]

    with jax.sharding.use_abstract_mesh(mesh):
        of_zeros = jax.make_jaxpr(lambda: pushed(lambda: full(0)))()
        of_others = jax.make_jaxpr(lambda: pushed(lambda: 0 * full(1)))()
    assert (of_zeros.out_avals[0].weak_type, of_zeros.out_avals) == (
        type(number) is float, of_others.out_avals)
    assert [str(closed).count("dot_general") for closed in (of_zeros, of_others)] == [1, 3]


def test_zeros_that_are_written_make_no_nan_of_infinity():
    """In recorded products alone: JAX multiplies them, as eager calls and formulas do."""
    w = np.full((2, 2), np.inf, np.float32)

    def slope(f):
        return lambda x: jax.jvp(f, (x,), (jnp.zeros_like(x),))[1]

    product = slope(lambda x: x @ w)
    assert np.isnan(product(np.eye(2, dtype=np.float32))).all()
    assert not jax.jit(product)(np.eye(2, dtype=np.float32)).any()
    for f in (lambda x: jnp.sqrt(x.reshape(-1)), lambda x: jnp.sqrt(x @ x)):
        assert np.isnan(jax.jit(slope(f))(np.zeros((2, 2), np.float32))).all()
