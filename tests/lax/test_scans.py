"""scan: against the loop in Python, in every transformation."""

import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.passes.dce import dce
from pyjx.experimental.ode import odeint

rng = np.random.default_rng(0)
W = rng.standard_normal((3, 3)).astype(np.float32)
H = rng.standard_normal(3).astype(np.float32)
XS = rng.standard_normal((5, 3)).astype(np.float32)


def in_python(step, carry, xs, reverse=False):
    ys = []
    for x in xs[::-1] if reverse else xs:
        carry, y = step(carry, x)
        ys.append(y)
    return carry, jax.tree.map(lambda *y: jnp.stack(y[::-1] if reverse else y), *ys)


def network(scan):
    def run(w, h, xs):
        def step(h, x):
            h = jnp.tanh(w @ h + x)
            return h, {"twice": h * 2, "x": x}
        return scan(step, h, xs)
    return run


def accumulation(scan):
    """A carry that is not differentiated, one that is constant, one whose tangent appears late."""
    def run(w, h, xs):
        def step(carry, x):
            i, fixed, late = carry
            late = (late[1], jnp.sin(x * fixed) + i)
            return (i + 1, fixed, late), late[0] * w[0]
        return scan(step, (0, h, (jnp.zeros(3), jnp.ones(3))), xs)
    return run


def check(got, want, **tolerance):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        if a.dtype == jax.float0:
            assert b.dtype == jax.float0 and a.shape == b.shape
            continue
        np.testing.assert_allclose(a, b, **{"rtol": 2e-4, "atol": 2e-4, **tolerance})


def loss(run):
    return lambda *args: sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(run(*args)))


TRANSFORMS = {
    "itself": lambda f: f,
    "jvp": lambda f: lambda *args: jax.jvp(f, args, tuple(jnp.cos(a) for a in args)),
    "jvp of the carry": lambda f: lambda w, h, xs: jax.jvp(lambda h: f(w, h, xs), (h,), (h,)),
    "grad": lambda f: jax.grad(loss(f), (0, 1, 2)),
    "grad of the weights": lambda f: jax.grad(loss(f)),
    "linearize": lambda f: lambda w, h, xs: jax.linearize(lambda h: f(w, h, xs), h)[1](h),
    "forward over reverse": lambda f: jax.jacfwd(jax.grad(loss(f), 1), 1),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(loss(f), 2), 1),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(loss(f), 1), 0),
    "third": lambda f: jax.jacfwd(jax.jacrev(jax.grad(loss(f), 1), 1), 1),
}


@pytest.mark.parametrize(("how", "options"), [
    *[(how, {}) for how in TRANSFORMS],
    *[(how, options) for how in ("itself", "grad", "jvp of the carry")
      for options in ({"reverse": True}, {"unroll": 2})],
])
@pytest.mark.parametrize("program", [network, accumulation])
def test_as_a_loop_in_python(how, program, options):
    transform = TRANSFORMS[how]
    ours = program(lambda f, c, xs: lax.scan(f, c, xs, **options))
    reverse = options.get("reverse", False)
    want = transform(program(lambda f, c, xs: in_python(f, c, xs, reverse)))(W, H, XS)
    check(jax.jit(transform(ours))(W, H, XS), want)
    check_jaxpr(dce(jax.make_jaxpr(transform(ours))(W, H, XS)).jaxpr)


@pytest.mark.parametrize("how", ["itself", "grad", "jvp"])
def test_outside_of_jit(how):
    check(TRANSFORMS[how](network(lax.scan))(W, H, XS),
          TRANSFORMS[how](network(in_python))(W, H, XS))


@pytest.mark.parametrize("in_axes", [(0, None, None), (None, 1, None), (None, None, 1), (1, 0, 2)])
@pytest.mark.parametrize("how", ["itself", "grad", "jvp"])
@pytest.mark.parametrize("program", [network, accumulation])
def test_batched(in_axes, how, program):
    args = [np.stack([a, a + 1, a * 2], axis) if axis is not None else a
            for a, axis in zip((W, H, XS), in_axes, strict=True)]
    run = jax.jit(TRANSFORMS[how](program(lax.scan)))
    each = [run(*[a if axis is None else np.take(a, i, axis)
                  for a, axis in zip(args, in_axes, strict=True)]) for i in range(3)]
    check(jax.jit(jax.vmap(run, in_axes))(*args), jax.tree.map(lambda *xs: jnp.stack(xs), *each))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "int8", "uint32", "bool"])
@pytest.mark.parametrize("unroll", [1, 3, True])
def test_dtypes_are_kept(dtype, unroll):
    xs = (np.arange(8).reshape(4, 2) % 3).astype(dtype)
    carry, ys = lax.scan(lambda c, x: (x, (c, x)), jnp.zeros(2, dtype), xs, unroll=unroll)
    assert carry.dtype == ys[0].dtype == xs.dtype
    np.testing.assert_array_equal(carry, xs[-1])
    np.testing.assert_array_equal(ys[0], np.concatenate([np.zeros((1, 2), xs.dtype), xs[:-1]]))


def test_no_iterations_and_no_arrays():
    carry, ys = lax.scan(lambda c, x: (c + x.sum(), x * 2), 1.0, np.zeros((0, 3), np.float32))
    assert float(carry) == 1.0 and ys.shape == (0, 3)
    check(jax.grad(lambda c: lax.scan(lambda c, x: (c * x, None), c, np.zeros(0))[0])(2.0), 1.0)
    assert float(lax.scan(lambda c, _: (c * 2, None), 1.0, None, length=3)[0]) == 8
    assert lax.scan(lambda c, _: (c, None), (), None, length=2) == ((), None)
    assert float(lax.scan(lambda c, x: (c + x, None), 0.0, jnp.ones(1))[0]) == 1


def test_keys_are_scanned():
    keys = jax.random.split(jax.random.key(0), 3)
    key, draws = lax.scan(lambda k, x: (x, jax.random.uniform(x)), jax.random.key(1), keys)
    assert key == keys[-1]
    check(draws, jnp.stack([jax.random.uniform(k) for k in keys]))


def test_a_function_is_traced_once():
    traces = []

    def step(c, x):
        traces.append(1)
        return c + x, c

    for n in (3, 4, 5):
        lax.scan(step, np.float32(0), jnp.ones(n))
    assert len(traces) == 1


def test_size_does_not_grow_with_the_length():
    def sizes(n):
        f = jax.jit(jax.grad(lambda w: loss(network(lax.scan))(w, H, np.ones((n, 3), np.float32))))
        return len(f.lower(W).as_text())

    # of a few steps arithmetic on short rows is written in another way
    assert abs(sizes(5_000) - sizes(40_000)) < 0.02 * sizes(5_000)


def scans_of(f, *args):
    closed = dce(jax.make_jaxpr(f)(*args))
    return [e for e in closed.eqns if e.primitive.name == "scan"]


def test_residuals_are_stacked_once_and_invariants_not_at_all():
    def run(w, xs):
        def step(h, x):
            h = jnp.sin(h * jnp.exp(w)) + x  # exp(w) is the same in all iterations
            return h, h
        return lax.scan(step, jnp.zeros(()), xs)[1].sum()

    forward, backward = scans_of(jax.grad(run, (0, 1)), 0.5, jnp.ones(4))
    stacked = forward.outvars[forward.params["num_carry"]:]
    assert len(stacked) <= 3  # cos(h * exp(w)) and h; the results are summed
    assert all(v.aval.shape == (4,) for v in stacked)
    assert backward.params["reverse"]


def test_broadcast_residuals_are_stacked_as_they_were_before():
    def run(x):
        return lax.scan(lambda c, _: (c / jnp.sum(c * c), None), x, None, length=4)[0].sum()

    forward, _ = scans_of(jax.grad(run), jnp.arange(1.0, 6))
    stacked = [v.aval.shape for v in forward.outvars[forward.params["num_carry"]:]]
    assert (4,) in stacked and stacked.count((4, 5)) <= 2


def test_broadcast_arguments_are_not_stacked_again():
    def run(h, xs):
        return lax.scan(lambda h, x: (h * x, None), h, xs)[0].sum()

    forward, backward = scans_of(jax.value_and_grad(run), jnp.ones(5), jnp.ones(4))
    assert [v.aval.shape for v in forward.outvars] == [(5,)]
    assert (4,) in [v.aval.shape for v in backward.invars]


def test_arguments_and_results_are_not_stacked_again():
    def run(h, xs):
        def step(h, x):
            y = h * x
            return y, jnp.exp(y)  # the derivatives need h, x and exp(y)
        return jnp.sum(lax.scan(step, h, xs)[1] ** 2)

    forward, _ = scans_of(jax.grad(run), 1.0, jnp.ones(4))
    assert len(forward.outvars) - forward.params["num_carry"] <= 2  # exp(y), no h: d(y)/dh = x


def test_dead_carries_results_and_arguments_go():
    def run(a, b, xs, dead):
        def step(carry, x):
            a, b = carry
            return (a + x[0], b * a), (a, jnp.sin(b) + x[1])
        return lax.scan(step, (a, b), (xs, dead))[1][0]

    (eqn,) = scans_of(run, 1.0, 2.0, jnp.ones(3), jnp.ones(3))
    assert eqn.params["num_carry"] == 1
    assert len(eqn.invars) == 2 and len(eqn.outvars) == 2


def test_transposed_alone():
    f = lambda xs: lax.scan(lambda c, x: (c + x, c * 2), jnp.zeros(3), xs)  # noqa: E731
    cts = jnp.ones(3), jnp.ones((5, 3))
    got, = jax.linear_transpose(f, XS)(cts)
    want, = jax.vjp(f, XS)[1](cts)
    check(got, want)


def test_under_disable_jit():
    with jax.disable_jit():
        got = lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0), reverse=True)
    check(got, lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0), reverse=True))


def test_a_body_is_traced_for_the_named_axes_around():
    def step(c, x):
        return c + lax.axis_size("i"), x

    def f(x):
        return lax.scan(step, x, None, length=2)[0]

    for n in (3, 5):
        check(jax.vmap(f, axis_name="i")(jnp.zeros(n)), jnp.full(n, 2.0 * n))
    with pytest.raises(NameError, match="unbound axis name: i"):
        jax.vmap(f)(jnp.zeros(3))


def test_a_body_may_give_a_list():
    got = lax.scan(lambda c, x: [c + x, c], 0.0, jnp.arange(3.0))
    assert type(got) is list
    check(got, lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0)))


def test_carries_settle():
    carry, _ = lax.scan(lambda c, x: (c + 1.5, x), 0, XS)
    assert carry.dtype == np.float32 and not carry.weak_type
    carry, _ = lax.scan(lambda c, x: (c + np.float16(1), None), 0.0, None, length=2)
    assert carry.dtype == np.float16 and not carry.weak_type


def _loops(step):
    """Names of loops with this step, and their calls, of an initial carry."""
    yield "scan", lambda init: lax.scan(lambda c, x: (step(c), None), init, None, length=2)
    yield "fori_loop", lambda init: lax.fori_loop(0, 2, lambda i, c: step(c), init)
    yield "while_loop", lambda init: lax.while_loop(lambda c: jnp.array(False), step, init)


@pytest.mark.parametrize(("step", "init", "cures"), [
    (lambda c: c + 1.5, np.arange(3), ["jnp.asarray(init, 'float32')"]),
    (lambda c: c + 1, False, ["jnp.asarray(init, 'int32')"]),
    (lambda c: c + jnp.ones(3), 1.0, ["jnp.broadcast_to(init, (3,))"]),
    (lambda c: c + jnp.ones((2, 3), np.float32), np.ones(3, np.float16),
     ["jnp.asarray(jnp.broadcast_to(init, (2, 3)), 'float32')"]),
    (lambda c: (c["a"], c["b"]), {"a": H, "b": H}, None),
    (lambda c: {"a": c["a"] + 1j, "b": c["b"], "c": c["c"] * H[:, None]},
     {"a": H, "b": np.arange(3), "c": np.arange(3)},
     ["jnp.asarray(init['a'], 'complex64')",
      "jnp.asarray(jnp.broadcast_to(init['c'], (3, 3)), 'float32')"]),
    (lambda c: c[None], H, None), (lambda c: jnp.append(c, 1.0), H, None),
    (lambda c: c.astype(int), H, None), (jax.random.key_data, jax.random.key(0), None),
])
def test_a_carry_that_the_body_keeps_is_told_to_start_with(step, init, cures):
    for name, loop in _loops(step):
        with pytest.raises(TypeError, match="must have ") as raised:
            loop(init)
        told = re.search(r"Or start with a carry of the output's type: (.*)\.$", str(raised.value))
        shapes = any(["broadcast" in cure for cure in cures or ()])
        if not cures or (name == "while_loop" and shapes):  # whose condition takes no other shape
            assert told is None
            continue
        called = "init" if name == "scan" else "init_val"
        assert told[1] == ", ".join(cures).replace("init", called)
        made = [eval(cure, {"init": init, "jnp": jnp}) for cure in cures]
        if type(init) is dict:
            loop(init | dict(zip(re.findall(r"init\['(\w)'\]", str(cures)), made, strict=True)))
        else:
            loop(made[0])


def test_no_carry_of_the_librarys_own_is_told():
    with pytest.raises(TypeError, match="must have equal types") as raised:
        odeint(lambda y, t: y * 1j, jnp.ones(3), jnp.linspace(0, 1, 4))
    assert "Or start" not in str(raised.value)


def test_bodies_run_once_more_only_where_that_may_tell_something():
    ran = []

    def step(c, x):
        ran.append(c)
        return c.astype(int), None

    with pytest.raises(TypeError, match="must have equal types"):
        lax.scan(step, H, None, length=2)
    assert len(ran) == 1


@pytest.mark.parametrize(("step", "init", "xs", "options", "error", "message"), [
    (lambda c, x: (jnp.ones(3), x), 0.0, XS, {}, TypeError,
     r"The input carry c has type float32\[\] but .* float32\[3\], so the shapes do not match"),
    (lambda c, x: ({"a": c}, x), 0.0, XS, {}, TypeError, "same pytree structure"),
    (lambda state, x: ((state[0],), x), (1, 2), XS, {}, TypeError,
     "carry state is a tuple of length 2 but .* of length 1, so the lengths do not match"),
    (lambda c, x: c, 0.0, XS, {}, TypeError, r"body output must be a pair, got float32\[\]"),
    (lambda c, x: (c, x), 0.0, None, {}, ValueError, "no values to scan over"),
    (lambda c, x: (c, x), 0.0, XS, {"length": 3}, ValueError, r"disagrees with .* \[5\]"),
    (lambda c, x: (c, x), 0.0, {"a": XS, "b": H}, {"length": 5}, ValueError,
     r"disagrees with leading axis sizes \[5, 3\]\. xs\['b'\] is of the shape \(3,\)"),
    (lambda c, x: (c, x), 0.0, {"a": XS, "b": XS, "c": H}, {}, ValueError,
     r"sizes: 5, 5, 3\. xs\['a'\] is of the shape \(5,.*\), xs\['c'\] of \(3,\)"),
    (lambda c, x: (c, x), 0.0, {"a": XS, "b": 1.0}, {}, ValueError,
     r"scan over: 1\.0\. It is xs\['b'\]\. What all iterations share comes from the "),
    (lambda c, x: (c, x), 0.0, 10, {}, ValueError,
     r"scan over: 10\. .* jnp\.arange\(10\), .* length=10"),
    (lambda c, x: (c, x), 0.0, (XS, H), {}, ValueError, "different leading axis sizes: 5, 3"),
    (lambda c, x: (c, x), 0.0, 1.0, {}, ValueError, "no leading axis"),
    (lambda c, x: (c, x), 0.0, XS, {"unroll": -1}, ValueError, "non-negative"),
    (3, 0.0, XS, {}, TypeError, "callable"),
])
def test_bad_arguments(step, init, xs, options, error, message):
    with pytest.raises(error, match=message):
        lax.scan(step, init, xs, **options)


def test_what_the_body_does_not_change_is_a_constant():
    def run(w, h, xs):
        (_, last), _ = lax.scan(lambda c, x: ((c[0], jnp.tanh(c[0] @ c[1] + x)), None), (w, h), xs)
        return jnp.sum(last)

    (eqn,) = [e for e in jax.make_jaxpr(run)(W, H, XS).eqns if e.primitive.name == "scan"]
    assert eqn.params["num_consts"] == eqn.params["num_carry"] == 1
    assert not any([v.aval.shape == (5, 3, 3)
                    for e in jax.make_jaxpr(jax.grad(run))(W, H, XS).eqns for v in e.outvars])

    def expected(w, h, xs):
        for x in xs:
            h = jnp.tanh(w @ h + x)
        return jnp.sum(h)

    for got, want in zip(jax.grad(run, (0, 1, 2))(W, H, XS),
                         jax.grad(expected, (0, 1, 2))(W, H, XS), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_results_of_a_weak_carry_are_weak():
    carry, ys = lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0))
    assert ys.weak_type and not carry.weak_type
    carry, ys = lax.scan(lambda c, x: (c + x, c), 0, jnp.arange(3.0))
    assert ys.dtype == np.float32 and not ys.weak_type and not carry.weak_type


def test_weak_types_of_derivatives_by_carries():
    """That by a weakly typed carry that the body makes strong is of strong type, as in JAX."""
    two = np.float32(2)

    def loop(x):
        return lax.fori_loop(0, 3, lambda i, c: c * two, x)

    def stacked(x):
        return lax.scan(lambda c, _: (c * two, c), x, None, length=2)[1].sum()

    assert not loop(1.0).weak_type and not jax.grad(loop)(1.0).weak_type
    assert jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x))(1.0).weak_type
    assert jax.grad(stacked)(1.0).weak_type
    assert str(jax.make_jaxpr(loop)(1.0)).count("convert") == 1


def test_only_what_differs_is_asked_how_it_lies(monkeypatch):
    """An eager loop pays nothing for carries and branches of no mesh beside those of one."""
    asked = []
    monkeypatch.setattr("pyjx.lax.agreement.cut_as", lambda a, b: asked.append(b) or a)
    loops = [
        lambda: lax.scan(lambda c, x: (c + x, c), jnp.float32(0), jnp.arange(3.0)),
        lambda: lax.fori_loop(0, 3, lambda i, c: c + 1, jnp.float32(0)),
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, jnp.float32(0)),
        lambda: lax.cond(True, lambda x: x, lambda x: -x, jnp.float32(0))]
    for loop in loops:
        loop()
    assert not asked
    with pytest.raises(TypeError, match="must have equal types"):
        lax.scan(lambda c, _: (c > 0, None), jnp.float32(0), None, length=2)
    assert asked
