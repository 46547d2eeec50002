"""Calls that tell XLA something: metadata, where to compute, what to fuse, in which order.

What programs look like is what JAX writes for them, but that operations are tagged by a call each.
"""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
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
DEVICE = jax.memory.Space.Device


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
