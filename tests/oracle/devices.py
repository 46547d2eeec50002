"""Programs over meshes of eight devices: placed arrays, typed shardings, what each device does."""

from __future__ import annotations

import math

from tests.oracle.calls import TOTAL
from tests.oracle.language import Assign, Call, Code, Form, Function, Program, Statement, Text
from tests.oracle.nesting import layered, moderate
from tests.oracle.programs import Shape, Wrapped, function, wrap
from tests.oracle.values import Gen

HELPERS = Code("""
AxisType, P = jax.sharding.AxisType, jax.sharding.PartitionSpec
NamedSharding = jax.sharding.NamedSharding

def shown(tree):
    return [(y, str(jax.typeof(y)), str(getattr(y.sharding, 'spec', None)))
            for y in map(jnp.asarray, jax.tree.leaves(tree))]
""")
MESHES: tuple[dict[str, int], ...] = ({"a": 8}, {"a": 4, "b": 2}, {"a": 2, "b": 2, "c": 2},
                                      {"a": 2, "b": 4}, {"a": 2}, {"a": 1, "b": 8})
SIZES = (8, 4, 8, 16, 2)

# Of what each device has; {names} are one or all of the names that it has parts along.
COLLECTIVES = (
    "x + lax.psum(x * w, {names})", "x - lax.pmean(x, {names})",
    "x - lax.pmax(lax.stop_gradient(x), {names})", "x * lax.psum(1, {names})",
    "x * (1 + lax.axis_index({names}))", "x / lax.axis_size({names})",
    "lax.ppermute(x, {names}, [(0, 1), (1, 0)])", "x * lax.psum(jnp.sum(w), {names})",
    "jnp.sin(lax.all_gather(x, {names})).sum(0)",
    "lax.all_gather(x, {names}, tiled=True)[:x.shape[0]] * w if x.ndim else x",
    "lax.psum_scatter(jnp.stack([x * k for k in range(lax.axis_size({names}))]), {names})",
    "lax.psum_scatter(lax.all_gather(x, {names}, tiled=True), {names}, tiled=True)",
    "lax.all_to_all(jnp.stack([x * k for k in range(lax.axis_size({names}))]), {names}, 0, 0)[0]",
    "lax.scan(lambda c, y: (c * y + lax.psum(c, {names}), None), x, jnp.arange(2.0))[0]",
    "lax.fori_loop(0, lax.axis_index({names}) + 1, lambda i, c: c * 0.5, x)",
    "lax.cond(lax.axis_index({names}) > 0, lambda: x * 2, lambda: x)",
    "lax.cond(lax.psum(jnp.sum(x), {names}) > 0, lambda: x * 2, lambda: lax.psum(x, {names}))",
    "jax.grad(lambda v: jnp.sum(lax.pmean(jnp.sin(v), {names}) ** 2))(x)",
    "jax.grad(lambda v: lax.psum(jnp.sum(x * v), {names}))(w) * x",
    "jax.vmap(lambda v: v - lax.psum(v, {names}))(x) if x.ndim else x",
    "lax.pcast(w, {names}, to='varying') * x", "x + lax.pcast(jnp.sum(w), {names}, to='varying')",
    "lax.psum(x, {names})", "lax.pmean(x * w, {names})", "x.mean(0) + x if x.ndim else x",
    "lax.pbroadcast(x, {names}, 0)", "jnp.sum(x) * w + x", "jax.jit(lambda v: v * 2)(x)",
    "x * lax.all_gather(w, {names}).sum()", "lax.associative_scan(jnp.add, x) if x.ndim else x",
)


def shape(g: Gen) -> Shape:
    return tuple(g.pick(*SIZES) for _ in range(g.rng.randint(1, 2)))


def spec(g: Gen, mesh: dict[str, int], of: Shape, rate: float = 0.6) -> str:
    """How an array of that shape may lie over the mesh."""
    free = list(mesh)
    g.rng.shuffle(free)
    parts: list[str] = []
    for n in of:
        names = free[:g.weighted({0: 1 - rate, 1: rate, 2: 0.1})]
        if n % math.prod(mesh[a] for a in names) and g.chance(0.97):
            names = []
        free = [a for a in free if a not in names]
        parts.append(repr(tuple(names)) if len(names) > 1 else repr(names[0]) if names else "None")
    return f"P({', '.join(parts)})"


def names_in(spec_: str, mesh: dict[str, int]) -> list[str]:
    return [a for a in mesh if repr(a) in spec_]


def placed(g: Gen, name: str, mesh: dict[str, int], of: Shape) -> list[Statement]:
    """An array over the mesh, or one of a single device."""
    made: list[Statement] = [Assign(name, moderate(g, of))]
    if g.chance(0.8):
        made.append(Assign(name, Text(
            f"jax.device_put({name}, NamedSharding(mesh, {spec(g, mesh, of)}))")))
    return made


def over_devices(g: Gen, mesh: dict[str, int], of: tuple[Shape, Shape]) -> list[Statement]:
    """`f` runs a function on each device."""
    specs = [spec(g, mesh, s, 0.75) for s in of]
    names = names_in(specs[0], mesh) or list(mesh)
    body: list[Statement] = []
    for _ in range(g.rng.randint(1, 3)):
        along = g.pick(repr(g.pick(*names)), repr(g.pick(*mesh)), repr(tuple(names)))
        body.append(Assign("x", Text(g.pick(*COLLECTIVES).replace("{names}", along))))
    # Devices that take different branches would wait for each other.
    layers, name = layered(g, "each", 2, without="lax.cond")
    out = specs[0] if g.chance(0.8) else spec(g, mesh, of[0])
    options = {"mesh=mesh": 0.6, "check_vma=False": 0.25,
               f"axis_names={{{', '.join(map(repr, names))}}}": 0.25}
    named = "".join(f", {k}" for k, rate in options.items() if g.chance(rate))
    mapped = Form(f"jax.shard_map({{}}, in_specs=({', '.join(specs)}), out_specs={out}{named})",
                  (Text(name),))
    if g.chance(0.08):
        mapped = Form(f"jax.pmap({{}}, axis_name='a', in_axes=(0, {g.pick(0, None)}))",
                      (Text(name),))
    return [Function("each", "x, w", tuple(body), Text("x")), *layers, Assign("f", mapped)]


# Of whole arrays; {x}, {w} are how they may lie, {y} is another way.
PLACING = (
    "jax.reshard(x, {y}) * w", "jax.device_put(x, NamedSharding(mesh, {y})) + w",
    "lax.with_sharding_constraint(x, NamedSharding(mesh, {y}))",
    "lax.with_sharding_constraint(x, {y})", "x + jnp.zeros(x.shape, out_sharding={y})",
    "jnp.reshape(x, x.shape, out_sharding={y})", "jnp.cumsum(x, 0)", "jnp.sort(x, -1)",
    "jnp.concatenate([x, x])[:x.shape[0]]", "jnp.roll(x, 1, 0)", "x * jnp.sum(x, 0)",
    "x + x.mean(-1, keepdims=True)", "jnp.where(x > 0, x, w)", "x.at[0].set(1.5)",
    "x.at[jnp.array([0, 1])].add(0.5)", "x[jnp.arange(x.shape[0])]", "jnp.flip(x, 0)",
    "x.at[jnp.arange(x.shape[0])].get(out_sharding={y})", "jnp.take(x, 0, 0) + x",
    "jnp.einsum('i...,i...->i...', x, x, out_sharding={y})", "lax.stop_gradient(x) * x",
    "jnp.tensordot(x, jnp.ones((x.shape[-1], x.shape[-1])), 1)", "x.reshape(-1).reshape(x.shape)",
    "jnp.broadcast_to(x, (2, *x.shape)).sum(0)", "jax.nn.softmax(x)", "jnp.square(x) * w",
    "jax.sharding.auto_axes(lambda v: v * 2, out_sharding={y})(x)",
    "jax.sharding.explicit_axes(lambda v: v * 2, in_sharding={y})(x)",
    "lax.scan(lambda c, v: (c, v * 2 + c), 1.0, x)[1]", "jnp.repeat(x, 2, 0)[::2]",
    "lax.map(lambda v: v * jnp.sum(x), x)", "jax.vmap(lambda v: v * 2, -1, -1)(x)",
    "lax.dynamic_update_slice_in_dim(x, x[:1], 1, 0)", "x @ x.T @ x if x.ndim == 2 else x",
    "jax.jit(lambda v: v + 1, out_shardings=NamedSharding(mesh, {y}))(x)",
    "jax.jit(lambda v: v * 2, in_shardings=NamedSharding(mesh, {y}))(x)",
    "lax.dynamic_slice_in_dim(jnp.concatenate([x, x]), 1, x.shape[0])", "jnp.pad(x, 1)[1:-1]",
    "x * lax.broadcasted_iota('float32', x.shape, 0, out_sharding={y})",
    "jnp.swapaxes(jnp.swapaxes(x, 0, -1) * 2, 0, -1)", "x + jnp.ones_like(x)",
    "jnp.expand_dims(x, 0)[0]", "jnp.stack([x, x * 2], -1).sum(-1)", "jnp.split(x, 2)[0].sum() + x",
    "x + random.normal(random.key(0), x.shape, out_sharding={y})", "jnp.argsort(x, 0) * x",
)


# What says how traced values lie along Auto axes. Along Explicit ones their types do, which JAX
# leaves as they are where another program's `out_shardings` or a constraint says otherwise.
OF_AUTO = ("in_shardings", "out_shardings", "with_sharding_constraint")


def of_wholes(g: Gen, mesh: dict[str, int], of: tuple[Shape, Shape], auto: bool
              ) -> list[Statement]:
    """`f` computes on whole arrays, and says now and then how they lie."""
    fitting = [p for p in PLACING if auto or not any(word in p for word in OF_AUTO)]
    body = [Assign("x", Text(g.pick(*fitting).replace("{y}", spec(g, mesh, of[0]))))
            for _ in range(g.rng.randint(1, 4))]
    return [Function("f", "x, w", tuple(body), Text("x"))]


def program(g: Gen) -> Program:
    mesh = g.pick(*MESHES)
    types = [g.weighted({"Auto": 5, "Explicit": 5, "Manual": 0.3})] * len(mesh)
    if g.chance(0.15):
        types[-1] = g.pick("Auto", "Explicit")
    kinds = ", ".join(f"AxisType.{t}" for t in types)
    made = Assign("mesh", Text(f"jax.make_mesh({tuple(mesh.values())}, {tuple(mesh)}, "
                               f"axis_types=({kinds},))"))
    if g.chance(0.25):
        of = [shape(g) for _ in range(g.pick(1, 2))]
        scope, f = function(g, of, g.rng.randint(1, 6))
        body: list[Statement] = [*scope.helpers, f]
        layers, name = list[Statement](), "f"
    else:
        x = shape(g)
        of = [x, g.pick(x, ())]
        body = over_devices(g, mesh, (of[0], of[1])) if g.chance(0.5) else of_wholes(
            g, mesh, (of[0], of[1]), "Explicit" not in types)
        layers, name = layered(g, "f", 2)
    w = Wrapped(name, list(of))
    for _ in range(g.weighted({0: 4, 1: 4, 2: 2})):
        wrap(g, w)
    if g.chance(0.5):
        named = {"out_shardings": Text(f"NamedSharding(mesh, {spec(g, mesh, of[0])})")}
        w.then(Call("jax.jit", (Text(w.name),), tuple(named.items()) if g.chance(0.3) else ()))
    arguments = [f"x{i}" for i in range(len(of))]
    for argument, s in zip(arguments, w.shapes, strict=True):
        layers += [*placed(g, argument, mesh, s)]
    found = Call(w.name, tuple(map(Text, arguments)))
    inside = (*body, *layers, *w.statements)
    if g.chance(0.7):
        run = Function("run", "", inside, Call("shown", (found,)))
        last: tuple[Statement, ...] = (run, Code("with jax.set_mesh(mesh):\n    result = run()"))
    else:
        last = (*inside, Assign("result", Call("shown", (found,))))
    return Program("devices", (TOTAL, HELPERS, made, *last), g.x64, ("devices",))
