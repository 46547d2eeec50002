"""Kernels: `pallas_call`, interpreted, over grids of blocks of many kinds."""

from __future__ import annotations

import textwrap

from tests.oracle.language import Assign, Code, Program, Statement, Text
from tests.oracle.nesting import moderate, written
from tests.oracle.values import Gen

# What a kernel does with the block `x` of its argument: the value to store.
VALUES = (
    "x * 2", "jnp.sin(x)", "jnp.exp(-x * x)", "x + pl.program_id(0)", "x * pl.num_programs(0)",
    "jnp.where(x > 0, x, 0.1 * x)", "x - jnp.max(x)", "jax.nn.softmax(x)", "jnp.cumsum(x, 0)",
    "x / jnp.sqrt(jnp.mean(x * x) + 1e-3)", "x[::-1]", "jnp.tanh(x) + w_ref[0, 0]",
    "jnp.where(lax.broadcasted_iota('int32', x.shape, 0) % 2 == 0, x, -x)",
    "jnp.clip(x, -0.5, 0.5)", "x * jnp.sum(w_ref[...])", "jnp.floor(x * 3) / 3",
    "lax.fori_loop(0, 3, lambda i, c: c + x, x)",
    "jnp.sort(x, 0)", "(x * 4).astype('int32').astype(x.dtype)", "jnp.flip(x, -1)",
    "x.astype('bfloat16').astype(x.dtype) * 2",
)

# The bodies of kernels that store `{value}`, of blocks of {rows} rows.
BODIES = {
    "whole": "x = x_ref[...]\no_ref[...] = {value}",
    "rows": """
        @pl.loop(0, {rows})
        def _(i):
            x = x_ref[<<pl.ds(i, 1)|pl.ds(i, 1), :>>]
            o_ref[pl.ds(i, 1)] = jnp.reshape({value}, o_ref.at[pl.ds(i, 1)].shape)""",
    "carry": """
        @pl.loop(0, {rows}, init_carry=jnp.zeros(x_ref.shape[1:]))
        def total(i, c):
            return c + x_ref[i] * <<0.5|i>>
        x = x_ref[...]
        o_ref[...] = {value} + total""",
    "when": """
        x = x_ref[...]
        o_ref[...] = {value}
        @pl.when(<<pl.program_id(0) == 0|jnp.sum(x) > 0|pl.num_programs(0) > 1>>)
        def _():
            o_ref[<<...|0|0, 0>>] = <<o_ref[<<...|0|0, 0>>] * 0 + 3.0|0 * x[<<...|0|0, 0>>]>>""",
    "accumulated": """
        x = x_ref[...]
        @pl.when(pl.program_id(0) == 0)
        def _():
            s_ref[...] = jnp.zeros_like(s_ref)
        s_ref[...] += x
        x = s_ref[...]
        o_ref[...] = {value}""",
    "added": """
        x = x_ref[...]
        o_ref[...] = jnp.where(jnp.isnan(o_ref[...]), 0, o_ref[...]) + {value}""",
    "scoped": """
        def body(t_ref):
            t_ref[...] = x_ref[...] * 2
            x = t_ref[<<...|:>>]
            o_ref[...] = {value}
        pl.run_scoped(body, pltpu.VMEM(x_ref.shape, x_ref.dtype))""",
    "condition": """
        x = lax.cond(pl.program_id(0) % 2 == 0, lambda: x_ref[...], lambda: -x_ref[...])
        o_ref[...] = {value}""",
    "parts": """
        x = x_ref[...]
        y = {value}
        o_ref[<<...|:>>] = y
        o_ref[0] = y[-1]
        o_ref[<<-1|::2|0, 0|:, 0|pl.ds(0, 1)>>] <<+=|*=>> 2.0""",
    "copied": """
        pltpu.sync_copy(x_ref, o_ref)
        x = o_ref[...]
        o_ref[...] = {value}""",
}


def _cut(g: Gen, n: int, axis: str, steps: int) -> tuple[str, str, int]:
    """How an axis of n elements is cut: the entry of the block shape, the index, the size."""
    size = g.pick(*[k for k in (1, 2, 3, 4) if k <= max(n, 1)])
    where = g.pick(axis, axis, axis, "0", f"{steps - 1} - {axis}", f"({axis} + 1) % {steps}")
    kind = g.pick(*["{0}"] * 5, "pl.Blocked({0})", "pl.Element({0})")
    return kind.format(size), where, size


def program(g: Gen) -> Program:
    """One call on an array of two axes, which are cut into blocks, and a small one that is not."""
    shape = (g.pick(1, 2, 3, 4, 6, 7), g.pick(1, 2, 4, 5, 8))
    steps = (g.pick(1, 2, 3), g.pick(1, 1, 2))
    cuts = [_cut(g, n, axis, k) for n, axis, k in zip(shape, "ij", steps, strict=True)]
    block = ", ".join(entry for entry, _, _ in cuts)
    index = ", ".join(where for _, where, _ in cuts)
    outs = [n * k for (_, _, n), k in zip(cuts, steps, strict=True)]
    sizes = ", ".join(str(n) for _, _, n in cuts)
    name = str(g.pick(*BODIES))
    body = textwrap.dedent(BODIES[name]).strip("\n")
    body = body.replace("{value}", g.pick(*VALUES)).replace("{rows}", str(cuts[0][2]))
    scratch = "s_ref" if name == "accumulated" else ""
    options = [f"scratch_shapes=[pltpu.VMEM(({sizes}), 'float32')]"] if scratch else []
    if g.chance(0.15) and shape == tuple(outs):
        options.append("input_output_aliases={0: 0}")
    kernel = f"def kernel(x_ref, w_ref, o_ref{', ' + scratch if scratch else ''}):\n"
    text = "\n".join([
        kernel + textwrap.indent(written(g, body), "    "),
        f"call = pl.pallas_call(kernel, jax.ShapeDtypeStruct({tuple(outs)}, 'float32'),",
        f"    grid={steps}, in_specs=[pl.BlockSpec(({block}), lambda i, j: ({index})),",
        "    <<pl.BlockSpec((1, 2), lambda i, j: (0, 0))|pl.BlockSpec()|"
        "pl.BlockSpec(memory_space=pl.ANY)>>],",
        f"    out_specs=pl.BlockSpec(({sizes}), lambda i, j: (i, j)), interpret=True,",
        f"    {', '.join(options)})"])
    statements: list[Statement] = [Code(written(g, text))]
    statements += [Assign("x", moderate(g, shape)), Assign("w", moderate(g, (1, 2)))]
    run = g.pick("call(x, w)", "call(x, w)", "jax.jit(call)(x, w)",
                 "jax.vmap(call, (0, None))(jnp.stack([x, x * 2]), w)",
                 "jax.jvp(lambda x: call(x, w), (x,), (jnp.ones_like(x),))")
    return Program("kernels", (*statements, Assign("result", Text(run))), calls=("kernels",))
