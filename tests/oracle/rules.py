"""Functions with rules of their own, one within another, under transformations in nested order."""

from __future__ import annotations

import textwrap

from tests.oracle.language import Assign, Code, Function, Program, Statement, Text
from tests.oracle.nesting import layered, shapes, transformed, written
from tests.oracle.values import Gen

HELPERS = Code("""
import functools
import importlib
checkpoint_name = importlib.import_module(f'{jax.__name__}.ad_checkpoint').checkpoint_name
custom_vmap, sequential_vmap = jax.custom_batching.custom_vmap, jax.custom_batching.sequential_vmap
linear_call, SymbolicZero = jax.custom_derivatives.linear_call, jax.custom_derivatives.SymbolicZero
like = lambda ct, w: jnp.sum(ct) if jnp.ndim(w) == 0 else ct
zero = lambda t: isinstance(t, SymbolicZero)
""")

# Each defines `rule`, a function of `x` and `w` that may call `inner`, another one; where its
# derivative is another than that of what it computes, it shows whether the rule was used.
PRIMAL = "<<inner(x, w)|inner(x, w) * w|jnp.tanh(x) + w|x|jnp.sin(x) * 2>>"
TANGENT = "<<dx * w * 3 + dw * x|dx * jnp.cos(x)|jnp.zeros_like(x)|inner(dx, w) + dw * 0>>"
COTANGENTS = "(<<g * res[1] * 3|None|jnp.zeros_like(g)|inner(g, res[1])|g>>, " \
             "<<like(g * res[0], res[1])|None|jnp.zeros_like(res[1])>>)"
RULES = {
    "custom_jvp": f"""
        @jax.custom_jvp
        def rule(x, w):
            return {PRIMAL}
        @rule.defjvp
        def _(primals, tangents):
            (x, w), (dx, dw) = primals, tangents
            return <<rule(x, w)|jnp.sin(x) * 2>>, {TANGENT}
        """,
    "symbolic zeros of custom_jvp": f"""
        @jax.custom_jvp
        def rule(x, w):
            return {PRIMAL}
        def tangent(primals, tangents):
            (x, w), (dx, dw) = primals, (
                jnp.zeros_like(p) if zero(t) else t for p, t in zip(primals, tangents))
            return rule(x, w), dx * w * (2 + zero(tangents[0])) + dw * x * (2 + zero(tangents[1]))
        rule.defjvp(tangent, symbolic_zeros=True)
        """,
    "defjvps": f"""
        @jax.custom_jvp
        def rule(x, w):
            return {PRIMAL}
        rule.defjvps(<<None|lambda t, out, x, w: t * w|lambda t, out, x, w: inner(t, out)>>,
                     <<None|lambda t, out, x, w: t * x>>)
        """,
    "nondiff_argnums of custom_jvp": """
        @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
        def rule_(n, x, w):
            return <<n(x) * w|n(inner(x, w))>>
        @rule_.defjvp
        def _(n, primals, tangents):
            (x, w), (dx, dw) = primals, tangents
            return rule_(n, x, w), n(x) * dx + dw * <<x|0>>
        rule = lambda x, w: rule_(<<jnp.sin|lambda v: v * w|lambda v: v>>, x, w)
        """,
    "nondiff w of custom_jvp": """
        @functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
        def rule(x, w):
            return inner(x, w)
        rule.defjvp(lambda w, primals, tangents: (rule(primals[0], w), tangents[0] * w))
        """,
    "trees of custom_jvp": """
        @jax.custom_jvp
        def rule_(d, k=2):
            return {'s': d['x'] * d['w'][0], 't': (inner(d['x'], d['w'][0]), k)}
        @rule_.defjvp
        def _(primals, tangents):
            (d, k), (t, _) = primals, tangents
            return rule_(d, k), {'s': t['x'], 't': (t['x'] * 3 + t['w'][0], <<0.0|_>>)}
        def rule(x, w):
            made = rule_({'x': x, 'w': [w]}, <<3.0|k=1.0|1.0>>)
            return <<made['s']|made['t'][0] + made['s']>>
        """,
    "closure of custom_jvp": """
        def rule(x, w):
            @jax.custom_jvp
            def of_x(x):
                return inner(x, <<w|2.0>>) * <<w|1.0>>
            of_x.defjvp(lambda p, t: (of_x(p[0]), t[0] * <<w|3.0>>))
            return of_x(x)
        """,
    "custom_vjp": f"""
        @jax.custom_vjp
        def rule(x, w):
            return {PRIMAL}
        rule.defvjp(lambda x, w: (<<rule(x, w)|jnp.sin(x) * 2>>, (x, w)),
                    lambda res, g: {COTANGENTS}<<|, optimize_remat=True>>)
        """,
    "symbolic zeros of custom_vjp": """
        @jax.custom_vjp
        def rule_(x, w):
            return inner(x, w), x * w
        def forward(x, w):
            told = 1.0 * x.perturbed + 2.0 * w.perturbed
            return (x.value * told, x.value * w.value), (x.value, w.value)
        def backward(res, gs):
            g, h = (jnp.zeros_like(res[0]) if zero(g) else g for g in gs)
            told = 1.0 + zero(gs[0]) + 2.0 * zero(gs[1])
            return (g + h) * told, <<like(h * res[0], res[1])|None>>
        rule_.defvjp(forward, backward, symbolic_zeros=True)
        rule = lambda x, w: <<rule_(x, w)[0]|rule_(x, w)[1]|sum(rule_(x, w))>>
        """,
    "nondiff_argnums of custom_vjp": """
        @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
        def rule_(n, x, w):
            return inner(x, w) * 2
        rule_.defvjp(lambda n, x, w: (rule_(n, x, w), (n(x), w)),
                     lambda n, res, g: (n(g) * res[0], like(g, res[1])))
        rule = lambda x, w: rule_(<<jnp.sin|lambda v: v * w|lambda v: v>>, x, w)
        """,
    "integers of custom_vjp": """
        @jax.custom_vjp
        def rule_(x, i, w):
            return inner(x, w) * i, i
        rule_.defvjp(lambda x, i, w: (rule_(x, i, w), (i, w)), lambda res, gs: (
            gs[0] * res[0], <<None|np.zeros(jnp.shape(res[0]), jax.dtypes.float0)>>,
            like(gs[0], res[1])))
        rule = lambda x, w: rule_(x, <<2|jnp.arange(3)[1]|np.int32(3)>>, w)[0]
        """,
    "closure of custom_vjp": """
        def rule(x, w):
            @jax.custom_vjp
            def of_x(x):
                return inner(x, <<w|2.0>>)
            of_x.defvjp(lambda x: (of_x(x) * <<w|1.0>>, x), lambda res, g: (g * <<w|res>>,))
            return of_x(x)
        """,
    "custom_gradient": """
        @jax.custom_gradient
        def rule(x, w):
            return inner(x, w), lambda g: (<<g * x|g * 3>>, like(g, w))
        """,
    "closure_convert": """
        def rule(x, w):
            f, kept = jax.closure_convert(lambda v: inner(v, w), x)
            return f(x, *kept)
        """,
    "custom_vmap": f"""
        @custom_vmap
        def rule(x, w):
            return {PRIMAL}
        @rule.def_vmap
        def _(axis_size, in_batched, x, w):
            axes = tuple(0 if b else None for b in in_batched)
            if not any(in_batched):
                return rule(x, w), False
            return jax.vmap(lambda x, w: <<jnp.cos(x) * w|inner(x, w) * 2|x>>, axes)(x, w), True
        """,
    "unmapped results of custom_vmap": """
        @custom_vmap
        def rule(x, w):
            return inner(x, w)
        @rule.def_vmap
        def _(axis_size, in_batched, x, w):
            x = x[0] if in_batched[0] else x
            return <<inner(x, w.mean(0) if in_batched[1] else w)|x * axis_size>>, False
        """,
    "sequential_vmap": f"""
        @sequential_vmap
        def rule(x, w):
            return {PRIMAL}
        """,
    "linear_call": """
        rule = lambda x, w: linear_call(
            lambda r, x: x * <<r|1|jnp.cos(r)>>, lambda r, t: t * <<r|3|jnp.cos(r)>>, w,
            <<x|inner(x, w)>>)
        """,
    "custom_linear_solve": """
        def rule(x, w):
            k = w ** 2 + 1
            return lax.custom_linear_solve(
                lambda v: v * k, inner(x, w), lambda _, b: b / k,
                <<symmetric=True|transpose_solve=lambda _, b: b / k|symmetric=False>>)
        """,
    "custom_root": """
        def rule(x, w):
            return lax.custom_root(
                lambda y: y ** 3 + y - x * w, jnp.zeros_like(x),
                lambda f, y: lax.fori_loop(0, 8, lambda _, y: y - f(y) / (3 * y ** 2 + 1), y),
                lambda g, y: y / g(jnp.ones_like(y)))
        """,
    "checkpoint": """
        rule = jax.checkpoint(
            lambda x, w: checkpoint_name(jnp.sin(x), 'a') * checkpoint_name(inner(x, w), 'b'),
            policy=<<None|jax.checkpoint_policies.save_only_these_names('a')
            |jax.checkpoint_policies.save_anything_except_these_names('b')
            |jax.checkpoint_policies.nothing_saveable|jax.checkpoint_policies.everything_saveable>>
            <<|, prevent_cse=False>>)
        """,
    "static_argnums of checkpoint": """
        rule_ = jax.checkpoint(lambda x, w, f: f(inner(x, w)) * w, static_argnums=<<2|(2,)>>)
        rule = lambda x, w: rule_(x, w, <<jnp.sin|jnp.tanh>>)
        """,
    "linear_transpose": """
        rule = lambda x, w: jax.linear_transpose(lambda v: v * w + v, x)(inner(x, w))[0]
        """,
    "composite": """
        rule = lax.composite(lambda x, w: inner(x, w) * <<w|x>>, 'my.rule')
        """,
}


def defined(g: Gen, name: str, inner: str) -> list[Statement]:
    """A function with a rule, in which `inner` is the function of that name."""
    body = textwrap.dedent(written(g, RULES[str(g.pick(*RULES))])).strip()
    if g.chance(0.7):  # else the rule is made anew in each call, of what a transformation gives
        made = Function(f"made_{name}", "inner", (Code(body),), Text("rule"))
        return [made, Assign(name, Text(f"made_{name}({inner})"))]
    body = body.replace("inner(", f"{inner}(")
    return [Function(name, "x, w", (Code(body),), Text("rule(x, w)"))]


def program(g: Gen) -> Program:
    of = shapes(g)
    name = "base"
    body: list[Statement] = [HELPERS, Assign(name, Text(
        g.pick("lambda x, w: jnp.sin(x) * w", "lambda x, w: x * w", "lambda x, w: x")))]
    for depth in range(g.weighted({1: 6, 2: 3, 3: 1})):
        inner, name = name, ("first", "second", "third")[depth]
        body += defined(g, name, inner)
        layers, name = layered(g, name, 2)
        body += layers
    return transformed(g, "rules", body, name, of)
