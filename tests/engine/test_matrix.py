"""Everything that holds programs, under every transformation: as the function that it holds."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export, lax
from pyjx.core.check import check_jaxpr
from pyjx.experimental import checkify, sparse
from pyjx.experimental.jet import jet
from tests.engine.holders import HOLDERS, x

ones = np.array([1.0, -2.0, 0.5], np.float32)
batch = np.stack([x, x * 2, x + 1, x - 0.25])
weights = np.arange(1.0, 4.0, dtype=np.float32)

# What a holder refuses, as it does in JAX.
FORWARD, REVERSE, BATCH = "forward", "reverse", "batch"
REFUSED = {
    **dict.fromkeys(("custom_vjp", "custom_vjp_remat", "custom_gradient"), (FORWARD,)),
    **dict.fromkeys(("while", "while_on_values"), (REVERSE,)),
    "composite": (FORWARD, REVERSE, BATCH),
}
REFERENCES = {"new_ref", "scan_of_ref"}


def smooth(x):
    return jnp.sin(x) * x


def loss(f):
    return lambda x: (f(x) * weights).sum()


def close(got, want):
    got, want = jax.tree.flatten(got), jax.tree.flatten(want)
    assert got[1] == want[1]
    for g, w in zip(got[0], want[0], strict=True):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-6)


@pytest.fixture(params=HOLDERS)
def name(request):
    return request.param


def takes(name, *kinds):
    return not set(REFUSED.get(name, ())) & set(kinds)


# -- derivatives and batches -----------------------------------------------------------------------

# Each with what it needs of a holder.
TRANSFORMED = {
    "value": (lambda f: f(x), ()),
    "jvp": (lambda f: jax.jvp(f, (x,), (ones,)), (FORWARD,)),
    "linearize": (lambda f: jax.linearize(f, x)[1](ones), (FORWARD,)),
    "grad": (lambda f: jax.value_and_grad(loss(f))(x), (REVERSE,)),
    "linear_transpose": (
        lambda f: jax.linear_transpose(jax.linearize(f, x)[1], x)(ones), (REVERSE,)),
    "hessian": (lambda f: jax.jacfwd(jax.jacrev(f))(x), (REVERSE, BATCH)),
    "jacrev of jacfwd": (lambda f: jax.jacrev(jax.jacfwd(f))(x), (FORWARD, REVERSE, BATCH)),
    "vmap": (lambda f: jax.vmap(f)(batch), (BATCH,)),
    "vmap along 1": (lambda f: jax.vmap(f, 1, 1)(batch.T), (BATCH,)),
    "vmap of none": (lambda f: jax.vmap(f)(batch[:0]), (BATCH,)),
    "vmap of vmap": (lambda f: jax.vmap(jax.vmap(f, 1, 1))(np.stack([batch.T] * 2)), (BATCH,)),
    "vmap of grad": (lambda f: jax.vmap(jax.grad(loss(f)))(batch), (REVERSE, BATCH)),
    "grad of vmap": (lambda f: jax.grad(lambda xs: jax.vmap(f)(xs).sum())(batch),
                     (REVERSE, BATCH)),
    "checkpoint": (lambda f: jax.grad(loss(jax.checkpoint(f)))(x), (REVERSE,)),
    "checkpoint that saves all": (lambda f: jax.grad(loss(jax.checkpoint(
        f, policy=jax.checkpoint_policies.everything_saveable)))(x), (REVERSE,)),
    "jet": (lambda f: jet(f, (x,), ([ones, ones * 0.5, ones * 0],)), (FORWARD, "references")),
    "checkify": (lambda f: checked(f)(x)[1], ()),
    "checkify of vmap": (lambda f: checked(jax.vmap(f))(batch)[1], (BATCH,)),
    "vmap of checkify": (lambda f: jax.vmap(checked(f))(batch)[1], (BATCH,)),
    "checkify of grad": (lambda f: checked(jax.grad(loss(f)))(x)[1], (REVERSE,)),
}


def checked(f):
    return checkify.checkify(f, errors=checkify.all_checks)


@cache
def expected(plain):
    f = plain(smooth)
    return jax.jit(lambda: {key: t(f) for key, (t, _) in TRANSFORMED.items()})()


def test_as_one_program(name):
    """All of them in one program, which is compiled once."""
    f, plain = HOLDERS[name].hold(smooth), HOLDERS[name].plain
    wanted = {key: t for key, (t, needs) in TRANSFORMED.items() if takes(name, *needs)
              and not ("references" in needs and name in REFERENCES)}
    closed = jax.make_jaxpr(lambda: {key: t(f) for key, t in wanted.items()})()
    check_jaxpr(closed)
    got = jax.jit(lambda: {key: t(f) for key, t in wanted.items()})()
    for key in wanted:
        close({key: got[key]}, {key: expected(plain)[key]})


def test_eagerly(name):
    f, plain = HOLDERS[name].hold(smooth), HOLDERS[name].plain
    want = expected(plain)
    close(f(x), want["value"])
    closed = jax.make_jaxpr(f)(x)
    assert str(closed)
    close(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0], want["value"])
    if takes(name, REVERSE):
        close(jax.value_and_grad(loss(f))(x), want["grad"])
    if takes(name, BATCH):
        close(jax.vmap(f, 1, 1)(batch.T), want["vmap along 1"])


def test_derivatives_are_slopes():
    """The other tests compare with the derivatives of the function; these with its values."""
    for plain in {h.plain for h in HOLDERS.values()}:
        f = plain(smooth)
        slope = (np.asarray(f(x + 1e-2 * ones)) - np.asarray(f(x - 1e-2 * ones))) / 2e-2
        np.testing.assert_allclose(expected(plain)["jvp"][1], slope, rtol=1e-2, atol=1e-3)


# -- what looks into programs ----------------------------------------------------------------------


def wrong_index(x):
    return x + lax.dynamic_index_in_dim(x, lax.argmax(x, 0, np.int32) + 7, keepdims=False)


def wrong_value(x):
    return x + lax.log(lax.neg(lax.exp(x)))


def refused(x):
    checkify.check(x.sum() > 1e9, "the sum is {s}", s=x.sum())
    return x * 2


@pytest.mark.parametrize(("body", "message"), [
    (wrong_index, "out-of-bounds indexing"), (wrong_value, "nan generated by primitive: log"),
    (refused, "the sum is"),
])
def test_checks_inside(name, body, message):
    error, _ = jax.jit(checked(HOLDERS[name].hold(body)))(x)
    assert message in error.get()


# The matrix of a system, and what is to be zero, are dense.
DENSE = {"custom_linear_solve", "custom_linear_solve_inside", "custom_root", "custom_gradient",
         "shard_map", "shard_map_unchecked", "pmap", *REFERENCES}


@pytest.mark.parametrize("use_tracer", [False, True])
def test_sparse_arrays_inside(name, use_tracer):
    def body(x):
        return jnp.sin(x) * 2.0

    dense = np.array([0.0, 2.0, 0.5], np.float32)
    f = sparse.sparsify(HOLDERS[name].hold(body), use_tracer=use_tracer)
    if name in DENSE:
        with pytest.raises((NotImplementedError, TypeError)):
            f(sparse.BCOO.fromdense(dense))
        return
    out = f(sparse.BCOO.fromdense(dense))
    assert isinstance(out, sparse.BCOO)
    close(out.todense(), HOLDERS[name].plain(body)(dense))


# The operations that a holder has beside its bodies: predicates, indices, counters and limits. A
# loop that runs once asks twice whether it runs.
BESIDE = {"cond": 3, "switch": 4, "platform_dependent": 1, "while": 3, "while_on_values": 6,
          "while_bounded": 5, "fori": 2, "scan": 6, "scan_over": 1, "jit_of_scan": 6,
          "custom_linear_solve_inside": 3, "custom_root": 6}


def test_costs_inside(name):
    holder = HOLDERS[name]
    held, plain = [jax.jit(f).trace(x).cost() for f in (holder.hold(smooth), holder.plain(smooth))]
    sines = 2 if name == "custom_gradient" else 1  # its cosines, too
    assert held.total.transcendentals == sines * plain.total.transcendentals > 0
    assert held.total.flops == plain.total.flops + BESIDE.get(name, 0)
    assert not held.unknown


def test_exported(name):
    holder = HOLDERS[name]
    exported = export.export(jax.jit(holder.hold(smooth)))(jax.ShapeDtypeStruct((3,), np.float32))
    again = export.deserialize(exported.serialize())
    close(again.call(x), expected(holder.plain)["value"])


@pytest.mark.parametrize("of", [lambda f: f, lambda f: jax.grad(loss(f))], ids=["value", "grad"])
def test_references_inside(name, of):
    if of(smooth) is not smooth and not takes(name, REVERSE):
        pytest.skip("has no reverse derivative")

    def body(x):
        ref = jax.new_ref(x)
        ref[...] = jnp.sin(ref[...]) * x
        return ref[...]

    holder = HOLDERS[name]
    close(jax.jit(of(holder.hold(body)))(x), jax.jit(of(holder.plain(smooth)))(x))


# What runs a body more often by its nature: what is checked is solved again for derivatives.
SOLVED = {"custom_linear_solve_inside", "custom_root"}


def test_effects_inside_happen_once(name):
    holder = HOLDERS[name]
    calls = Counter()

    def held(tag):
        def body(x):
            jax.debug.callback(lambda v: calls.update([tag]), x[0])
            return jnp.sin(x) * x
        return holder.hold(body)

    wanted = {"value": 1, "checkify": 1}
    if takes(name, FORWARD) and name not in SOLVED:
        wanted.update(jvp=1, **({} if name in REFERENCES else {"jet": 1}))
    if takes(name, BATCH):
        wanted["vmap"] = len(batch)
    jax.jit(lambda: [TRANSFORMED[key][0](held(key)) for key in wanted])()
    jax.effects_barrier()
    assert calls == {key: n * holder.calls for key, n in wanted.items()}
