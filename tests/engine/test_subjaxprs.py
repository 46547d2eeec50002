"""What a primitive that holds programs costs: its rules on the one engine, and that they are right.

`call_p` runs a program, `remat_p` does and computes again in the backward pass what it needs there,
`choose_p` runs one of two, `repeat_p` runs one several times.
"""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.passes.dce import dce
from pyjx.core.primitive import Primitive
from pyjx.engine.calls import define_call
from pyjx.engine.holders import Held, Holder
from pyjx.engine.linearize import linearize_flat
from pyjx.engine.subjaxprs import jvp_jaxpr, nonzero_flags, with_inputs, with_zeros
from pyjx.engine.tangents import UndefinedPrimal, Zero

# -- a call: one line ------------------------------------------------------------------------------

call_p = define_call(Primitive("test_call", multiple_results=True, cached=False,
                               decomposition=lambda *xs, jaxpr: jaxpr_as_fun(jaxpr)(*xs)))

# -- rematerialisation: the residuals are the arguments --------------------------------------------


def remat_linearize(trace, primals, tangents, *, jaxpr):
    """The cut that keeps nothing of the known part: the linear part computes it again."""
    pushed = jvp_jaxpr(jaxpr, nonzero_flags(tangents))
    n = len(jaxpr.outvars)
    outs = remat_p.bind(*primals, jaxpr=jaxpr)
    moving = [t for t in tangents if type(t) is not Zero]
    results = trace.record(remat_p, [*primals, *moving], {"jaxpr": pushed.jaxpr})
    return outs, with_zeros(results[n:], pushed.nonzero, jaxpr.out_avals)


def remat_transpose(cts, *operands, jaxpr):
    """Linearize, then transpose: the program of the backward pass, as one call."""
    linear = [type(x) is UndefinedPrimal for x in operands]
    wanted = nonzero_flags(cts)

    def backward(*args):
        values, given = iter(args), with_zeros(args[linear.count(False):], wanted, jaxpr.out_avals)
        known = [None if lin else next(values) for lin in linear]

        def of_linear(*xs):
            fill = iter(xs)
            return jaxpr_as_fun(jaxpr)(*[next(fill) if lin else k
                                         for lin, k in zip(linear, known, strict=True)])

        zeros = [jnp.zeros(x.aval.shape, x.aval.dtype) for x in operands
                 if type(x) is UndefinedPrimal]
        return linearize_flat(of_linear, zeros)[1].backward(given)

    values = [x for x in operands if type(x) is not UndefinedPrimal]
    outs = iter(backward(*values, *[ct for ct in cts if type(ct) is not Zero]))
    return [next(outs) if lin else None for lin in linear]


remat_p = define_call(Primitive(
    "test_remat", multiple_results=True, cached=False, transpose=remat_transpose,
    decomposition=lambda *xs, jaxpr: jaxpr_as_fun(jaxpr)(*xs)))
remat_p.holder.linearize = remat_linearize

# -- a choice between two programs ----------------------------------------------------------------

choose_p = Primitive(
    "test_choose", multiple_results=True, cached=False,
    decomposition=lambda which, *xs, branches: [
        lax.select(jnp.broadcast_to(which, a.shape), a, b)
        for a, b in zip(*[jaxpr_as_fun(b)(*xs) for b in branches], strict=True)])


class Choose(Holder):
    """The first operand chooses; no value has a role."""

    def held(self, params):
        first = params["branches"][0]
        return Held(params["branches"], 1, [None] * len(first.invars), [None] * len(first.outvars),
                    0, 0)

    def derived_params(self, params, programs, ins, outs, linear=False):
        return {"branches": tuple(programs)}


Choose(choose_p)

# -- a loop ---------------------------------------------------------------------------------------


def run_repeat(*xs, jaxpr, consts, times):
    carry = list(xs[consts:])
    for _ in range(times):
        carry = jaxpr_as_fun(jaxpr)(*xs[:consts], *carry)
    return carry


repeat_p = Primitive("test_repeat", multiple_results=True, cached=False, decomposition=run_repeat)


class Repeat(Holder):
    """Constants come first, then the carry; what comes to a carry is put behind it."""

    constant, carried, loops = "constant", "carry", True
    lacks = ("accumulate", "cut", "linearize", "split", "transpose")

    def held(self, params):
        n, first = len(params["jaxpr"].outvars), params["consts"]
        return Held([params["jaxpr"]], 0, ["constant"] * first + ["carry"] * n, ["carry"] * n,
                    first, n)

    def derived_params(self, params, programs, ins, outs, linear=False):
        return {**params, "jaxpr": programs[0], "consts": ins.count("constant")}

    def arranged(self, programs, operands, ins, outs, params):
        order = sorted(range(len(ins)), key=lambda i: ins[i] == "carry")
        return ([with_inputs(programs[0], tuple(order))], [operands[i] for i in order],
                [ins[i] for i in order], outs, None)


Repeat(repeat_p)

# -- a loop that is linear in its carry ------------------------------------------------------------

powers_p = Primitive("test_powers", multiple_results=True, cached=False, decomposition=run_repeat)


class Powers(Repeat):
    """It has a transpose, too: the same loop over the transposed program."""

    lacks = ("cut", "linearize")


Powers(powers_p)

# -- the checks -----------------------------------------------------------------------------------


def single(x, y):
    return jnp.sin(x) * y, jnp.cos(x * y), x


def other(x, y):
    return x * y * y, x + y, y


x, y = np.linspace(0.1, 1, 3).astype(np.float32), np.linspace(1, 2, 3).astype(np.float32)
traced, traced_other = [jax.make_jaxpr(f)(x, y) for f in (single, other)]
step = jax.make_jaxpr(lambda k, a, b: (jnp.sin(a) * k, b + a))(x, x, y)
HOLDERS = {
    "call": lambda x, y: call_p.bind(x, y, jaxpr=traced),
    "remat": lambda x, y: remat_p.bind(x, y, jaxpr=traced),
    "choose": lambda x, y: choose_p.bind(True, x, y, branches=(traced, traced_other)),
    "repeat": lambda x, y: repeat_p.bind(y, x, x, jaxpr=step, consts=1, times=3),
}


@pytest.fixture(params=sorted(HOLDERS))
def holder(request):
    return HOLDERS[request.param]


def repeated(x, y):
    return run_repeat(y, x, x, jaxpr=step, consts=1, times=3)


def check_equal(got, want):
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


def loss(f):
    return lambda x, y: sum([(o * (i + 1)).sum() for i, o in enumerate(f(x, y))])


def test_linear_loops_are_transposed():
    weights, start = np.arange(9, dtype=np.float32).reshape(3, 3) / 5, np.float32([1, 2, 3])
    body = jax.make_jaxpr(lambda w, b, a: w @ a + b)(weights, start, start)
    f = lambda b, a: powers_p.bind(weights, b, a, jaxpr=body, consts=2, times=3)[0]  # noqa: E731
    cts = jax.jit(jax.linear_transpose(f, start, start))(y)
    np.testing.assert_allclose(cts[1], np.linalg.matrix_power(weights.T, 3) @ y, rtol=1e-5)
    np.testing.assert_allclose(
        cts[0], sum(np.linalg.matrix_power(weights.T, k) for k in range(3)) @ y, rtol=1e-5)


@pytest.mark.parametrize("transform", [
    lambda f: f,
    lambda f: lambda x, y: jax.jvp(f, (x, y), (y, x)),
    lambda f: lambda x, y: jax.jvp(lambda a: f(a, y), (x,), (y,)),
    lambda f: jax.grad(loss(f), (0, 1)),
    lambda f: jax.grad(loss(f), 1),
    lambda f: jax.vmap(f, (0, None)),
    lambda f: jax.vmap(jax.grad(loss(f)), (None, 0)),
    lambda f: jax.jacfwd(jax.jacrev(loss(f))),
    lambda f: jax.jacrev(jax.jacrev(loss(f))),
    lambda f: lambda x, y: jax.linearize(f, x, y)[1](y, x),
])
@pytest.mark.parametrize("outer", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_as_the_program_itself(holder, transform, outer):
    args = (x, y)
    program = repeated if holder is HOLDERS["repeat"] else single
    if "vmap" in transform.__code__.co_names:
        args = (np.stack([x, y, x + y]), np.stack([y, x, x * y]))
        both = [transform(f)(*args[:1], y) if transform.__code__.co_consts[1] == (0, None)
                else transform(f)(x, args[1]) for f in (outer(holder), program)]
        check_equal(*both)
        return
    check_equal(outer(transform(holder))(*args), transform(program)(*args))


def test_dead_results_and_arguments_go():
    closed = jax.make_jaxpr(lambda x, y: HOLDERS["call"](x, y)[2])(x, y)
    check_jaxpr(closed)
    (eqn,) = dce(closed).eqns
    assert len(eqn.invars) == len(eqn.outvars) == 1
    assert not eqn.params["jaxpr"].eqns


@pytest.mark.parametrize("policy", [None, jax.checkpoint_policies.everything_saveable])
def test_a_choice_is_cut_by_a_policy(policy):
    f, g = [jax.grad(jax.checkpoint(loss(h), policy=policy), (0, 1))
            for h in (HOLDERS["choose"], single)]
    check_equal(f(x, y), g(x, y))
    check_equal(jax.jit(f)(x, y), g(x, y))


def test_a_carry_grows_to_what_comes_into_it():
    closed = jax.make_jaxpr(lambda x, y: jax.jvp(lambda y: HOLDERS["repeat"](x, y), (y,), (y,)))(
        x, y)
    check_jaxpr(closed)
    (eqn,) = [e for e in closed.eqns if e.primitive is repeat_p]
    assert (eqn.params["consts"], len(eqn.outvars)) == (2, 4)  # y moves a, which moves b
    both = jax.make_jaxpr(lambda x, y: HOLDERS["repeat"](x, y)[0])(x, y)
    (eqn,) = dce(both).eqns
    assert len(eqn.invars) == 2
    assert len(eqn.outvars) == 1


def test_wrong_calls_are_found():
    closed = jax.make_jaxpr(HOLDERS["call"])(x, y)
    broken = closed.eqns[0].replace(invars=closed.invars[:1])
    with pytest.raises(TypeError, match="takes 2 arguments, 1 are given"):
        check_jaxpr(closed.jaxpr.replace(eqns=[broken]))


def test_remat_keeps_its_arguments_only():
    def residuals(f):
        return jax.tree.leaves(jax.vjp(lambda x, y: jnp.tanh(jnp.sin(f(x, y)[0])), x, y)[1])

    assert len(residuals(HOLDERS["remat"])) < len(residuals(HOLDERS["call"]))
