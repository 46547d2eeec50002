"""Everything that holds programs, as functions of the function that it is to hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.compat.open_primitives import call_p, closed_call_p
from pyjx.custom_batching import custom_vmap, sequential_vmap
from pyjx.custom_derivatives import custom_gradient, linear_call
from pyjx.experimental.compute_on import compute_on
from pyjx.experimental.fused import fused
from pyjx.experimental.overlap import program_order
from pyjx.experimental.xla_metadata import xla_metadata_call

Fun = Callable[[Any], Any]


class Holder(NamedTuple):
    """`hold(body)` computes what `plain(body)` does; both take and give a vector like `body`."""

    hold: Callable[[Fun], Fun]
    plain: Callable[[Fun], Fun] = lambda body: body
    calls: int = 1  # how often it runs the body


def other(x: Any) -> Any:
    """What branches hold that are not taken: not even its derivatives are those of a body."""
    return x * 100


def twice(body: Fun) -> Fun:
    return lambda x: body(body(x))


def with_jvp(body: Fun) -> Fun:
    f = jax.custom_jvp(body)
    f.defjvp(lambda primals, tangents: jax.jvp(body, primals, tangents))
    return f


def with_vjp(body: Fun, **options: Any) -> Fun:
    f = jax.custom_vjp(body)
    f.defvjp(lambda x: (body(x), x), lambda x, ct: jax.vjp(body, x)[1](ct), **options)
    return f


def with_vmap(body: Fun) -> Fun:
    f = custom_vmap(body)
    f.def_vmap(lambda size, batched, xs: (jax.vmap(body)(xs), True))
    return f


def with_gradient(body: Fun) -> Fun:
    return custom_gradient(lambda x: jax.vjp(body, x))


def while_once(body: Fun, **options: Any) -> Fun:
    return lambda x: lax.while_loop(
        lambda carry: carry[0] < 1, lambda carry: (carry[0] + 1, body(carry[1])), (0, x),
        **options)[1]


def while_traced_bound(body: Fun) -> Fun:
    """A loop whose condition reads the values that it works on."""
    return lambda x: lax.while_loop(
        lambda carry: (carry[0] < 1) & (carry[1].sum() > -1e9),
        lambda carry: (carry[0] + 1, body(carry[1])), (0, x))[1]


def scanned(body: Fun) -> Fun:
    """The body on the carry, once for each of two rows; the second result of a step is not read."""
    def step(carry: Any, row: Any) -> Any:
        return body(carry), carry * row

    return lambda x: lax.scan(step, x, jnp.arange(2.0))[0]


def stacked(body: Fun) -> Fun:
    """The body on what is scanned over; the carry does not depend on it."""
    return lambda x: lax.scan(lambda n, row: (n + 1, body(row)), 0, x[None], reverse=True)[1][0]


def solved(body: Fun) -> Fun:
    """The solution of d y = body(x), d = 2 + x^2."""
    def f(x: Any) -> Any:
        d = 2 + x * x
        return lax.custom_linear_solve(lambda v: d * v, body(x), lambda _, b: body_free(b, d),
                                       symmetric=True)

    def body_free(b: Any, d: Any) -> Any:
        return b / d

    return f


def solved_inside(body: Fun) -> Fun:
    """A system whose matrix is from the body: (3 + body(x)) y = x."""
    def f(x: Any) -> Any:
        return lax.custom_linear_solve(lambda v: v * (3 + body(x)), x,
                                       lambda matvec, b: b / matvec(jnp.ones_like(b)),
                                       symmetric=True)

    return f


def rooted(body: Fun) -> Fun:
    """The root of y - body(x)."""
    return lambda x: lax.custom_root(lambda y: y - body(x), jnp.zeros_like(x),
                                     lambda f, start: start - f(start),
                                     lambda g, b: b / g(jnp.ones_like(b)))


def linear(body: Fun) -> Fun:
    """The product with body(x), as a linear function of its own."""
    return lambda x: linear_call(lambda r, v: r * v, lambda r, ct: r * ct, body(x), x)


def called(primitive: Any) -> Callable[[Fun], Fun]:
    def hold(body: Fun) -> Fun:
        def f(x: Any) -> Any:
            closed = jax.make_jaxpr(body)(jax.typeof(x))
            return primitive.bind(x, call_jaxpr=closed)[0]
        return f
    return hold


def on_a_mesh(body: Fun, **options: Any) -> Fun:
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.P("i")
    return jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, **options)


def per_device(body: Fun) -> Fun:
    return lambda x: jax.pmap(body, axis_name="i")(x[None])[0]


def in_reference(body: Fun) -> Fun:
    def f(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[...] = body(ref[...])
        return ref[...]
    return f


def written_in_scan(body: Fun) -> Fun:
    """The body on a reference of outside, in the steps of a loop."""
    def f(x: Any) -> Any:
        ref = jax.new_ref(x)

        def step(carry: Any, _: Any) -> Any:
            ref[...] = body(ref[...])
            return carry, None
        lax.scan(step, 0, None, length=2)
        return jax.freeze(ref)
    return f


HOLDERS = {
    "jit": Holder(jax.jit),
    "jit_inline": Holder(partial(jax.jit, inline=True)),
    "named_call": Holder(partial(jax.named_call, name="held")),
    "core_call": Holder(called(call_p)),
    "closed_call": Holder(called(closed_call_p)),
    "checkpoint": Holder(jax.checkpoint),
    "checkpoint_policy": Holder(partial(
        jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable, prevent_cse=False)),
    "custom_jvp": Holder(with_jvp),
    "custom_vjp": Holder(with_vjp),
    "custom_vjp_remat": Holder(partial(with_vjp, optimize_remat=True)),
    "custom_gradient": Holder(with_gradient),
    "custom_vmap": Holder(with_vmap),
    "sequential_vmap": Holder(sequential_vmap),
    "cond": Holder(lambda body: lambda x: lax.cond(x.sum() > -1e9, body, other, x)),
    "switch": Holder(lambda body: lambda x: lax.switch(
        (x.sum() > -1e9).astype(int), (other, body, other), x)),
    "platform_dependent": Holder(
        lambda body: lambda x: lax.platform_dependent(x, tpu=other, cuda=other, default=body)),
    "while": Holder(while_once),
    "while_on_values": Holder(while_traced_bound),
    "while_bounded": Holder(partial(while_once, max_steps=3)),
    "fori": Holder(lambda body: lambda x: lax.fori_loop(0, 2, lambda _, c: body(c), x), twice, 2),
    "scan": Holder(scanned, twice, 2),
    "scan_unrolled": Holder(lambda body: lambda x: lax.scan(
        lambda c, _: (body(c), None), x, None, length=2, unroll=2)[0], twice, 2),
    "scan_over": Holder(stacked),
    "map": Holder(lambda body: lambda x: lax.map(body, x[None])[0]),
    "custom_linear_solve": Holder(solved, lambda body: lambda x: body(x) / (2 + x * x)),
    "custom_linear_solve_inside": Holder(
        solved_inside, lambda body: lambda x: x / (3 + body(x))),
    "custom_root": Holder(rooted),
    "linear_call": Holder(linear, lambda body: lambda x: body(x) * x),
    "composite": Holder(lambda body: lax.composite(body, "test.held")),
    "shard_map": Holder(on_a_mesh),
    "shard_map_unchecked": Holder(partial(on_a_mesh, check_vma=False)),
    "pmap": Holder(per_device),
    "xla_metadata_call": Holder(lambda body: xla_metadata_call(body, key="value")),
    "compute_on": Holder(partial(compute_on, compute_type="device_host",
                                 out_memory_spaces=jax.memory.Space.Device)),
    "fused": Holder(fused(out_spaces=(jax.memory.Space.Device,))),
    "program_order": Holder(partial(program_order, enforce=True)),
    "new_ref": Holder(in_reference),
    "scan_of_ref": Holder(written_in_scan, twice, 2),
    "jit_of_scan": Holder(lambda body: jax.jit(scanned(jax.jit(body))), twice, 2),
}

x = np.array([0.3, 0.7, -0.4], np.float32)
