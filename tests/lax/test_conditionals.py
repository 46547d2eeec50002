"""cond and switch: against the branch alone, in every transformation."""

from collections import defaultdict

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.passes.dce import dce

rng = np.random.default_rng(0)
X, Y = [rng.standard_normal(3).astype(np.float32) for _ in range(2)]

BRANCHES = [
    lambda x, y: (jnp.sin(x) * y, x),
    lambda x, y: (x * y * y, jnp.cos(y)),
    lambda x, y: (jnp.zeros(3), x + y),
]


def check(got, want):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def loss(f):
    return lambda *args: sum(jnp.sum(jnp.cos(x)) for x in f(*args))


TRANSFORMS = {
    "itself": lambda f: f,
    "jvp": lambda f: lambda x, y: jax.jvp(f, (x, y), (y, x)),
    "jvp of one": lambda f: lambda x, y: jax.jvp(lambda x: f(x, y), (x,), (y,)),
    "grad": lambda f: jax.grad(loss(f), (0, 1)),
    "grad of one": lambda f: jax.grad(loss(f), 1),
    "linearize": lambda f: lambda x, y: jax.linearize(lambda x: f(x, y), x)[1](y),
    "forward over reverse": lambda f: jax.hessian(loss(f)),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(loss(f), 1)),
    "third": lambda f: jax.jacfwd(jax.jacrev(jax.jacfwd(loss(f))), 1),
}


@pytest.mark.parametrize("how", TRANSFORMS)
def test_switch_is_its_branch(how):
    transform = TRANSFORMS[how]
    traced = lambda i, x, y: transform(  # noqa: E731
        lambda x, y: lax.switch(i, BRANCHES, x, y))(x, y)
    compiled = jax.jit(traced)
    for index in (-5, 0, 1, 2, 9):
        check(compiled(index, X, Y), transform(BRANCHES[min(max(index, 0), 2)])(X, Y))
    check_jaxpr(dce(jax.make_jaxpr(traced)(0, X, Y)).jaxpr)


@pytest.mark.parametrize("how", ["itself", "jvp of one", "grad", "third"])
@pytest.mark.parametrize("predicate", [True, np.bool_(False), 0, 2.5])
def test_cond_closes_over_what_it_likes(how, predicate):
    def chosen(choose):
        def f(x, y):
            k = jnp.sin(y)
            return choose(lambda x: (x * k, y), lambda x: (k * y, x * x), x)
        return TRANSFORMS[how](f)(X, Y)

    want = chosen(lambda a, b, x: (a if predicate else b)(x))
    if how != "third":
        check(chosen(lambda a, b, x: lax.cond(predicate, a, b, x)), want)
    check(jax.jit(lambda p: chosen(lambda a, b, x: lax.cond(p, a, b, x)))(predicate), want)


@pytest.mark.parametrize("large", [
    2**70, 2**31, np.int64(2**40), np.uint64(2**32), np.array(2**63, np.uint64), 1e-300,
    np.float64(1e-300), np.array(-1e-300), np.nan, jnp.bfloat16.dtype.type(1e-40),
    np.array(1e-40, jnp.bfloat16)], ids=repr)
def test_a_predicate_of_the_host_holds_unless_it_is_zero(large):
    """Arrays of 32 bits would have 0 of each."""
    assert int(lax.cond(large, lambda: 1, lambda: 0)) == 1
    assert int(jax.jit(lambda: lax.cond(large, lambda: 1, lambda: 0))()) == 1
    zero = type(large)(0) if not isinstance(large, np.ndarray) else np.zeros_like(large)
    assert int(lax.cond(zero, lambda: 1, lambda: 0)) == 0


@pytest.mark.parametrize("how", ["itself", "grad", "jvp", "third"])
@pytest.mark.parametrize("in_axes", [(0, None, None), (None, 0, None), (0, 1, 0), (None, 1, 0)])
def test_batched(how, in_axes):
    run = jax.jit(lambda i, x, y: TRANSFORMS[how](
        lambda x, y: lax.switch(i, BRANCHES, x, y))(x, y))
    args = [a if axis is None else np.stack([a, a + 1, a + 2], axis)
            for a, axis in zip((np.int32(0), X, Y), in_axes, strict=True)]
    each = [run(*[a if axis is None else np.take(a, i, axis)
                  for a, axis in zip(args, in_axes, strict=True)]) for i in range(3)]
    check(jax.jit(jax.vmap(run, in_axes))(*args), jax.tree.map(lambda *xs: jnp.stack(xs), *each))


def test_a_branch_not_taken_has_no_derivative():
    root = lambda x: lax.cond(x > 0, jnp.sqrt, lambda x: 0.0 * x, x)  # noqa: E731
    np.testing.assert_array_equal(jax.vmap(jax.grad(root))(np.float32([0, 4, -1])), [0, 0.25, 0])


def test_in_loops():
    def step(c, i):
        return lax.switch(i % 3, [jnp.sin, jnp.square, lambda c: c + X[0]], c), c

    def in_python(c):
        ys = []
        for i in range(6):
            ys.append(c)
            c = [jnp.sin, jnp.square, lambda c: c + X[0]][i % 3](c)
        return jnp.sum(jnp.stack(ys))

    check(jax.grad(lambda c: lax.scan(step, c, jnp.arange(6))[1].sum())(X),
          jax.grad(in_python)(X))


def test_older_forms():
    assert lax.cond(True, 1.0, lambda x: x + 1, 2.0, lambda x: x * 3) == 2
    assert lax.cond(False, 1.0, lambda x: x + 1, 2.0, lambda x: x * 3) == 6
    assert lax.cond(True, lambda x: x + 1, lambda x: x, operand=3.0) == 4
    assert lax.cond(True, lambda x: 1, lambda x: 2, operand=None) == 1
    assert lax.switch(0, [lambda x: x + 1], 3.0) == 4


def test_the_first_branch_says_whether_a_result_is_weakly_typed():
    strong, weak = (lambda: jnp.float32(1)), (lambda: 2.0)
    assert lax.cond(True, strong, weak).weak_type  # the branch of False is the first
    assert not lax.cond(True, weak, strong).weak_type
    assert lax.switch(2, [weak, strong, strong]).weak_type
    assert lax.cond(True, weak, weak).weak_type
    assert lax.cond(True, strong, weak).dtype == np.float32


def test_dead_results_and_operands_go():
    closed = dce(jax.make_jaxpr(lambda p, x, y: lax.cond(
        p, lambda x, y: (x, y * 2), lambda x, y: (x + 1, y), x, y)[0])(True, X, Y))
    eqn = next(e for e in closed.eqns if e.primitive.name == "cond")
    assert len(eqn.invars) == 2 and len(eqn.outvars) == 1
    check_jaxpr(closed.jaxpr)


def test_branches_share_their_places_for_residuals():
    """Each needs one array of the same type in the backward pass: one is kept."""
    closed = dce(jax.make_jaxpr(jax.grad(lambda x: lax.cond(
        x[0] > 0, lambda x: jnp.sin(x).sum(), lambda x: jnp.exp(x).sum(), x)))(X))
    forward = next(e for e in closed.eqns if e.primitive.name == "cond")
    assert [v.aval.shape for v in forward.outvars] == [(3,)]


def test_only_one_branch_is_traced_under_disable_jit():
    with jax.disable_jit():
        assert lax.cond(True, lambda x: x + 1, lambda x: 1 / 0, 1.0) == 2
        assert lax.switch(1, [lambda x: 1 / 0, lambda x: x], 1.0) == 1


identity = lambda x: x  # noqa: E731


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: lax.cond(np.ones(2) > 0, identity, identity, 1.0), TypeError, "Pred must be a scalar"),
    (lambda: lax.cond("a", identity, identity, 1.0), TypeError, "Pred must be a scalar"),
    (lambda: lax.cond(None, identity, identity, 1.0), TypeError, "cond predicate is None"),
    (lambda: lax.cond(2j, identity, identity, 1.0), TypeError, "boolean or number, got complex64"),
    (lambda: lax.cond(True, 1, 2, 3), TypeError, "arguments should be callable"),
    (lambda: lax.cond(True, identity, identity, 1, operand=2), TypeError, "no positional operands"),
    (lambda: lax.cond(True, identity, lambda x: (x, x), 1.0), TypeError,
     r"true_fun output is a pytree leaf but false_fun output is a <class 'tuple'>"),
    (lambda: lax.cond(True, lambda: defaultdict(int, a=1), lambda: defaultdict(float, a=1)),
     TypeError, r"metadata \(<class 'int'>, \('a',\)\) but .* metadata \(<class 'float'>, "),
    (lambda: lax.cond(True, lambda x: {"a": x, "b": x}, lambda x: {2: x}, 1.0), TypeError,
     r"2 children but .* 1 child, so .* the symmetric difference of key sets: \{'a' 'b' 2\}\."),
    (lambda: lax.cond(True, lambda x: {"a": x}, lambda x: {"a": jnp.ones(2)}, 1.0), TypeError,
     r"The output of true_fun at path \['a'\] has type float32\[\] but .* float32\[2\]"),
    (lambda: lax.switch(0, [identity, lambda x: 1], 1.0), TypeError, "dtypes do not match"),
    (lambda: lax.switch(0, [], 1.0), ValueError, "Empty branch sequence"),
    (lambda: lax.switch(1.5, [identity] * 2, 1.0), TypeError, "Index type must be an integer"),
    (lambda: lax.switch(np.ones(2, int), [identity] * 2, 1.0), TypeError, "index must be scalar"),
    (lambda: lax.switch(0, [1, 2], 1.0), TypeError, "sequence of callables"),
])
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("policy", [
    "everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable"])
@pytest.mark.parametrize("branch", [0, 1, 2])
def test_checkpointed_results_that_branches_save(policy, branch):
    def f(index, x):
        y, z = jax.lax.switch(index, [
            lambda x: (jnp.dot(x, x), x[0]), lambda x: (jnp.sin(x), jnp.dot(x, x)[0]),
            lambda x: (x, jnp.full(3, 2.0)),
        ], x)
        return jnp.sum(jnp.cos(y * z[0]))

    x = jnp.asarray(np.random.default_rng(0).standard_normal((3, 3)), jnp.float32)
    g = jax.checkpoint(f, policy=getattr(jax.checkpoint_policies, policy))
    expected = jax.grad(f, argnums=1)
    for transform in (lambda f: f, jax.jit, lambda f: jax.jit(jax.checkpoint(f))):
        np.testing.assert_allclose(jax.grad(transform(g), argnums=1)(branch, x),
                                   expected(branch, x), rtol=1e-5, atol=1e-6)


def test_results_that_all_branches_save_are_not_computed_again():
    def f(p, x):
        return jnp.sum(jnp.sin(jax.lax.cond(p, jnp.sin, jnp.cos, x)))

    saving = jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)
    text = str(jax.make_jaxpr(jax.grad(saving, argnums=1))(True, jnp.ones(3)))
    before, after = text.split("differentiated=True")
    assert before.count("cond[") == 1  # the values
    assert after.count("cond[") == 1  # their derivative


def test_a_function_of_several_branches_is_traced_once():
    calls = []

    def square(x):
        calls.append(x)
        return x * x

    assert lax.switch(2, [square, jnp.sin, square, square], 3.0) == 9
    assert lax.cond(True, square, square, jnp.ones(2)).tolist() == [1, 1]
    assert len(calls) == 2


def test_what_all_branches_pass_on_needs_no_choice():
    def f(x, shared):
        return lax.cond(x > 1, lambda x, s: (2 * x, s), lambda x, s: (x, s), x, shared)

    out, shared = jax.vmap(f, (0, None), (0, None))(jnp.arange(3.0), jnp.ones(2))
    assert out.tolist() == [0, 1, 4] and shared.tolist() == [1, 1]
    (eqn,) = [e for e in jax.make_jaxpr(f)(1.0, jnp.ones(2)).eqns if e.primitive.name == "cond"]
    assert len(eqn.outvars) == 1

    def g(i, x, shared):
        branches = [lambda x, s: (x, s), lambda x, s: (-x, s), lambda x, s: (3 * x, s)]
        return lax.switch(i, branches, x, shared)

    out, shared = jax.vmap(g, (0, 0, None), (0, None))(jnp.arange(3), jnp.ones(3), jnp.ones(2))
    assert out.tolist() == [1, -1, 3]
    assert isinstance(lax.cond(True, lambda s: s, lambda s: s, 1.0), jax.Array)
    assert jax.grad(lambda s: lax.cond(s > 0, lambda s: s, lambda s: s, s))(2.0) == 1


def test_residuals_of_a_branch_may_be_keys():
    noisy = jax.custom_vjp(lambda key, x: x * 2.0)
    noisy.defvjp(lambda key, x: (x * 2.0, key),
                 lambda key, ct: (None, ct * jax.random.normal(key)))

    def f(x):
        return lax.cond(x.sum() > 0, lambda key, x: noisy(jax.random.fold_in(key, 1), x),
                        lambda key, x: x, jax.random.key(0), x).sum()

    drawn = jax.random.normal(jax.random.fold_in(jax.random.key(0), 1))
    for grad in (jax.grad(f), jax.jit(jax.grad(f))):
        np.testing.assert_allclose(grad(jnp.ones(3)), [drawn] * 3, rtol=1e-6)
        np.testing.assert_allclose(grad(-jnp.ones(3)), [1.0] * 3)


@pytest.mark.parametrize("operand", [4.0, np.float32(4), np.ones(2, np.float32), jnp.ones(2)],
                         ids=["python", "scalar", "numpy", "array"])
def test_what_all_branches_pass_on_is_not_mapped_with_the_choice(operand):
    def same(_, y):
        return lax.scan(lambda c, _: (c, None), y, None, length=2)[0]

    for choose in (lambda x, y: lax.cond(x > 1, same, same, x, y),
                   lambda x, y: lax.switch(x.astype(int), [same] * 3, x, y)):
        out = jax.vmap(choose, (0, None), None)(jnp.arange(2.0), operand)
        assert isinstance(out, jax.Array)
        assert out.weak_type is isinstance(operand, float)
        np.testing.assert_array_equal(out, operand)
