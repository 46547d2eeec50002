"""Composed programs: a function of a few steps under nested transformations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.oracle.calls import TOTAL
from tests.oracle.language import (
    Assign,
    Call,
    Code,
    Expr,
    Function,
    Items,
    Program,
    Statement,
    Text,
    call,
    form,
    text,
)
from tests.oracle.values import Gen, kind_of

Shape = tuple[int, ...]


@dataclass
class Scope:
    """The variables of a function that is being written, with their shapes."""

    g: Gen
    shapes: dict[str, Shape] = field(default_factory=dict)
    body: list[Statement] = field(default_factory=list)
    helpers: list[Statement] = field(default_factory=list)

    def variable(self, least: int = 0) -> str:
        fitting = [n for n, s in self.shapes.items() if len(s) >= least]
        if not fitting:
            name = self.g.rng.choice(list(self.shapes))
            shape = self.shapes[name]
            return self.define(call("jnp.reshape", Text(name), (1,) * (least - len(shape)) + shape),
                               (1,) * (least - len(shape)) + shape)
        return self.g.rng.choice(fitting[-4:])  # late ones, so that programs are deep

    def define(self, e: Expr, shape: Shape) -> str:
        name = f"y{len(self.body)}"
        self.body.append(Assign(name, e))
        self.shapes[name] = shape
        return name


Step = Callable[[Scope], None]

ELEMENTWISE = (
    "jnp.sin({})", "jnp.cos({})", "jnp.tanh({})", "jnp.exp(jnp.tanh({}))", "jnp.log1p(jnp.abs({}))",
    "jnp.sqrt(jnp.abs({}) + 1)", "nn.relu({})", "nn.sigmoid({})", "nn.softplus({})", "nn.gelu({})",
    "nn.silu({})", "jnp.square({})", "jnp.abs({})", "(-{})", "lax.rsqrt({} ** 2 + 1)",
    "({} * 2)", "({} + 1.5)", "(1 - {})", "({} / 3)", "({} ** 2)", "({} ** 3)", "jnp.arctan({})",
    "lax.stop_gradient({})", "jnp.clip({}, -1, 1)", "jnp.where({0} > 0, {0}, 0.5)",
    "jnp.nan_to_num({})", "jnp.sinc({})", "jnp.expm1(jnp.tanh({}))", "nn.elu({})",
    "nn.leaky_relu({})", "jnp.sign({})", "jnp.round({}, 1)", "jnp.floor({})", "jnp.cbrt({} + 3)",
    "lax.erf({})", "jnp.logaddexp({}, 0.5)", "jnp.real({})", "lax.integer_pow({}, 3)",
    "jnp.copysign({}, -1.0)", "jnp.sinh(jnp.tanh({}))", "jnp.asarray({}, 'float32')",
    "{}.astype('bfloat16')", "{}.astype(jnp.float16)", "{}.astype(float)", "jnp.array({})",
    "lax.optimization_barrier({})", "jnp.mod({}, 2.0)", "jnp.reciprocal({} ** 2 + 1)",
    "lax.convert_element_type({}, 'float32')", "nn.hard_tanh({})", "nn.log_sigmoid({})",
    "jnp.where(jnp.isfinite({0}), {0}, 0)", "jnp.deg2rad({})",
    "jnp.float_power(jnp.abs({}) + 1, 1.5)",
)


def filled(pattern: str, name: str) -> Expr:
    return Text(pattern.replace("{0}", name).replace("{}", name))


def elementwise(s: Scope) -> None:
    name = s.variable()
    s.define(filled(s.g.pick(*ELEMENTWISE), name), s.shapes[name])


def along_axis(s: Scope) -> None:
    name = s.variable(1)
    axis = s.g.rng.randint(-len(s.shapes[name]), len(s.shapes[name]) - 1)
    f = s.g.pick("jnp.cumsum", "jnp.sort", "jnp.flip", "nn.softmax", "nn.log_softmax",
                 "jnp.cumprod", "lax.cummax", "lax.cumlogsumexp", "nn.standardize",
                 "jnp.roll")
    if f == "jnp.roll":
        s.define(call(f, Text(name), s.g.rng.randint(-2, 2), axis=axis), s.shapes[name])
        return
    if f.startswith("lax."):
        axis %= len(s.shapes[name])
    s.define(call(f, Text(name), axis=axis), s.shapes[name])


def reduction(s: Scope) -> None:
    name = s.variable()
    shape = s.shapes[name]
    f = s.g.pick("sum", "mean", "max", "min", "prod", "var", "std", "logsumexp", "median", "ptp",
                 "linalg")
    keepdims = s.g.chance(0.3)
    axis = s.g.rng.randint(-len(shape), len(shape) - 1) if shape and s.g.chance(0.7) else None
    if f in ("max", "min", "median", "ptp") and 0 in shape:
        f = "sum"
    if f == "linalg":
        e: Expr = form("jnp.sqrt(jnp.sum({0} ** 2) + 1)".replace("{0}", name))
        s.define(e, ())
        return
    module = "nn" if f == "logsumexp" else "jnp"
    named = {"axis": axis} if axis is not None or s.g.chance(0.2) else {}
    if keepdims:
        s.define(call(f"{module}.{f}", Text(name), **named, keepdims=True), tuple(
            1 if axis is None or i == axis % len(shape) else n for i, n in enumerate(shape)))
    else:
        s.define(call(f"{module}.{f}", Text(name), **named), () if axis is None else tuple(
            n for i, n in enumerate(shape) if i != axis % len(shape)))


BINARY = ("({} + {})", "({} - {})", "({} * {})", "({} / ({} ** 2 + 1))", "jnp.maximum({}, {})",
          "jnp.minimum({}, {})", "jnp.arctan2({}, {} ** 2 + 1)", "jnp.hypot({}, {} + 5)",
          "jnp.where({} > 0.25, {}, 0.0)", "jnp.logaddexp({}, {})",
          "jnp.power(jnp.abs({}) + 1, {})", "jnp.fmod({}, {} ** 2 + 1)", "jnp.heaviside({}, {})")


def binary(s: Scope) -> None:
    a, b = s.variable(), s.variable()
    try:
        shape = broadcast(s.shapes[a], s.shapes[b])
    except ValueError:
        b, shape = a, s.shapes[a]
    s.define(form(s.g.pick(*BINARY), Text(a), Text(b)), shape)


def broadcast(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        raise ValueError("shapes")
    return tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))


def reshaping(s: Scope) -> None:
    name = s.variable(1)
    shape = s.shapes[name]
    axis = s.g.rng.randint(0, len(shape) - 1)
    n = shape[axis]
    x = Text(name)
    cut = shape[:axis], shape[axis + 1:]
    order = s.g.rng.sample(range(len(shape)), len(shape))
    options: list[tuple[Expr, Shape]] = [
        (call("jnp.ravel", x), (math.prod(shape),)),
        (call("jnp.transpose", x, tuple(order)), tuple(shape[i] for i in order)),
        (call("jnp.expand_dims", x, axis), (*cut[0], 1, *shape[axis:])),
        (call("jnp.broadcast_to", x, (2, *shape)), (2, *shape)),
        (call("jnp.concatenate", [x, x], axis=axis), (*cut[0], 2 * n, *cut[1])),
        (call("jnp.stack", [x, x], axis=axis), (*cut[0], 2, *shape[axis:])),
        (call("jnp.pad", x, [(1, 0)] + [(0, 0)] * (len(shape) - 1)), (shape[0] + 1, *shape[1:])),
        (form("{}[::-1]", x), shape), (form("{}[..., None]", x), (*shape, 1)),
        (form("{}[1:]", x), (max(0, shape[0] - 1), *shape[1:])),
        (call("jnp.repeat", x, 2, axis=axis), (*cut[0], 2 * n, *cut[1])),
    ]
    if shape[0] > 0:
        options += [
            (form("{}[0]", x), shape[1:]), (form("{}[-1]", x), shape[1:]),
            (form("{}[jnp.array([0, -1, 0])]", x), (3, *shape[1:])),
            (form("{}.at[0].set(1.5)", x), shape), (form("{}.at[-1].add(2)", x), shape),
            (form("{}.at[jnp.array([0, 0])].add(0.5)", x), shape),
            (form("{}.at[0].multiply(2.0)", x), shape),
            (form("lax.dynamic_index_in_dim({}, 0, 0)", x), (1, *shape[1:])),
            (call("jnp.take", x, Text("jnp.array([[0], [0]])"), axis=0), (2, 1, *shape[1:])),
            (form(f"{{}}[jnp.argmax({name}.ravel()) % {shape[0]}]", x), shape[1:]),
            (form("jnp.diff({}, axis=0)", x), (shape[0] - 1, *shape[1:])),
        ]
    e, out = s.g.rng.choice(options)
    if math.prod(out) <= 64:
        s.define(e, out)


def product(s: Scope) -> None:
    name = s.variable(1)
    shape = s.shapes[name]
    m = s.g.pick(1, 2, 3)
    weights = s.g.data((shape[-1], m), "float32", "jnp")
    way = s.g.pick("matmul", "einsum", "outer", "self", "vector")
    x = Text(name)
    if way == "matmul":
        s.define(form("({} @ {})", x, weights), (*shape[:-1], m))
    elif way == "einsum":
        s.define(call("jnp.einsum", "...i,ij->...j", x, weights), (*shape[:-1], m))
    elif way == "vector":
        s.define(call("jnp.dot", x, s.g.data((shape[-1],), "float32", "np")), shape[:-1])
    elif way == "outer" and math.prod(shape) <= 6:
        s.define(call("jnp.outer", x, x), (math.prod(shape),) * 2)
    else:
        s.define(form(f"jnp.sum({name} * {name})"), ())


def custom(s: Scope) -> None:
    """A function with rules of its own, defined outside."""
    number = len(s.helpers)
    name = f"h{number}"
    source = {
        "jvp": f"@jax.custom_jvp\ndef {name}(x):\n    return jnp.sin(x) * 2\n"
               f"{name}.defjvp(lambda p, t: ({name}(p[0]), t[0] * jnp.cos(p[0]) * 3))",
        "jvps": f"@jax.custom_jvp\ndef {name}(x):\n    return x * x\n"
                f"{name}.defjvps(lambda t, out, x: t * x)",
        "vjp": f"@jax.custom_vjp\ndef {name}(x):\n    return jnp.tanh(x)\n"
               f"{name}.defvjp(lambda x: ({name}(x), x), lambda x, g: (g * (1 + x),))",
        "jit": f"@jax.jit\ndef {name}(x):\n    return jnp.cos(x) + 1",
        "static": f"{name}_ = jax.jit(lambda x, n: x ** n, static_argnums=1)\n"
                  f"def {name}(x):\n    return {name}_(x, 3)",
        "while": f"def {name}(x):\n    return lax.while_loop(lambda c: c[0] < 3, "
                 "lambda c: (c[0] + 1, c[1] * 0.5), (0, x))[1]",
        "vmap": f"def {name}(x):\n    return jax.vmap(lambda a: a * 2 + jnp.sum(x))("
                "jnp.ravel(x)).reshape(x.shape)",
        "grad": f"def {name}(x):\n    return jax.grad(lambda a: jnp.sum(jnp.sin(a) * a))(x)",
    }
    kind = s.g.pick("jvp", "jvps", "vjp", "jit", "jit", "static", "vmap", "grad", "while")
    s.helpers.append(Code(source[str(kind)]))
    x = s.variable()
    if kind == "grad":
        x = s.define(Text(f"jnp.asarray({x}, 'float32')"), s.shapes[x])
    s.define(Call(name, (Text(x),)), s.shapes[x])


CONTROL = {
    "scan": "lax.scan(lambda c, y: (jnp.sin(c) * y + x, c * y), x, jnp.arange(3.0), "
            "reverse={0})[1].sum(0)",
    "scan of rows": "lax.scan(lambda c, row: ((c[0] + 1, row * c[0]), (c[1], row + c[0])), "
                    "(0, x[0]), x, unroll={1})[1][1]",
    "nested scans": "lax.scan(lambda c, y: (lax.scan(lambda d, z: (d * z, d), c, "
                    "jnp.arange(1.0, 3.0))[0] + y, None), x, jnp.arange(2.0))[0]",
    "cond": "lax.cond({2}, lambda a: a * 2, lambda a: jnp.sin(a) + a - a, x)",
    "switch": "lax.switch({1}, [lambda a: a * 2, jnp.abs, lambda a: a - x], x)",
    "cond in scan": "lax.scan(lambda c, i: (lax.cond(i > 0, lambda a: a * 0.5, lambda a: a + x, "
                    "c), i), x, jnp.arange(2))[0]",
    "fori_loop": "lax.fori_loop({1}, 3, lambda i, c: c * 0.5 + x * i, x)",
    "map": "lax.map(lambda row: row * 2 + jnp.sum(x), x, batch_size={3})",
    "associative_scan": "lax.associative_scan(jnp.add, x, reverse={0})",
    "remat": "jax.checkpoint(lambda a: jnp.sin(jnp.sin(a)) * a)(x)",
}


def control(s: Scope) -> None:
    """Control flow over a value, in a function defined outside."""
    kind = s.g.pick(*CONTROL)
    x = s.variable(1 if kind in ("scan of rows", "map", "associative_scan") else 0)
    if not all(s.shapes[x]):
        return
    name = f"h{len(s.helpers)}"
    predicate = s.g.pick("True", "False", "jnp.sum(x) > 0", "x is not None")
    body = CONTROL[str(kind)].format(s.g.chance(0.3), s.g.rng.randint(1, 2), predicate,
                                     s.g.pick(None, 1, 2))
    s.helpers.append(Code(f"def {name}(x):\n    return {body}"))
    x = s.define(Text(f"jnp.asarray({x}, 'float32')"), s.shapes[x])
    s.define(Call(name, (Text(x),)), s.shapes[x])


# Of each x[i] along a mapped axis of size {0}, of the shape of x[i].
COLLECTIVES = {
    "psum": "x * 0.1 + lax.psum(jnp.sin(x), 'i')",
    "pmean": "x - lax.pmean(x, 'i')",
    "pmax": "x - lax.pmax(lax.stop_gradient(x), 'i')",
    "constant": "x * lax.psum(2, 'i') + lax.psum(jnp.float32(0.5), 'i')",
    "axis_index": "x * (lax.axis_index('i') + 1) / lax.axis_size('i')",
    "pshuffle": "lax.pshuffle(x, 'i', [*range(1, {0}), 0]) * x",
    "all_gather": "jnp.tanh(lax.all_gather(x, 'i', axis=-1).sum(-1)) * x",
    "all_gather tiled": "jnp.sin(lax.all_gather(x[None], 'i', tiled=True)).sum(0)",
    "psum_scatter": "lax.psum_scatter(jnp.stack([x * k for k in range({0})]), 'i')",
    "all_to_all": "lax.all_to_all(jnp.stack([x * k for k in range({0})]), 'i', 0, 0).sum(0)",
    "in scan": "lax.scan(lambda c, y: (lax.psum(c, 'i') * 0.5 + y, c), x, jnp.arange(2.0))[0]",
    "in cond": "lax.cond(lax.psum(jnp.sum(x), 'i') > 0, lambda: lax.pmean(x, 'i') * x, lambda: x)",
    "in grad": "jax.grad(lambda x: jnp.sum(lax.pmean(jnp.sin(x), 'i') ** 2))(x)",
    "in jit": "jax.jit(lambda x: x - lax.psum(x * x, 'i'))(x)",
}


def collective(s: Scope) -> None:
    """Values read along a mapped axis, in a function defined outside."""
    x = s.variable(1)
    if not all(s.shapes[x]):
        return
    name = f"h{len(s.helpers)}"
    body = COLLECTIVES[str(s.g.pick(*COLLECTIVES))].format(s.shapes[x][0])
    s.helpers.append(
        Code(f"def {name}(x):\n    return jax.vmap(lambda x: {body}, axis_name='i')(x)"))
    x = s.define(Text(f"jnp.asarray({x}, 'float32')"), s.shapes[x])
    s.define(Call(name, (Text(x),)), s.shapes[x])


STEPS: dict[Step, float] = {elementwise: 34, along_axis: 9, reduction: 14, binary: 18,
                            reshaping: 14, product: 8, custom: 6, control: 8,
                            collective: 6}


# -- transformations -------------------------------------------------------------------------------


@dataclass
class Wrapped:
    """The function so far: its name, the shapes of its arguments, what it returns."""

    name: str
    shapes: list[Shape]
    scalar: bool = False
    statements: list[Statement] = field(default_factory=list)

    def then(self, e: Expr, scalar: bool = False) -> None:
        name = f"f{len(self.statements) + 1}"
        self.statements.append(Assign(name, e))
        self.name, self.scalar = name, scalar


def wrap(g: Gen, w: Wrapped) -> None:
    count = len(w.shapes)
    arguments = ", ".join("abcd"[:count])
    options = {"jit": 5, "vmap": 3, "jacfwd": 1, "jacrev": 1, "jvp": 2, "vjp": 2, "linearize": 1,
               "checkpoint": 2}
    if math.prod(math.prod(s) for s in w.shapes) <= 12:
        options["hessian"] = 1
    options["grad" if w.scalar else "sum"] = 8
    if w.scalar:
        options["value_and_grad"] = 3
    way = g.weighted(options)
    f = Text(w.name)
    argnums = g.pick(0, tuple(range(count)), count - 1)
    named = {"argnums": argnums} if g.chance(0.6) else {}
    if way == "jit":
        w.then(call("jax.jit", f), w.scalar)
    elif way == "checkpoint":
        policy = g.pick("nothing_saveable", "everything_saveable", "dots_saveable")
        named = {} if g.chance(0.4) else {"policy": Text(f"jax.checkpoint_policies.{policy}")}
        w.then(call("jax.checkpoint", f, **named), w.scalar)
    elif way == "sum":
        w.then(Text(f"lambda {arguments}: total({w.name}({arguments}))"), True)
    elif way == "vmap":
        axes = [g.rng.randint(0, len(s)) if g.chance(0.75) else None for s in w.shapes]
        if all(a is None for a in axes):
            axes[0] = 0
        w.shapes = [s if a is None else (*s[:a], 2, *s[a:])
                    for s, a in zip(w.shapes, axes, strict=True)]
        named = {"out_axes": g.pick(0, -1)} if g.chance(0.2) else {}
        w.then(call("jax.vmap", f, in_axes=tuple(axes), **named))
    elif way in ("grad", "value_and_grad", "jacfwd", "jacrev", "hessian"):
        w.then(call(f"jax.{way}", f, **named))
    elif way == "jvp":
        w.then(Text(f"lambda {arguments}: jax.jvp({w.name}, ({arguments},), "
                    f"jax.tree.map(jnp.ones_like, ({arguments},)))"))
    elif way == "vjp":
        w.then(Text(f"lambda {arguments}: (lambda out, pull: (out, pull(jax.tree.map("
                    f"jnp.ones_like, out))))(*jax.vjp({w.name}, {arguments}))"))
    else:
        w.then(Text(f"lambda {arguments}: (lambda out, lin: (out, lin(*jax.tree.map("
                    f"jnp.ones_like, ({arguments},)))))(*jax.linearize({w.name}, {arguments}))"))


def shapes_of(g: Gen, count: int) -> list[Shape]:
    return [g.shape(0, 2) if g.chance(0.85) else g.shape(0, 3) for _ in range(count)]


def function(g: Gen, shapes: list[Shape], steps: int) -> tuple[Scope, Function]:
    s = Scope(g)
    for i, shape in enumerate(shapes):
        s.shapes[f"x{i}"] = shape
    for _ in range(steps):
        g.weighted(STEPS)(s)
    last = list(s.shapes)[-1]
    result: Expr = Text(last)
    if g.chance(0.25):
        other = s.variable()
        result = g.pick(text((Text(last), Text(other))), Items(
            "dict", (Text(last), text([Text(other)])), ("'a'", "'b'")))
    made = Function("f", ", ".join(f"x{i}" for i in range(len(shapes))), tuple(s.body), result)
    return s, made


def program(g: Gen) -> Program:
    count = g.pick(1, 1, 2, 2, 3)
    steps = g.rng.randint(2, 12)
    shapes = shapes_of(g, count)
    s, f = function(g, shapes, steps)
    w = Wrapped("f", list(shapes))
    for _ in range(g.weighted({0: 1, 1: 4, 2: 5, 3: 3})):
        wrap(g, w)
    if g.chance(0.35):
        w.then(call("jax.jit", Text(w.name)), w.scalar)
    arrays = []
    for i, shape in enumerate(w.shapes):
        dtype = g.weighted({"float32": 80, "bfloat16": 6, "float16": 6, "int32": 3,
                            "complex64": 2, **({"float64": 40} if g.x64 else {})})
        x = g.data(shape, str(dtype), "np" if g.chance(0.1) else "jnp")
        if not shape and g.chance(0.15) and kind_of(str(dtype)) == "f":
            x = g.data(shape, str(dtype), "py")
        arrays.append(Assign(f"x{i}", x))
    actual = tuple(Text(f"x{i}") for i in range(count))
    body = (TOTAL, *s.helpers, f, *w.statements, *arrays, Assign("result", Call(w.name, actual)))
    return Program("programs", body, g.x64, ("program",))
