"""What each operation does to sums over a mesh that are yet to be taken, in both modes: inside
programs for each device, whose types over the mesh tell of them, and outside, where shardings do.

A sample of every third operation of the op table is run; with PYJX_SWEEPS=1 two of each.
"""

import os

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import jaxlib_api, lax
from pyjx.core.arithmetic import APART
from pyjx.core.primitive import all_primitives
from pyjx.errors import ShardingTypeError
from pyjx.sharding import PartitionSpec as P
from tests.op_table import all_samples

REDUCED, OPEN = P(reduced={"x"}), P(unreduced={"x"})

# Whose samples, or what they are made of, add constants that are copies, which is refused.
WITH_COPIES = {
    "iota", "todense", "spsolve", "bcoo_todense", "bcoo_fromdense", "bcoo_extract",
    "bcoo_sum_duplicates", "bcoo_sort_indices", "bcoo_transpose", "bcoo_dot_general",
    "bcoo_dot_general_sampled", "bcoo_spdot_general", "bcsr_todense", "bcsr_fromdense",
    "bcsr_extract", "bcsr_dot_general", "coo_todense", "coo_fromdense", "coo_matvec",
    "coo_matmat", "csr_todense", "csr_fromdense", "csr_matvec", "csr_matmat", "csr_product",
}


@pytest.fixture(autouse=True, scope="module")
def explicit():
    with jax.set_mesh(jax.make_mesh((2,), ("x",))) as mesh:
        yield mesh


def is_float(x):
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc" and x.size > 0


# Samples with constants of their own, of which devices have copies.
CONSTANT_KERNELS = {"patches", "local"}
REFUSED_INSIDE = {"trigamma", "pow-of-constant"}  # numbers that are made of constants are copies
# The sum of what is rounded is another one, and samples add what is no open sum.
NOT_LINEAR = {"reduce_precision", "add-scalar", "add-rank-0", "stop_gradient-product", "pad",
              "scatter_apply"}


def samples():
    found = {}
    for sample in all_samples():
        if any(map(is_float, sample.args)) and sample.primitive not in WITH_COPIES and (
                sample.id not in CONSTANT_KERNELS) and all(
                [a.size for a in sample.args if isinstance(a, np.ndarray)]):
            found.setdefault(sample.primitive, []).append(sample)
    every = "PYJX_SWEEPS" in os.environ
    for several in list(found.values())[::1 if every else 3]:
        for sample in several[-2 if every else -1:]:
            yield pytest.param(sample, id=f"{sample.primitive}-{sample.id}")


def on_floats(sample):
    """The sample as a function of its floating arguments, these, and which are differentiated."""
    floats = {i: a for i, a in enumerate(sample.args) if is_float(a)}
    diff = floats if sample.diff is True else {i: floats[i] for i in sample.diff or ()
                                               if i in floats}

    def fun(values):
        return jax.tree.leaves(sample.fun(*[values.get(i, a) for i, a in enumerate(sample.args)]))

    return fun, floats, diff


def total(outs):
    return sum([jnp.sum(jnp.real(jnp.sin(o))) for o in outs
                if jnp.issubdtype(o.dtype, jnp.inexact)])


def whole(x):
    return np.asarray(jax.reshard(x, P()))


def assert_close(got, want, factor=1):
    rtol = 5e-2 if got.dtype.itemsize == 2 else 5e-4
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got.astype("c8"), factor * np.asarray(want).astype("c8"),
                                   rtol=rtol, atol=rtol)


def cases(sample):
    fun, floats, diff = on_floats(sample)
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
        outs = [o for o in jax.jit(fun)(floats) if jnp.issubdtype(o.dtype, jnp.inexact)]
        if not outs:
            pytest.skip("it has no floating results")
        gradient = jax.jit(jax.grad(lambda d: total(fun({**floats, **d}))))(diff) if diff else {}
    return fun, {i: jax.device_put(a, REDUCED) for i, a in floats.items()}, diff, outs, gradient


@pytest.mark.parametrize("sample", list(samples()))
def test_reduced_outside(sample):
    if jaxlib_api.LOSES_OPEN_SUMS and sample.primitive == "platform_index":
        pytest.skip("this jaxlib knows no open sums in branches")
    fun, floats, diff, outs, gradient = cases(sample)
    got = [o for o in jax.jit(fun)(floats) if jnp.issubdtype(o.dtype, jnp.inexact)]
    for g, w in zip(got, outs, strict=True):
        assert "{R:x}" in str(jax.typeof(g))
        assert_close(np.asarray(g), w)
    if diff:
        found = jax.jit(jax.grad(lambda d, rest: total(fun({**rest, **d}))))(
            {i: floats[i] for i in diff}, floats)
        for i in diff:
            assert "{U:x}" in str(jax.typeof(found[i]))
            assert_close(whole(found[i]), gradient[i])


@pytest.mark.parametrize("sample", list(samples()))
def test_reduced_inside(sample):
    """Each device weighs the results by its number: together they make three of them."""
    fun, floats, diff, outs, gradient = cases(sample)
    if not diff or sample.id in REFUSED_INSIDE:
        pytest.skip("nothing is differentiated")

    def loss(d, rest):
        made = total(fun({**rest, **d}))
        assert "{R:x}" in str(jax.typeof(made))
        weight = 1 + lax.axis_index("x").astype(made.dtype)
        return lax.psum(weight * made, "x")

    mapped = jax.shard_map(loss, in_specs=(REDUCED, REDUCED), out_specs=P())
    value, found = jax.jit(jax.value_and_grad(mapped))({i: floats[i] for i in diff}, floats)
    assert_close(np.asarray(value), total(outs), 3)
    for i in diff:
        assert "{U:x}" in str(jax.typeof(found[i]))
        assert_close(whole(found[i]), gradient[i], 3)


def parts_of(x):
    """Two arrays whose sum it is, one above the other."""
    first = np.random.default_rng(0).normal(size=x.shape).astype(x.dtype)
    return np.stack([first, x - first])


@pytest.mark.parametrize("sample", list(samples()))
def test_open_sums(sample):
    """Linear functions commute with the sum; others refuse what is yet to be summed."""
    fun, floats, _, outs, _ = cases(sample)
    primitive = all_primitives()[sample.primitive]
    if primitive.effects is not None or primitive.holder.runs or not primitive.cached or (
            {sample.primitive, sample.id} & NOT_LINEAR):
        pytest.skip("its types are those of what it does")
    numbers = sorted(floats)
    places = range(len(sample.args))
    groups = [list(places[g]) for g in primitive.linear]
    open_ones = next((g for g in groups if g and set(g) <= set(numbers)), numbers)
    is_linear = primitive.linear is APART or open_ones in groups
    if any(groups) and not is_linear:
        pytest.skip("it is linear in what is no array in the sample")
    stacked = {i: jax.device_put(parts_of(np.asarray(floats[i])), P("x")) for i in open_ones}

    def opened(parts, rest):
        sums = {i: lax.reduce_sum(x, axes=(0,), out_sharding=OPEN) for i, x in parts.items()}
        return [jax.reshard(o, P()) for o in fun({**rest, **sums})
                if jnp.issubdtype(o.dtype, jnp.inexact)]

    def inside(parts, rest):
        sums = {i: lax.pcast(x[0], "x", to="unreduced") for i, x in parts.items()}
        return [lax.psum(o, "x") for o in fun({**rest, **sums})
                if jnp.issubdtype(o.dtype, jnp.inexact)]

    mapped = jax.shard_map(inside, in_specs=(P("x"), REDUCED), out_specs=P())
    for f in (opened, mapped):
        if not is_linear:
            with pytest.raises((ShardingTypeError, ValueError)):
                jax.eval_shape(f, stacked, floats)
            continue
        for got, want in zip(jax.jit(f)(stacked, floats), outs, strict=True):
            assert_close(np.asarray(got), want)
