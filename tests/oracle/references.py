"""References: made, read, written and handed on, inside and outside of transformed functions."""

from __future__ import annotations

import textwrap

from tests.oracle.language import Assign, Code, Function, Program, Statement, Text, call
from tests.oracle.nesting import layered, moderate, shapes, transformed, written
from tests.oracle.values import Gen

# What is done once, with references `r` and `s` of the shape of `x`; {0} is the first size.
VALUE = "<<x|x * w|jnp.sin(r[...])|s[...] * 0.5|jnp.cos(x)>>"
PART = "<<x[-1]|x[0] * 0.5|jnp.sin(x[0])|<<r|s>>[-1]|r[0] * x[0]>>"
WHERE = "<<...|0|-1|:|i|jnp.array([0, -1])|1:|::2|0:1|i, ...>>"
READS = ("<<r|s>>[...]", "<<r|s>>[0]", f"<<r|s>>[{WHERE}].sum()", "jax.ref.get(r, 0)",
         "<<r|s>>.at[<<0|:1|...>>][...]", "jax.ref.get(r.at[<<0|:1>>], ...).sum()", "r[i]",
         "r.shape[0] * x", "jax.ref.swap(<<r|s>>, 0, jnp.zeros_like(x[0]))", "r[-1] + s[i]",
         "jax.ref.swap(r, ..., x * 2)", "r.at[0].at[...][...]", "r[...] + s[...]")
WRITES = (f"<<r|s>>[...] = {VALUE}", f"<<r|s>>[<<0|-1|i>>] = {PART}", f"jax.ref.set(s, i, {PART})",
          "<<r|s>>[...] += <<x|w|1|x * w>>", "<<r|s>>[...] *= <<x|w|0.5>>", "s[i] = r[0] * 2",
          f"r[{WHERE}] += <<0.5|2|1>>", f"r[{WHERE}] *= 2", f"jax.ref.addupdate(r, 0, {PART})",
          f"jax.ref.addupdate(<<r|s>>, ..., {VALUE})", "s[::2] = x[::2] * 2", "s[1:] = r[1:]",
          "jax.ref.addupdate(r, jnp.array([0, 0]), jnp.stack([x[0], x[-1]]))",
          f"r.at[0][...] = {PART}", f"r.at[0].at[...][...] += {PART}", "r.at[:1][...] = x[:1] * 2",
          "s.at[i][...] = r.at[0][...]", "jax.ref.swap(r, ..., s[...] * x)",
          "r[jnp.array([0, -1])] = jnp.stack([x[-1], s[0]])")
ODD_READS = ("jnp.sin(r)", "r + 1", "r[None, 0]", "r[x[0] > 0]", "jnp.sum(r)",
             "r.at[1:][...].sum()", "r[x.shape[0] + 2]", "r.at[0].at[5][...]", "(r[...], s)[0]",
             "len(r) * x", "r[i, i, i]")
ODD_WRITES = ("r.set(x[0], 0)", "r.addupdate(x)", "s[...] = 1", "s[...] = x.astype('float16')",
              f"r[{WHERE}] = <<x[0]|0.5|x>>", "r.at[1:][...] = x[1:] * w", "r = r.at[...]",
              "s[x.shape[0] + 2] = x[0]", "r[...] = r", "s[...] = x[None]")

# Where it is done: `{write}` and `{read}` are some of the above.
PLACES = {
    "here": "{write}\ntold += jnp.sum({read})",
    "scan": """
        def body(c, v):
            i = lax.convert_element_type(c, int)
            {write}
            return c + 1, {read}
        told += jnp.sum(lax.scan(body, 0, <<x|None, length=2>><<|, reverse=True>>)[1])""",
    "fori_loop": """
        def body(i, c):
            {write}
            return c + jnp.sum({read})
        told += lax.fori_loop(0, {0}, body, 0.0)""",
    "while_loop": """
        def body(c):
            {write}
            return c[0] + 1, c[1] + jnp.sum({read})
        told += lax.while_loop(lambda c: c[0] < <<2|{0}>>, body, (0, 0.0))[1]""",
    "condition": """
        def body(c):
            {write}
            return c + 1
        told += lax.while_loop(lambda c: (c < 3) & (jnp.sum({read}) < 3), body, 0)""",
    "cond": """
        def body():
            {write}
            return jnp.sum({read})
        told += lax.cond(jnp.sum(<<x|r[...]>>) > 0, body, lambda: jnp.sum(<<x * 0|s[...]>>))""",
    "cond of references": """
        def body(r, s, x):
            {write}
            return jnp.sum({read})
        told += lax.cond(jnp.sum(x) > 0, body, lambda r, s, x: jnp.sum(x * 0), <<r|s>>, s, x)""",
    "switch of references": """
        def body(r, x):
            {write}
            return jnp.sum({read})
        told += lax.switch(1, [lambda r, x: jnp.sum(x * 0), body], <<r|r.at[...]>>, x)""",
    "jit": """
        @jax.jit
        def body(x):
            {write}
            return {read}
        told += jnp.sum(body(x))""",
    "jit of references": """
        @jax.jit
        def body(r, s, x):
            {write}
            return {read}
        told += jnp.sum(body(r, <<s|s|r>>, x))""",
    "jit of a part": """
        @jax.jit
        def body(r, x):
            r[...] = r[...] * 2 + <<x[0]|w>>
            return r[...]
        told += jnp.sum(body(r.at[<<0|1:|:1|i>>], x))""",
    "checkpoint": """
        @jax.checkpoint
        def body(x):
            {write}
            return {read}
        told += jnp.sum(body(x))""",
    "checkpoint of references": """
        @jax.checkpoint
        def body(r, s, x):
            {write}
            return jnp.sum({read})
        told += body(r, s, x)""",
    "vmap": """
        def body(r, x):
            r[...] = <<r[...] * x|x|x[::-1] if x.ndim else x|r[...] + 1>>
            return r[...]
        told += jnp.sum(jax.vmap(body)(r, x))""",
    "vmap of one": """
        def body(r, x):
            r[...] = <<r[...] + 1|r[...] * jnp.sum(x)>>
            return x * jnp.sum(r[...])
        told += jnp.sum(jax.vmap(body, in_axes=<<(0, None)|(-1, None)|(None, 0)>>)(r, x))""",
    "vmap of a closure": """
        def body(v):
            <<r[...] = x|r[0] = x[0]|r[v] = x[0]|r[v] = x[v]|r[...] = x * v>>
            return jnp.sum(r[...]) + v
        told += jnp.sum(jax.vmap(body)(jnp.arange({0})))""",
    "map": """
        def body(i):
            {write}
            return jnp.sum({read})
        told += jnp.sum(lax.map(body, jnp.arange({0})))""",
    "made inside": """
        def body(x):
            r = jax.new_ref(<<x|jnp.zeros_like(x)|x * w>>)
            {write}
            return jnp.sum({read})
        told += <<body|jax.jit(body)|jax.checkpoint(body)>>(x)""",
    "grad": """
        def body(x):
            {write}
            return jnp.sum({read})
        told += jnp.sum(jax.grad(body)(x))""",
    "grad of made inside": """
        def body(x):
            r = jax.new_ref(<<x|jnp.zeros_like(x)|x * w>>)
            {write}
            return jnp.sum({read} * x)
        told += jnp.sum(jax.<<grad|jacrev|jacfwd>>(body)(x))""",
    "vmap of made inside": """
        def body(x):
            r = jax.new_ref(<<x|jnp.zeros_like(x)|x * w>>)
            {write}
            return jnp.sum({read})
        told += jnp.sum(jax.vmap(body)(jnp.stack([x, x * 2])))""",
    "jvp": """
        def body(x):
            {write}
            return {read}
        told += sum(map(jnp.sum, jax.jvp(body, (x,), (x,))))""",
    "custom_vjp": """
        @jax.custom_vjp
        def body(x, s):
            return jnp.sin(x)
        def backward(res, g):
            <<s, x = res|x = res[1]>>
            s[<<...|0>>] <<=|+=>> <<g|g * 2|jnp.sum(g)>>
            return g * 3, None
        body.defvjp(lambda x, s: (jnp.sin(x), (s, x)), backward)
        told += jnp.sum(jax.grad(lambda x: jnp.sum(body(x, s)))(x))""",
    "ended": "told += jnp.sum(jax.ref.freeze(s))<<|\n{write}>>",
    "freed": "jax.free_ref(s)<<|\ntold += jnp.sum({read})>>",
    "aliases": "t = <<r|r.at[...]>>\n{write}\nt[...] += 1\ntold += jnp.sum(t[...])",
    "results": "told += jnp.sum(jax.jit(<<lambda r: r|lambda r: jax.new_ref(r[...])>>)(r)[...])",
}


def steps(g: Gen, count: int, first: int) -> list[Statement]:
    """Some of what is done, in some of the places; `first` is the first size of the references."""
    found: list[Statement] = []
    for _ in range(count):
        pattern = textwrap.dedent(PLACES[str(g.pick(*PLACES))]).strip("\n")
        pattern = pattern.replace("{write}", g.pick(*(ODD_WRITES if g.chance(0.04) else WRITES)))
        pattern = pattern.replace("{read}", g.pick(*(ODD_READS if g.chance(0.04) else READS)))
        found.append(Code(written(g, pattern.replace("{0}", str(first)))))
    return found


def program(g: Gen) -> Program:
    of = shapes(g, 1)
    known = g.chance(0.2)  # `s` is made before the function, and looked at behind it
    outside = [Assign("s", call("jax.new_ref", moderate(g, of[0])))]
    inside = ["i, told = <<0|jnp.argmax(x) % x.shape[0]>>, 0.0",
              "r = jax.new_ref(<<x|x * w|jnp.zeros_like(x)|jnp.array(x)>>)",
              "s = jax.new_ref(<<x|jnp.ones_like(x)|x * w>>)"][:2 if known else 3]
    start = [Code(written(g, line)) for line in inside]
    result = "x * told + <<r[...]|r[...] + s[...]|jax.ref.freeze(r)>>"
    f = Function("f", "x, w", (*start, *steps(g, g.pick(1, 1, 2, 3), of[0][0])),
                 Text(written(g, result)))
    layers, name = layered(g, "f")
    return transformed(g, "references", [*(outside if known else []), f, *layers], name, of,
                       "({}, s[...])" if known else "{}")
