"""What each policy of `checkpoint` keeps for the backward pass."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import ad_checkpoint, configuration
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


# -- within a budget -------------------------------------------------------------------------------

BIG = jnp.linspace(0, 1, 64 * 64, dtype="float32").reshape(64, 64)
EACH = BIG.nbytes


def unrolled(x):
    for _ in range(6):
        x = jnp.tanh(jnp.sin(x @ BIG)) + x
    return jnp.sum(x**2)


def in_a_loop(x):
    x, tops = jax.lax.scan(lambda c, _: (jnp.tanh(jnp.sin(c @ BIG)) + c, c[0]), x, length=6)
    return jnp.sum(x**2) + jnp.sum(jnp.sin(tops))


def branched(x):
    return jnp.sum(jax.lax.cond(x[0, 1] > 0, lambda x: jnp.sin(jnp.tanh(x @ x)),
                                lambda x: jnp.cos(jnp.exp(x) @ x), jnp.sin(x)))


def looped(x):
    y = jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1])),
                           (0, jax.lax.stop_gradient(x)))[1]
    return jnp.sum(jnp.tanh(x @ x) * jnp.sin(y))


def called(x):
    inner = jax.checkpoint(lambda x: jnp.sin(jnp.tanh(x @ x)))
    return jnp.sum(jax.jit(lambda x: jax.nn.softmax(jax.nn.gelu(inner(x) @ x)))(jnp.sin(x))[:, 0])


def random(x):
    for i in range(3):
        kept = jax.random.bernoulli(jax.random.fold_in(jax.random.key(0), i), 0.5, x.shape)
        x = jnp.where(kept, jnp.tanh(x @ x), 0)
    return jnp.sum(x)


def saved_bytes(f):
    return sum(aval.size * aval.dtype.itemsize for aval, origin in saved_residuals(f, BIG)
               if "the argument" not in origin and "constant" not in origin)


def products(f):
    """The arithmetic operations of the products in the gradient of a function."""
    return sum(c.flops for c in jax.jit(jax.grad(f)).trace(BIG).cost().by_operation
               if c.name == "dot_general")


@pytest.mark.parametrize("f", [unrolled, in_a_loop, branched, looped, called, random])
def test_saves_no_more_than_a_budget(f):
    wanted = jax.grad(f)(BIG)
    works = []
    for share in (0.01, 1.1, 2.1, 4.1, 100):
        lean = jax.checkpoint(f, memory_budget=int(share * EACH))
        assert saved_bytes(lean) <= share * EACH
        np.testing.assert_allclose(jax.grad(lean)(BIG), wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(lean)))(BIG[None])[0], wanted,
                                   rtol=1e-3, atol=1e-3)
        works.append(products(lean))
    assert works == sorted(works, reverse=True)
    assert works[0] > works[-1] == products(f)


def test_what_costs_most_is_saved():
    found = origins(jax.checkpoint(unrolled, memory_budget=6 * EACH), BIG)
    assert found.count("dot_general") >= 5 and {"sin", "cos"}.isdisjoint(found)


def test_a_policy_bounds_what_is_saved():
    lean = jax.checkpoint(unrolled, policy=policies.dots_saveable, memory_budget=3 * EACH)
    assert origins(lean, BIG).count("dot_general") == 3 == saved_bytes(lean) / EACH
    assert saved_bytes(jax.checkpoint(
        unrolled, policy=policies.dots_saveable, memory_budget="1GiB")) == 6 * EACH


def test_effects_are_had_once_within_a_budget():
    seen = []

    def f(x):
        y = jnp.sin(x @ x)
        jax.debug.callback(lambda y: seen.append(y), y.sum())
        return jnp.sum(jnp.tanh(jnp.sin(y)))

    jax.grad(jax.checkpoint(f, memory_budget=EACH))(BIG)
    jax.effects_barrier()
    assert len(seen) == 1
    lean = jax.checkpoint(f, policy=policies.dots_saveable, memory_budget=1)
    assert saved_bytes(lean) == 0


def test_budgets_of_checkpoint_are_of_the_device():
    with configuration.memory_limit(10 * EACH):
        assert 0 < saved_bytes(jax.checkpoint(unrolled, memory_budget="65%")) <= 6.5 * EACH


@pytest.mark.parametrize(("budget", "error"), [(0, ValueError), ("much", ValueError),
                                               ([1], TypeError), (1.5, ValueError)])
def test_no_such_budget_of_checkpoint(budget, error):
    with pytest.raises(error, match="remat: memory_budget is bytes"):
        jax.remat(unrolled, memory_budget=budget)


@pytest.mark.parametrize("make", [policies.save_only_these_names, policies.save_any_names_but_these,
                                  policies.save_anything_except_these_names])
def test_policies_show_who_made_them(make):
    shown = f"<function {make.__name__}.<locals>.policy at 0x"
    assert repr(make("a")).startswith(shown)
    assert f"policy={shown}" in str(jax.make_jaxpr(jax.checkpoint(jnp.sin, policy=make("a")))(1.0))
