"""Calls that tell XLA something: metadata, where to compute, what to fuse, in which order.

What programs look like is what JAX writes for them.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.experimental import compute_on as computing
from pyjx.experimental.compilation_cache import compilation_cache
from pyjx.experimental.control_deps import schedule
from pyjx.experimental.fused import fused
from pyjx.experimental.overlap import program_order
from pyjx.experimental.profiler import get_profiled_instructions_proto
from pyjx.experimental.scheduling_groups import scheduling_group
from pyjx.experimental.xla_metadata import (
    fuse_limit,
    must_fuse_call,
    set_xla_metadata,
    xla_metadata_call,
    xla_metadata_call2,
)

X = jnp.arange(4.0)
DEVICE, HOST = jax.memory.Space.Device, jax.memory.Space.Host


def text(f, *args):
    return jax.jit(f).lower(*args).as_text()


def wave(x):
    return jnp.sin(x) * 2


@pytest.mark.parametrize(("wrap", "attributes"), [
    (xla_metadata_call(wave, tag="b"), '{tag = "b"}'),
    (xla_metadata_call(flag=True, n=1)(wave), '{flag = "true", n = "1"}'),
    (must_fuse_call("1")(wave), '{MUST_FUSE = "1"}'),
    (scheduling_group("g1")(wave), '{scheduling_group = "g1"}'),
    (fused(out_spaces=(DEVICE,))(wave), '{MUST_FUSE = "fused_call"}'),
    (computing.compute_on(wave, compute_type="device_host", out_memory_spaces=DEVICE),
     '{_xla_compute_type = "host"}'),
    (computing.compute_on2(wave, compute_type="tpu_sparsecore", out_memory_spaces=DEVICE),
     '{_xla_compute_type = "sparse"}'),
    (computing.compute_on(compute_type="gpu_stream:2", out_memory_spaces=DEVICE)(wave),
     '{_scheduling_group_id = "2"}'),
    (set_xla_metadata(a="b")(jnp.sin), '{a = "b"}'),
    (computing.compute_on("device_host")(wave), '{_xla_compute_type = "host"}'),
])
def test_attributes_of_calls(wrap, attributes):
    assert f"mhlo.frontend_attributes = {attributes}" in text(wrap, X)


@pytest.mark.parametrize("wrap", [
    lambda f: xla_metadata_call(f, tag="b"), must_fuse_call("1"), fused(out_spaces=DEVICE),
    computing.compute_on(compute_type="device_host", out_memory_spaces=DEVICE),
    program_order(enforce=True, strict_in_out=True), program_order(enforce=False),
    set_xla_metadata(a="b"), lambda f: lambda x: set_xla_metadata(f(x), a="b"),
])
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.complex64])
def test_values_derivatives_and_batches_stay_the_same(wrap, dtype):
    f = wrap(wave)
    x = X.astype(dtype)
    for transform in (lambda f: f, jax.jit, jax.vmap, lambda f: jax.vmap(jax.jit(f)),
                      lambda f: lambda x: jax.jvp(f, (x,), (x,)),
                      lambda f: lambda x: jax.vjp(f, x)[1](x),
                      lambda f: jax.jit(lambda x: jax.vjp(jax.checkpoint(f), x)[1](x))):
        expected, got = transform(wave)(x), transform(f)(x)
        for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(got), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


@pytest.mark.parametrize("wrap", [
    fused(out_spaces=(HOST, DEVICE)),
    computing.compute_on(compute_type="device_host", out_memory_spaces=(HOST, DEVICE))])
def test_memories_of_some_results_and_of_what_is_derived(wrap):
    f = wrap(lambda x: (jnp.sin(x), jnp.cos(x) * x))

    def kinds(g):
        lowered = jax.jit(g).trace(X).lower(lowering_platforms=("cuda",)).as_text()
        return re.findall(r'_xla_buffer_placement = "(\w+)"', lowered)

    assert kinds(f) == kinds(jax.vmap(f)) == ["device", "pinned_host"]
    assert kinds(lambda x: f(x)[0]) == kinds(jax.vmap(lambda x: f(x)[0])) == ["pinned_host"]
    assert kinds(lambda x: f(x)[1]) == ["device"]
    assert kinds(lambda x: lax.scan(lambda c, x: (c, f(x)[0]), 0, x)[1]) == ["pinned_host"]
    for g in (jax.grad(lambda x: jax.checkpoint(f)(x)[1].sum()),
              lambda x: jax.jvp(f, (x,), (x,))[1][1]):
        assert set(kinds(g)) == {"device"}
    assert [x.sharding.memory_kind for x in jax.tree.leaves(jax.jit(lambda x: jax.jvp(
        f, (x,), (x,)))(X))] == ["pinned_host", "device"] * 2
    table = jnp.ones(3)
    captured = wrap(lambda x: (x + table, jnp.outer(table, x)))
    for a, b in zip(jax.vmap(captured)(X), (X[:, None] + table, X[:, None, None] * np.ones((3, 1))),
                    strict=True):
        np.testing.assert_array_equal(a.reshape(b.shape), b)


def test_results_are_left_in_their_memories():
    host, device = jax.device_put(X, HOST), jnp.asarray(X)
    for wrap, operands in (
            (fused(out_spaces=(HOST, DEVICE)),
             [(host, device), (device, host), (host, host), (device, device)]),
            (computing.compute_on(compute_type="device_host", out_memory_spaces=(HOST, DEVICE)),
             [(host, host), (device, device)])):
        f = wrap(lambda x, y: (x + y, x * y))
        for x, y in operands:
            spaces = jax.typeof(x).memory_space, jax.typeof(y).memory_space
            for call in (f, jax.jit(f), jax.vmap(f), jax.jit(jax.vmap(f))):
                total, product = call(x, y)
                np.testing.assert_array_equal(total, X + X)
                np.testing.assert_array_equal(product, X * X)
                assert [v.sharding.memory_kind for v in (total, product)] == [
                    "pinned_host", "device"]
                assert [jax.typeof(v).memory_space for v in (total, product)] == [HOST, DEVICE]
            gradients = jax.jit(jax.grad(lambda x, y: f(x, y)[1].sum(), argnums=(0, 1)))(x, y)  # noqa: B023
            assert tuple([jax.typeof(v).memory_space for v in gradients]) == spaces
            np.testing.assert_array_equal(gradients[0], X)


def test_pytrees_and_captured_values():
    @jax.jit
    def f(scale, x):
        g = xla_metadata_call(lambda tree, *, k: {"out": tree["x"] * scale * k}, tag="b")
        return g({"x": x}, k=3)["out"]

    np.testing.assert_array_equal(f(2.0, X), 6 * X)
    np.testing.assert_array_equal(jax.grad(f)(2.0, jnp.ones(())), 3)


def test_operations_of_a_context():
    def f(x):
        with set_xla_metadata(a="b", n=1):
            with fuse_limit():
                y = jnp.sin(x)
            return y + 1

    found = text(f, X)
    assert found.count('{FUSE_LIMIT = "true", a = "b", n = "1"}') == 1
    assert found.count('{a = "b", n = "1"}') == 1
    assert "a = " in text(jax.grad(lambda x: f(x).sum()), X)
    assert "a = " in text(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, length=2)[0], X)
    assert "frontend" not in text(wave, X)


def tagged(f, *args):
    """The operations of a program that have metadata."""
    lines = [line for line in text(f, *args).splitlines() if "frontend_attributes" in line]
    return [re.search(r" = \"?([\w.]+)", line)[1].removeprefix("stablehlo.") for line in lines]


def test_operations_have_metadata_themselves():
    noted = set_xla_metadata(note="n")(lambda x: jnp.sin(x) * x)
    assert tagged(noted, X) == ["sine", "multiply"] == tagged(jax.vmap(noted), jnp.ones((2, 4)))
    assert tagged(jax.grad(noted), 2.0)[:2] == ["sine", "cosine"]
    assert len(tagged(jax.grad(noted), 2.0)) == 6
    assert tagged(lambda x: set_xla_metadata(x * x, note="n"), X) == ["multiply"]
    assert tagged(lambda x: set_xla_metadata(jax.jit(jnp.sin)(x), note="n"), X) == ["func.call"]
    twice = text(lambda x: set_xla_metadata(set_xla_metadata(x * x, b=True), a=1), X)
    assert 'multiply %arg0, %arg0 {mhlo.frontend_attributes = {a = "1", b = "true"}}' in twice
    hlo = jax.jit(noted).lower(X).as_text("hlo")
    assert len(re.findall(r"frontend_attributes={note=", hlo)) == 2
    assert [e.ctx.xla_metadata for e in jax.make_jaxpr(noted)(X).eqns] == [{"note": "n"}] * 2
    assert jax.make_jaxpr(wave)(X).eqns[0].ctx.xla_metadata is None


@pytest.mark.parametrize("f", [
    jnp.sort, jnp.cumsum, jax.nn.softmax, lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    lambda x: jax.lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), jnp.argmax,
    lambda x: x.at[jnp.arange(2)].set(1.0), lambda x: jax.lax.top_k(x, 2), jax.lax.lgamma,
    lambda x: jax.random.uniform(jax.random.key(0), x.shape), lambda x: jnp.linalg.cholesky(
        jnp.outer(x, x) + jnp.eye(4)), lambda x: jnp.fft.fft(x), lambda x: jax.lax.composite(
        lambda x, *, k: x * k, "my.scale")(x, k=2), lambda x: jax.lax.reduce_window(
        x, -jnp.inf, jax.lax.max, (2,), (1,), "VALID"), lambda x: jax.lax.scan(
        lambda c, t: (c + t, c), 0.0, x)], ids=range(15))
def test_programs_of_tagged_operations_are_valid(f):
    noted = set_xla_metadata(note="n")(f)
    assert jax.jit(noted).lower(X).compiler_ir().operation.verify()
    for a, b in zip(jax.tree.leaves(jax.jit(noted)(X)), jax.tree.leaves(f(X)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_stages_of_a_function_with_metadata():
    noted = set_xla_metadata(note="n")(jax.jit(jnp.sin))
    assert 'note = "n"' in noted.lower(X).as_text()
    assert noted.eval_shape(X).shape == noted.trace(X).out_info.shape == (4,)
    np.testing.assert_array_equal(noted.lower(X).compile()(X), jnp.sin(X))


@pytest.mark.parametrize("wrap", [
    xla_metadata_call(inlineable="false"), fused(out_spaces=DEVICE),
    computing.compute_on(compute_type="device_host", out_memory_spaces=DEVICE)])
@pytest.mark.parametrize("f", [wave, jax.jit(wave)])
def test_a_function_is_in_the_program_once(wrap, f):
    g = wrap(f)
    found = text(lambda x: g(g(x)) + g(x), X)
    name = re.findall(r"func.func private @(\w+)", found)
    assert [n.rstrip("_0123456789") for n in name].count(name[0]) == 1
    np.testing.assert_allclose(jax.jit(lambda x: g(g(x)) + g(x))(X), wave(wave(X)) + wave(X))


def test_a_context_around_a_call_is_part_of_its_key():
    g = jax.jit(wave)
    assert "frontend" not in g.lower(X).as_text()
    with set_xla_metadata(a="b"):
        assert 'a = "b"' in g.lower(X).as_text()
        np.testing.assert_array_equal(g(X), wave(X))
    assert "frontend" not in g.lower(X).as_text()


def test_metadata_of_a_value():
    def f(x):
        return set_xla_metadata({"y": jnp.sin(x)}, a="b")["y"] * 2

    assert text(f, X).count('{a = "b"}') == 1
    assert "xla_metadata_value[xla_metadata_kvs=(('a', 'b'),)]" in str(jax.make_jaxpr(f)(X))
    assert "frontend" not in text(lambda x: set_xla_metadata(x, a="b"), X)


@pytest.mark.parametrize(("ad_metadata", "count"), [("same", 2), ("drop", 1), ({"c": "d"}, 1)])
def test_metadata_of_derivatives(ad_metadata, count):
    f = xla_metadata_call2({"a": "b"}, ad_metadata=ad_metadata)(wave)
    found = str(jax.make_jaxpr(jax.grad(lambda x: f(x).sum()))(X))
    assert found.count("xla_metadata=(('a', 'b'),)") == count
    assert found.count("xla_metadata=(('c', 'd'),)") == isinstance(ad_metadata, dict)


def test_order():
    def f(x, y):
        return jnp.sin(x) * jnp.cos(y)

    def barriers(**options):
        return text(program_order(f, **options), X, X).count("optimization_barrier")

    assert [barriers(enforce=True), barriers(enforce=False)] == [2, 0]
    assert barriers(enforce=True, strict_in_out=(True, False)) == 3
    assert barriers(enforce=True, exclude_argnames="y") == 1


def test_control_dependencies():
    @jax.jit
    def f(x):
        ops = [jnp.sin(x), jnp.cos(x), jnp.exp(x)]
        schedule(ops)
        return sum(ops)

    np.testing.assert_allclose(f(0.0), 2)
    assert "control_dep" in str(jax.make_jaxpr(f)(0.0))
    np.testing.assert_allclose(jax.grad(f)(0.0), 2)
    np.testing.assert_allclose(jax.vmap(f)(jnp.zeros(2)), 2)


@pytest.mark.parametrize(("make", "error", "match"), [
    (lambda: computing.compute_on(wave, compute_type="foo", out_memory_spaces=DEVICE),
     ValueError, "Invalid compute type foo"),
    (lambda: computing.compute_on(wave), TypeError, "must be given"),
    (lambda: xla_metadata_call2(wave), TypeError, "metadata must be a dict"),
    (lambda: xla_metadata_call2(wave, {}, ad_metadata="other"), ValueError, "'same', 'drop'"),
    (lambda: fused(out_spaces=(DEVICE, DEVICE))(wave)(X), ValueError, "2 entries for 1 results"),
])
def test_bad_input(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_the_folder_of_programs(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(tmp_path / "programs")
        compilation_cache.reset_cache()
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "programs")
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_profiles(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no profile"):
        get_profiled_instructions_proto(tmp_path)
    with jax.profiler.trace(tmp_path):
        jax.jit(wave)(X).block_until_ready()
    assert isinstance(get_profiled_instructions_proto(tmp_path), bytes)
