"""Trees of arrays as arguments and results; static arguments, donation, keys."""

from __future__ import annotations

from typing import Any

from tests.oracle.language import Assign, Code, Expr, Items, Program, Text, call, form
from tests.oracle.values import Gen

CLASSES = Code("""
import collections
Point = collections.namedtuple('Point', 'x y')

class Node:
    def __init__(self, a, b, tag):
        self.a, self.b, self.tag = a, b, tag
    def __repr__(self):
        return f'Node({self.a}, {self.b}, {self.tag})'

tree_util.register_pytree_node(
    Node, lambda n: ((n.a, n.b), n.tag), lambda tag, c: Node(c[0], c[1], tag))

def total(tree):
    return sum(jnp.sum(jnp.real(y) * (i + 1.)) for i, y in enumerate(jax.tree.leaves(tree)))
""")


def leaf(g: Gen, floats: bool) -> Expr:
    if g.chance(0.1):
        return Text("None")
    if floats:
        return g.data(g.shape(0, 2), "float32", "jnp")
    return g.data(g.shape(0, 2))


def tree(g: Gen, depth: int = 2, floats: bool = False) -> Expr:
    if depth == 0 or g.chance(0.2):
        return leaf(g, floats)
    parts = [tree(g, depth - 1, floats) for _ in range(g.weighted({0: 1, 1: 3, 2: 5, 3: 2}))]
    way = g.weighted({"tuple": 3, "list": 3, "dict": 4, "point": 2, "node": 2, "ordered": 1})
    if way == "dict":
        keys = g.rng.sample(["'a'", "'b'", "'c'", "'d'"], len(parts))
        return Items("dict", tuple(parts), tuple(keys))
    if way in ("point", "node"):
        a, b = tree(g, depth - 1, floats), tree(g, depth - 1, floats)
        return call("Point", a, b) if way == "point" else call("Node", a, b, g.pick("t", 3))
    if way == "ordered":
        keys = g.rng.sample(["'z'", "'b'", "'c'", "'d'"], len(parts))
        return call("collections.OrderedDict", Items("dict", tuple(parts), tuple(keys)))
    return Items(str(way), tuple(parts))


# What is done to a tree `t` (and a second one `u`, often of the same structure).
READING = (
    "tree_util.tree_flatten(t)", "tree_util.tree_leaves(t)", "str(tree_util.tree_structure(t))",
    "jax.tree.leaves(t)", "tree_util.tree_leaves(t, is_leaf=lambda x: isinstance(x, tuple))",
    "tree_util.tree_unflatten(tree_util.tree_structure(t), [1] * len(jax.tree.leaves(t)))",
    "tree_util.tree_unflatten(tree_util.tree_structure(t), [1, 2])",
    "tree_util.tree_map(lambda a, b: (a, b), t, u)", "jax.tree.map(jnp.add, t, u)",
    "tree_util.tree_all(jax.tree.map(lambda a: True, t))",
    "tree_util.tree_reduce(lambda a, b: a + jnp.sum(b), t, 0)", "jax.tree.structure(t)",
    "[(tree_util.keystr(k), v) for k, v in tree_util.tree_leaves_with_path(t)]",
    "[(tree_util.keystr(k, simple=True, separator='/'), v) "
    "for k, v in tree_util.tree_flatten_with_path(t)[0]]",
    "tree_util.tree_map_with_path(lambda k, v: str(k), t)",
    "tree_util.tree_transpose(tree_util.tree_structure(t), tree_util.tree_structure([0, 0]), "
    "jax.tree.map(lambda x: [x, x], t))",
    "tree_util.tree_structure(t) == tree_util.tree_structure(u)",
    "tree_util.tree_structure(t).num_leaves", "tree_util.tree_structure(t).num_nodes",
    "tree_util.treedef_children(tree_util.tree_structure(t))", "tree_util.all_leaves([t])",
    "tree_util.treedef_is_leaf(tree_util.tree_structure(t))",
    "tree_util.treedef_tuple([tree_util.tree_structure(t), tree_util.tree_structure(u)])",
    "tree_util.tree_broadcast(u, t)", "jax.tree.broadcast(1, t)",
    "tree_util.tree_structure(t).flatten_up_to(u)", "hash(jax.tree.structure(t)) == hash("
    "jax.tree.structure(t))", "tree_util.Partial(jnp.add, 1)(2)", "jax.tree.leaves("
    "tree_util.Partial(jnp.add, t))", "repr(jax.tree.structure(Point(1, Node(t, None, 2))))",
    "tree_util.tree_reduce(jnp.add, [])", "tree_util.tree_reduce_associative(jnp.add, [1, 2, 3])",
    "tree_util.flatten_one_level(t)", "tree_util.is_tree_node(type(t))",
)
CALLING = (
    "jax.jit(lambda a: a)(t)", "jax.jit(lambda a: jax.tree.map(lambda x: x * 2, a))(t)",
    "jax.jit(lambda a, b: (b, a))(t, b=u)", "jax.jit(lambda **k: k)(a=t, b=u)",
    "jax.grad(total)(t)", "jax.value_and_grad(total)(t)", "jax.grad(lambda a: (total(a), a), "
    "has_aux=True)(t)", "jax.jit(jax.grad(total))(t)", "jax.jvp(total, (t,), (t,))",
    "jax.vjp(lambda a: jax.tree.map(jnp.sin, a), t)[1](t)", "jax.linearize(total, t)[1](t)",
    "jax.vmap(lambda a: a)(t)", "jax.vmap(lambda a, b: a, in_axes=(0, None))(t, u)",
    "jax.vmap(lambda a: jax.tree.map(jnp.sum, a), in_axes=(0,), out_axes=0)(t)",
    "jax.vmap(lambda a, b: (a, b), in_axes=0, out_axes=(0, -1))(t, u)",
    "jax.vmap(lambda d: d, in_axes=({'a': 0, 'b': None},))({'a': jnp.arange(3), 'b': t})",
    "jax.eval_shape(lambda a: a, t)", "jax.eval_shape(jax.grad(total), t)", "jax.device_get(t)",
    "jax.device_put(t)", "jax.block_until_ready(t)", "jax.jit(lambda a: a, donate_argnums=0)(t)",
    "jax.hessian(total)(t)", "jax.jacfwd(lambda a: jax.tree.map(jnp.sin, a))(t)",
    "jax.jacrev(lambda a: jax.tree.map(jnp.sin, a))(t)", "jax.jit(lambda s, a: a, "
    "static_argnums=0)(3, t)", "jax.jit(lambda s, a: a, static_argnums=0)([1], t)",
    "jax.jit(lambda a, s: a if s else None, static_argnames='s')(t, s=True)",
    "jax.jit(lambda a, s=2: jax.tree.map(lambda x: x * s, a), static_argnames=('s',))(t)",
    "jax.jit(lambda *a: a)(t, u)", "jax.jit(lambda a: 3)(t)", "jax.jit(lambda a: 'x')(t)",
    "jax.grad(total, argnums=1)(t)", "jax.grad(lambda a, b: total(a), argnums=(0, 1))(t, u)",
    "jax.grad(total, allow_int=True)(t)", "jax.jit(lambda a: Point(a, None))(t)",
    "lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1]), (0, t))",
    "jax.custom_vjp(lambda a: total(a))(t)", "jax.linear_transpose(lambda a: jax.tree.map("
    "lambda x: x * 2, a), t)(t)", "jax.closure_convert(total, t)[0](t)",
    "jax.make_jaxpr(lambda a: a)(t).out_avals", "lax.stop_gradient(t)",
    "lax.optimization_barrier(t)", "jax.jit(lambda a: lax.stop_gradient(a))(t)",
    "jax.jit(lambda a, n: jnp.arange(n), static_argnums=(1,))(t, 3)",
    "jax.tree.map(lambda x: x.is_deleted(), (jax.jit(lambda a: a, donate_argnums=0)(t), t)[1])",
    "jax.jit(total).lower(t).out_info", "jax.jit(lambda a: a).eval_shape(t)",
    "jax.jit(total).trace(t).out_info", "jax.jit(lambda a: a).lower(t).compile()(t)",
)
KEYS = (
    "random.key(3)", "random.split(random.key(3))",
    "random.key_data(random.split(random.key(3), 2))",
    "jax.jit(lambda k: random.split(k))(random.key(1))", "jax.vmap(random.normal)("
    "random.split(random.key(1), 3))", "jnp.stack([random.key(1), random.key(2)])",
    "random.split(random.key(0), 4).reshape(2, 2)", "random.split(random.key(0), 4)[1:]",
    "random.key(1) + 1", "jnp.sin(random.key(1))", "random.key(1) == random.key(1)",
    "random.split(random.key(0), 3).at[0].set(random.key(5))", "random.key(1).dtype",
    "jnp.issubdtype(random.key(1).dtype, jax.dtypes.prng_key)", "random.key(1).shape",
    "random.fold_in(random.key(1), 3)", "jax.vmap(random.fold_in, (None, 0))(random.key(1), "
    "jnp.arange(3))", "jax.vmap(lambda k: random.uniform(k, (2,)))(random.split(random.key(1), 2))",
    "jnp.where(True, random.key(1), random.key(2))", "jnp.concatenate([random.split(random.key(0)),"
    " random.split(random.key(1))])", "random.key_impl(random.key(1))", "random.key(1).nbytes",
    "lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, random.split(c[1])[0]), "
    "(0, random.key(1)))", "jax.grad(lambda x, k: x * random.normal(k))(1., random.key(1))",
    "np.asarray(random.key(1))", "float(random.key(1))", "str(random.key(1).aval)",
    "jnp.zeros(3).at[random.key(0)].set(1)", "random.normal(random.split(random.key(1)))",
    "random.normal(random.PRNGKey(1).astype('float32'))", "random.normal(3)",
    "random.key(jnp.array([1, 2]))", "jnp.broadcast_to(random.key(1), (2,))", "jnp.ravel("
    "random.split(random.key(0), 4).reshape(2, 2))", "random.split(random.key(0), 3)[::-1]",
    "jax.device_get(random.key(1))", "jnp.array([random.key(1)])", "jnp.empty_like(random.key(1))",
    "jnp.expand_dims(random.key(1), 0)", "jnp.squeeze(random.split(random.key(1), 1))",
    "random.split(random.key(1), 2).T", "list(random.split(random.key(1), 2))",
    "random.wrap_key_data(random.key_data(random.key(1)))", "random.clone(random.key(1))",
)


def static_or_donated(g: Gen) -> Expr:
    """A call with static arguments, donated ones or keywords, of a function of three arguments."""
    options: dict[str, Any] = {
        "static_argnums": lambda: g.pick(0, (1,), (0, 2), -1, 5, (), None),
        "static_argnames": lambda: g.pick("a", ("b",), ["a", "c"], "z", ()),
        "donate_argnums": lambda: g.pick(0, (1,), (0, 1), 4, ()),
        "donate_argnames": lambda: g.pick("a", ("b", "c"), "z"), "inline": lambda: True,
        "keep_unused": lambda: True,
    }
    named = {k: v() for k, v in options.items() if g.chance(0.3)}
    f = call("jax.jit", Text("lambda a, b, c=2: (a * 2, b, c)"), **named)
    arguments = [g.pick(g.data(g.shape(0, 1)), g.data(g.shape(0, 1)), Text("2"), Text("'s'"),
                        Text("None"), Text("(1, 2)")) for _ in range(g.pick(1, 2, 2, 3))]
    words = [f"{n}={{}}" if g.chance(0.25) and i >= 1 else "{}"
             for n, i in zip("abc", range(len(arguments)), strict=False)]
    return form("{}(" + ", ".join(words) + ")", f, *arguments)


def program(g: Gen) -> Program:
    way = g.weighted({"reading": 4, "calling": 6, "keys": 2, "static": 2})
    if way == "keys":
        return Program("pytrees", (Assign("result", Text(g.pick(*KEYS))),), g.x64, ("keys",))
    if way == "static":
        return Program("pytrees", (Assign("result", static_or_donated(g)),), g.x64, ("static",))
    floats = g.chance(0.75)
    first = tree(g, 2, floats)
    second = first if g.chance(0.6) else tree(g, 2, floats)
    source = g.pick(*(READING if way == "reading" else CALLING))
    body = (CLASSES, Assign("t", first), Assign("u", second), Assign("result", Text(source)))
    return Program("pytrees", body, g.x64, (source,))
