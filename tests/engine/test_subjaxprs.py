"""What a primitive that holds programs costs: its rules on the one engine, and that they are right.

`call_p` runs a program, `remat_p` does and computes again in the backward pass what it needs there,
`choose_p` runs one of two.
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
from pyjx.engine.linearize import LinearTracer, linearize_flat
from pyjx.engine.subjaxprs import (
    batch_jaxpr,
    dependent_outputs,
    fixpoint,
    jvp_jaxpr,
    negated,
    nonzero_flags,
    part_of,
    selected,
    transpose_jaxpr,
    with_zeros,
)
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
    "test_remat", multiple_results=True, cached=False, linearize=remat_linearize,
    transpose=remat_transpose, decomposition=lambda *xs, jaxpr: jaxpr_as_fun(jaxpr)(*xs)))

# -- a choice between two programs ----------------------------------------------------------------


def choose_jvp(primals, tangents, *, branches):
    nonzero = nonzero_flags(tangents[1:])
    either = fixpoint(lambda flags: [a or b for a, b in zip(
        *[jvp_jaxpr(b, nonzero, flags).nonzero for b in branches], strict=True)],
        [False] * len(branches[0].outvars))
    pushed = tuple([jvp_jaxpr(b, nonzero, either).jaxpr for b in branches])
    moving = [t for t in tangents[1:] if type(t) is not Zero]
    results = choose_p.bind(*primals, *moving, branches=pushed)
    n = len(either)
    return results[:n], with_zeros(results[n:], either, branches[0].out_avals)


def choose_batch(trace, operands, dims, *, branches):
    assert dims[0] is None, "the toy takes one predicate for the batch"
    found = [batch_jaxpr(b, tuple(dims[1:]), trace.axis).dims for b in branches]
    places = tuple([None if a is b is None else 0 for a, b in zip(*found, strict=True)])
    batched = tuple([batch_jaxpr(b, tuple(dims[1:]), trace.axis, places).jaxpr for b in branches])
    return choose_p.bind(*operands, branches=batched), places


def choose_transpose(cts, which, *operands, branches):
    linear = tuple([type(x) is UndefinedPrimal for x in operands])
    pulled = tuple([transpose_jaxpr(b, linear, nonzero_flags(cts), True).jaxpr for b in branches])
    values = [x for x in operands if type(x) is not UndefinedPrimal]
    outs = iter(choose_p.bind(which, *values, *[ct for ct in cts if type(ct) is not Zero],
                              branches=pulled))
    return [None, *[next(outs) if lin else None for lin in linear]]


def choose_split(trace, operands, params):
    branches = params["branches"]
    linear = tuple([type(x) is LinearTracer and x._trace is trace for x in operands[1:]])
    either = tuple([any(d) for d in zip(
        *[dependent_outputs(b, linear) for b in branches], strict=True)])
    known = iter(choose_p.bind(*selected(operands, (True, *negated(linear))), branches=tuple(
        [part_of(b, negated(either), negated(linear)) for b in branches])))
    moving = iter(trace.record(choose_p, operands, {"branches": tuple(
        [part_of(b, either, (True,) * len(linear)) for b in branches])}))
    return [next(moving) if e else next(known) for e in either]


choose_p = Primitive(
    "test_choose", multiple_results=True, cached=False, jvp=choose_jvp, batch_axis=choose_batch,
    split=choose_split, transpose=choose_transpose,
    shape_rule=lambda *avals, branches: branches[0].out_avals,
    decomposition=lambda which, *xs, branches: [
        lax.select(jnp.broadcast_to(which, a.shape), a, b)
        for a, b in zip(*[jaxpr_as_fun(b)(*xs) for b in branches], strict=True)])


# -- the checks -----------------------------------------------------------------------------------


def program(x, y):
    return jnp.sin(x) * y, jnp.cos(x * y), x


def other(x, y):
    return x * y * y, x + y, y


x, y = np.linspace(0.1, 1, 3).astype(np.float32), np.linspace(1, 2, 3).astype(np.float32)
traced, traced_other = [jax.make_jaxpr(f)(x, y) for f in (program, other)]
HOLDERS = {
    "call": lambda x, y: call_p.bind(x, y, jaxpr=traced),
    "remat": lambda x, y: remat_p.bind(x, y, jaxpr=traced),
    "choose": lambda x, y: choose_p.bind(True, x, y, branches=(traced, traced_other)),
}


@pytest.fixture(params=sorted(HOLDERS))
def holder(request):
    return HOLDERS[request.param]


def check_equal(got, want):
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


def loss(f):
    return lambda x, y: sum([(o * (i + 1)).sum() for i, o in enumerate(f(x, y))])


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


def test_wrong_calls_are_found():
    closed = jax.make_jaxpr(HOLDERS["call"])(x, y)
    broken = closed.eqns[0].replace(invars=closed.invars[:1])
    with pytest.raises(TypeError, match="takes 2 arguments, 1 are given"):
        check_jaxpr(closed.jaxpr.replace(eqns=[broken]))


def test_remat_keeps_its_arguments_only():
    def residuals(f):
        return jax.tree.leaves(jax.vjp(lambda x, y: jnp.tanh(jnp.sin(f(x, y)[0])), x, y)[1])

    assert len(residuals(HOLDERS["remat"])) < len(residuals(HOLDERS["call"]))
