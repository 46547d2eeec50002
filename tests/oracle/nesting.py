"""Functions of two arrays within functions of two arrays: loops, branches, maps and derivatives.

Each function takes `x` and `w`, whose shape is that of `x` or none, and gives an array like `x`. So
whatever is to be tried is tried under any number of layers, in any order.
"""

from __future__ import annotations

import math
import re

from tests.oracle.calls import TOTAL
from tests.oracle.language import Assign, Call, Data, Form, Program, Statement, Text
from tests.oracle.programs import Shape, Wrapped, wrap
from tests.oracle.values import Gen

LAYERS = {
    "jit": "jax.jit({})",
    "checkpoint": "jax.checkpoint({})",
    "again": "lambda x, w: {}({}(x, w), w)",
    "scan of carries": "lambda x, w: lax.scan(lambda c, y: ({}(c, w) * y, jnp.sum(c)), x, "
                       "jnp.arange(1.0, 3.0))[0]",
    "scan of rows": "lambda x, w: lax.scan(lambda c, k: (c + 1, {}(x * k, w)), 0, "
                    "jnp.arange(2.0), reverse=True)[1].sum(0)",
    "scan of w": "lambda x, w: lax.scan(lambda c, v: (c, {}(x, v)), 0.0, "
                 "jnp.stack([w, w * 0.5]))[1].sum(0)",
    "cond": "lambda x, w: lax.cond(jnp.sum(x) > 0, {}, lambda x, w: x * 2, x, w)",
    "cond of closures": "lambda x, w: lax.cond(jnp.sum(w) > 0, lambda: {}(x, w), lambda: x)",
    "switch": "lambda x, w: lax.switch(1, [lambda x, w: x, {}], x, w)",
    "fori_loop": "lambda x, w: lax.fori_loop(0, 2, lambda i, c: {}(c, w) * 0.5, x)",
    "while_loop": "lambda x, w: lax.while_loop(lambda c: c[0] < 2, "
                  "lambda c: (c[0] + 1, {}(c[1], w)), (0, x))[1]",
    "map": "lambda x, w: lax.map(lambda k: {}(x * k, w), jnp.arange(1.0, 3.0)).sum(0)",
    "vmap": "lambda x, w: jax.vmap({})(jnp.stack([x, x * 0.5]), jnp.stack([w, w + 1])).sum(0)",
    "vmap of x": "lambda x, w: jax.vmap({}, (0, None))(jnp.stack([x, x * 0.5]), w).sum(0)",
    "vmap of w": "lambda x, w: jax.vmap({}, (None, 0))(x, jnp.stack([w, w + 1])).sum(0)",
    "vmap of last": "lambda x, w: jax.vmap({}, -1, -1)(jnp.stack([x, x * 0.5], -1), "
                    "jnp.stack([w, w + 1], -1)).sum(-1)",
    "jvp": "lambda x, w: jax.jvp({}, (x, w), (jnp.ones_like(x), w))[1]",
    "jvp of x": "lambda x, w: sum(jax.jvp(lambda a: {}(a, w), (x,), (x,)))",
    "jvp of w": "lambda x, w: sum(jax.jvp(lambda b: {}(x, b), (w,), (w,)))",
    "grad": "lambda x, w: jax.grad(lambda a: jnp.sum({}(a, w)))(x)",
    "grad of w": "lambda x, w: x * jnp.sum(jax.grad(lambda b: jnp.sum({}(x, b)))(w))",
    "vjp": "lambda x, w: (lambda out, pull: pull(out)[0])(*jax.vjp({}, x, w))",
    "linearize": "lambda x, w: jax.linearize(lambda a: {}(a, w), x)[1](x)",
    "linearize of both": "lambda x, w: jax.vmap(jax.linearize({}, x, w)[1], (0, None))("
                         "jnp.stack([x, x + 1]), w).sum(0)",
    "jacfwd": "lambda x, w: jax.jacfwd({})(x, w).reshape(-1, *x.shape).sum(0)",
    "jacrev": "lambda x, w: jax.jacrev({})(x, w).reshape(-1, *x.shape).sum(0)",
    "constant x": "lambda x, w: {}(jnp.ones_like(x), w) + x",
    "constant w": "lambda x, w: {}(x, jnp.full_like(w, 0.5))",
    "stopped w": "lambda x, w: {}(x, lax.stop_gradient(w))",
}


def written(g: Gen, pattern: str) -> str:
    """The text with one of the options in the place of each `<<option|option>>`."""
    def chosen(found: re.Match[str]) -> str:
        return str(g.pick(*found[1].split("|")))
    while "<<" in pattern:
        pattern = re.sub(r"<<((?:(?!<<|>>).)*)>>", chosen, pattern,
                         flags=re.DOTALL)
    return pattern


def layered(g: Gen, name: str, most: int = 3,
            without: str = "nothing") -> tuple[list[Statement], str]:
    """Some layers around the function of that name, and the name of the outermost."""
    found: list[Statement] = []
    for i in range(g.rng.randint(0, most)):
        pattern = g.pick(*(p for p in LAYERS.values() if without not in p))
        e = Form(pattern, (Text(name),) * pattern.count("{}"))
        name = f"{name.split('_')[0]}_{i + 1}"
        found.append(Assign(name, e))
    return found, name


def moderate(g: Gen, shape: Shape, dtype: str = "float32") -> Data:
    """An array without values at which functions of it overflow."""
    return Data("jnp", dtype, shape, tuple(
        round(g.rng.uniform(-1.5, 1.5), 2) for _ in range(math.prod(shape))))


def shapes(g: Gen, least: int = 0) -> tuple[Shape, Shape]:
    x = tuple(g.pick(1, 2, 2, 3, 3, 3) for _ in range(g.rng.randint(least, 2)))
    return x, g.pick(x, ())


def transformed(g: Gen, kind: str, body: list[Statement], name: str, of: tuple[Shape, Shape],
                result: str = "{}") -> Program:
    """The program that calls the function, under some transformations more."""
    w = Wrapped(name, list(of))
    for _ in range(g.weighted({0: 3, 1: 4, 2: 3, 3: 1})):
        wrap(g, w)
    dtype = g.weighted({"float32": 90, "bfloat16": 5, "float16": 5,
                        **({"float64": 60} if g.x64 else {})})
    actual = [Assign(n, moderate(g, s, dtype)) for n, s in zip("xw", w.shapes, strict=True)]
    found = Assign("result", Call(w.name, (Text("x"), Text("w"))))
    last = [] if result == "{}" else [Assign("result", Text(result.format("result")))]
    return Program(kind, (TOTAL, *body, *w.statements, *actual, found, *last), g.x64, (kind,))
