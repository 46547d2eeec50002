"""What each policy of `checkpoint` keeps for the backward pass."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import ad_checkpoint
from pyjx.ad_checkpoint import checkpoint_name, print_saved_residuals
from pyjx.core.check import check_jaxpr
from pyjx.engine.residuals import cut_jaxpr
from pyjx.transforms.checkpointing import saved_residuals

policies = jax.checkpoint_policies
X = np.linspace(0.1, 1.0, 3).astype(np.float32)
W = (np.arange(9).reshape(3, 3) / 9).astype(np.float32)


def network(w1, w2, x):
    y = checkpoint_name(jnp.sin(w1 @ x), "a")
    z = checkpoint_name(jnp.sin(w2 @ y), "b")
    return jnp.sum(jnp.tanh(z))


def origins(f, *args, **kwargs):
    """Where the residuals come from, without the places in the source."""
    return [text.split(" from /")[0].removeprefix("from the ").removeprefix("output of ")
            for _, text in saved_residuals(f, *args, **kwargs)]


ARGUMENTS = ["argument W1", "argument W2", "argument X"]
OFFLOAD = {"offload_src": "device", "offload_dst": "pinned_host"}
NAMED = policies.save_only_these_names("a")
KEPT = [
    (None, []),
    (policies.nothing_saveable, []),
    (policies.everything_saveable, ["cos", "named 'a'", "cos", "tanh_grad"]),
    (policies.dots_saveable, ["dot_general", "dot_general"]),
    (policies.checkpoint_dots, ["dot_general", "dot_general"]),
    (policies.dots_with_no_batch_dims_saveable, ["dot_general", "dot_general"]),
    (policies.checkpoint_dots_with_no_batch_dims, ["dot_general", "dot_general"]),
    (policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
     ["device_put", "device_put"]),
    (NAMED, ["named 'a'"]),
    (policies.save_only_these_names("a", "b"), ["named 'a'", "named 'b'"]),
    (policies.save_any_names_but_these("a"), ["named 'b'"]),
    (policies.save_anything_except_these_names("a"),
     ["cos", "named 'a'", "cos", "tanh_grad"]),
    (policies.save_from_both_policies(NAMED, policies.dots_saveable),
     ["dot_general", "named 'a'", "dot_general"]),
    (policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"], **OFFLOAD),
     ["named 'a'", "device_put"]),
    (lambda prim, *_, **__: prim.name == "sin", ["named 'a'", "named 'b'"]),
    (lambda *_, **__: ad_checkpoint.Recompute, []),
    (lambda prim, *_, **__: ad_checkpoint.Saveable if prim.name == "cos" else False,
     ["cos", "cos"]),
]


@pytest.mark.parametrize(("policy", "kept"), KEPT)
def test_kept(policy, kept):
    f = jax.checkpoint(lambda W1, W2, X: network(W1, W2, X), policy=policy)
    assert origins(f, W, W, X) == ARGUMENTS + kept
    grads = jax.grad(f, (0, 1, 2))(W, W, X)
    for g, want in zip(grads, jax.grad(network, (0, 1, 2))(W, W, X), strict=True):
        np.testing.assert_allclose(g, want, rtol=1e-5)


def test_residuals_of_vjp():
    def kept(f):
        return len(jax.tree.leaves(jax.vjp(f, W, W, X)[1]))

    assert kept(network) > 6
    assert kept(jax.checkpoint(network)) == 3
    assert kept(jax.checkpoint(network, policy=policies.dots_saveable)) == 5
    assert kept(jax.checkpoint(network, policy=NAMED)) == 4


def test_batch_dims():
    def f(w, x):
        return jnp.sum(jnp.sin(jnp.einsum("bij,bjk->bik", x, jnp.sin(x @ w))))

    x = np.ones((2, 3, 3), np.float32)
    for policy, kept in ((policies.dots_saveable, 2),
                         (policies.dots_with_no_batch_dims_saveable, 1)):
        assert origins(jax.checkpoint(f, policy=policy), W, x).count("dot_general") == kept


def test_inside_jit_and_nested():
    @jax.jit
    def inner(x):
        return jnp.sin(checkpoint_name(jnp.sin(x), "wave"))

    def f(x):
        return jnp.cos(inner(x) * 3)

    name = "jitted function 'inner'"
    assert origins(jax.checkpoint(f), X) == ["argument x"]
    assert origins(jax.checkpoint(f, policy=policies.save_only_these_names("wave")), X) == [
        "argument x", name]
    assert origins(jax.checkpoint(f, policy=policies.everything_saveable), X) == [
        name, name, "sin"]
    assert origins(jax.checkpoint(jax.checkpoint(f)), X) == ["argument x"]
    saving = jax.checkpoint(f, policy=policies.everything_saveable)
    assert origins(jax.checkpoint(lambda x: jnp.sin(saving(x))), X) == ["argument x"]
    for policy in (None, policies.save_only_these_names("wave"), policies.everything_saveable):
        g = jax.checkpoint(f, policy=policy)
        np.testing.assert_allclose(jax.jacrev(g)(X), jax.jacrev(f)(X), rtol=1e-5)


WS = np.stack([W, W * 0.5, -W, W + 0.1])


def layer(c, w):
    h = checkpoint_name(jnp.sin(w @ c), "h")
    return jnp.tanh(h) + c, h


def scanned(body=layer):
    def f(ws, x):
        last, each = jax.lax.scan(body, x, ws)
        return jnp.sum(last) + jnp.sum(each**2)

    return f


@pytest.mark.parametrize(("policy", "kept"), [
    (None, 0), (policies.dots_saveable, 1), (policies.save_only_these_names("h"), 1),
    (policies.save_only_these_names("no"), 0),
])
def test_inside_scan(policy, kept):
    whole = jax.checkpoint(scanned(), policy=policy)
    assert origins(whole, WS, X) == ["argument ws", "argument x"] + ["scan"] * kept
    each = scanned(jax.checkpoint(layer, policy=policy))
    found = origins(each, WS, X)
    # The carry, and what is squared; a result may be what is saved.
    assert found.count("scan") in (kept + 1, kept + 2)
    want = jax.grad(scanned(), (0, 1))(WS, X)
    for f in (whole, each, jax.checkpoint(each, policy=policy)):
        for g, w in zip(jax.jit(jax.grad(f, (0, 1)))(WS, X), want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-4)


def test_an_equation_of_scan_may_give_a_value_twice():
    policy = policies.save_only_these_names("h")
    f = jax.checkpoint(scanned(jax.checkpoint(layer, policy=policy)), policy=policy)
    check_jaxpr(jax.make_jaxpr(jax.grad(f, (0, 1)))(WS, X))


@pytest.mark.parametrize(("policy", "kept"), [
    (None, 0), (policies.dots_saveable, 1), (policies.save_only_these_names("h"), 1)])
def test_inside_cond(policy, kept):
    def f(w, x):
        return jnp.sum(jax.lax.cond(
            x[0] < 5, lambda x: jnp.sin(checkpoint_name(jnp.sin(w @ x), "h")),
            lambda x: jnp.cos(x) * x, x))

    g = jax.checkpoint(f, policy=policy)
    assert origins(g, W, X) == ["argument w", "argument x"] + ["cond"] * kept
    for x in (X, X + 10):
        for got, want in zip(jax.grad(g, (0, 1))(W, x), jax.grad(f, (0, 1))(W, x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_custom_rules_inside():
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda c, ct: (ct * c,))

    def g(x):
        return jnp.sin(f(x))

    assert origins(jax.checkpoint(g), X) == ["argument x"]
    assert origins(jax.checkpoint(g, policy=policies.everything_saveable), X) == ["cos", "cos"]


def test_a_policy_gets_primitives_types_and_parameters():
    seen = []

    def policy(prim, *avals, **params):
        seen.append((prim.name, [str(a.shape) for a in avals], params.get("dimension_numbers")))
        return False

    jax.grad(jax.checkpoint(lambda w: jnp.sum(jnp.sin(w @ X)), policy=policy))(W)
    assert seen[0] == ("dot_general", ["(3, 3)", "(3,)"], (((1,), (0,)), ((), ())))
    assert [name for name, _, _ in seen] == ["dot_general", "sin", "cos", "reduce_sum"]


def test_wrong_policies():
    with pytest.raises(TypeError, match="Value returned by a remat policy should be a bool"):
        jax.grad(jax.checkpoint(lambda x: jnp.sin(x * x), policy=lambda *_, **__: "yes"))(1.0)
    with pytest.raises(ValueError, match="should not intersect"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"], **OFFLOAD)


def test_printed_residuals(capsys):
    constant = jnp.arange(3.0)

    def f(p, *, k):
        return jnp.sin(p["w"] * p["b"]) * k * constant

    print_saved_residuals(jax.checkpoint(f), {"w": X, "b": X}, k=2.0)
    assert capsys.readouterr().out.splitlines() == [
        "f32[3] from a constant", "f32[3] from the argument p['b']",
        "f32[3] from the argument p['w']", "f32[] from the argument k"]
    print_saved_residuals(lambda x: jnp.sin(x) * 2.0, X)
    assert capsys.readouterr().out.startswith("f32[3] output of cos from /")
    print_saved_residuals(lambda x: x * 2.0, 3.0)
    assert not capsys.readouterr().out


def test_logged_residuals(caplog):
    f = jax.checkpoint(lambda x, y: jnp.sum(jnp.sin(jnp.sin(x) * y)),
                       policy=lambda prim, *_, **__: prim.name == "mul")
    jax.config.update("jax_log_checkpoint_residuals", True)
    try:
        jax.grad(f)(X, X)
    finally:
        jax.config.update("jax_log_checkpoint_residuals", False)
    (record,) = caplog.records
    lines = record.getMessage().splitlines()
    assert lines[:4] == ["remat-decorated function saving inputs with shapes:", "  float32[3]",
                         "  float32[3]", "and saving these intermediates:"]
    assert lines[4].startswith("  float32[3] from output of mul from /")


def test_cut():
    """The two parts of a program, as other primitives that hold programs use them."""
    def program(x, y):
        s = jnp.sin(x)
        return s * 2, jnp.exp(s * y)

    closed = jax.make_jaxpr(program)(X, X)

    def policy(prim, *_, **__):
        return prim.name == "sin"

    known, again, forwarded = cut_jaxpr(closed, policy, (True, False), (False, True))
    assert [e.primitive.name for e in known.eqns] == ["sin", "mul"]
    assert len(known.outvars) == 2
    assert {e.primitive.name for e in again.eqns} <= {"mul", "exp"}
    assert forwarded == (1,)


def test_names():
    x = {"a": 1.5, "b": X}
    named = checkpoint_name(x, "x")
    assert float(named["a"]) == 1.5 and named["b"] is not None
    text = str(jax.make_jaxpr(lambda x: jax.jvp(
        lambda x: checkpoint_name(jnp.sin(x), "s"), (x,), (x,)))(1.0))
    assert text.count("name[name=s]") == 1
    text = str(jax.make_jaxpr(jax.vmap(lambda x: checkpoint_name(x, "s")))(X))
    assert "b:f32[3] = name[name=s] a" in text
    assert ad_checkpoint.name_p.name == "name"
    assert ad_checkpoint.Offloadable("device", "pinned_host") == ("device", "pinned_host")


OFFLOADING = policies.save_and_offload_only_these_names(
    names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"],
    offload_src="device", offload_dst="pinned_host")


def over_scan(remat):
    def f(w1, w2, x):
        step = remat(lambda w2, c: c + network(w1, w2, c))
        return jax.lax.scan(lambda c, _: (step(w2, c), None), x, None, length=3)[0]
    return f


def in_branch(remat):
    return lambda w1, w2, x: jax.lax.cond(x[0] < 1, remat(network), network, w1, w2, x)


@pytest.mark.parametrize("f", [
    lambda remat: remat(network), lambda remat: remat(jax.jit(network)), over_scan, in_branch,
], ids=["flat", "jit", "scan", "cond"])
def test_offloaded(f):
    def loss_with(remat):
        return lambda w1, w2, x: jnp.sum(f(remat)(w1, w2, x))

    loss = loss_with(lambda fun: jax.checkpoint(fun, policy=OFFLOADING))
    plain = jax.grad(loss_with(lambda fun: fun), (0, 1, 2))(W, W, X)
    for grad in (jax.grad(loss, (0, 1, 2)), jax.jit(jax.grad(loss, (0, 1, 2)))):
        for found, wanted in zip(grad(W, W, X), plain, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
            assert found.sharding.memory_kind == "device"
    closed = jax.make_jaxpr(jax.grad(loss))(W, W, X)
    check_jaxpr(closed.jaxpr)
    text = str(closed)
    assert "f32<host>[" in text
    assert "devices=(MemorySpace.Host,)" in text and "devices=(MemorySpace.Device,)" in text
    lowered = jax.jit(jax.grad(loss)).trace(W, W, X).lower(lowering_platforms=("tpu",)).as_text()
    assert '_xla_buffer_placement = "pinned_host"' in lowered
    assert '_xla_buffer_placement = "device"' in lowered


def test_kinds_of_memory_that_there_are_not():
    policy = policies.offload_dot_with_no_batch_dims("device", "disk")
    with pytest.raises(ValueError, match="of the kinds 'device' and 'pinned_host', got 'disk'"):
        jax.grad(jax.checkpoint(network, policy=policy))(W, W, X)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
def test_the_forward_pass_goes_on_with_what_is_saved(dtype):
    """XLA may compute products of halves with more bits: not those that the backward pass gets."""
    def f(x):
        y = checkpoint_name(x * x, "a")
        return y.astype(jnp.float32) ** 2

    x = jnp.asarray([1.37, 2.71, 0.77], dtype)
    saving = jax.checkpoint(f, policy=NAMED)
    out = jax.jit(lambda x: jax.vjp(saving, x)[0])(x)
    square = np.asarray(x.astype(jnp.float32)) ** 2
    assert out.tolist() == (square.astype(dtype).astype(np.float32) ** 2).tolist()
    halves = dtype is not jnp.float32
    for function in (saving, jax.jit(saving), jax.vmap(saving)):
        text = str(jax.make_jaxpr(lambda x, f=function: jax.vjp(f, x))(x))
        assert text.count("reduce_precision") == halves
    untouched = jax.checkpoint(f, policy=policies.nothing_saveable)
    assert "reduce_precision" not in str(jax.make_jaxpr(lambda x: jax.vjp(untouched, x))(x))
