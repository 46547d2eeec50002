"""Single calls of the public functions: as they are, compiled, differentiated, batched."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from tests.oracle.arguments import arguments
from tests.oracle.call_arguments import WHOLE
from tests.oracle.language import (
    Assign,
    Call,
    Code,
    Data,
    Expr,
    Function,
    Program,
    Statement,
    Text,
    call,
    text,
    walk,
)
from tests.oracle.values import Gen, kind_of

# Not functions of arrays, or of the process: files, devices, settings, printing, registration.
LEFT_OUT = frozenset("""
    jnp.array_repr jnp.array_str jnp.load jnp.save jnp.savez jnp.set_printoptions
    jnp.printoptions jnp.get_printoptions jnp.from_dlpack jnp.fromfile jnp.frombuffer
    jnp.fromiter jnp.fromstring jnp.einsum_path jnp.mask_indices jnp.save jnp.dtype jnp.finfo
    jnp.iinfo jnp.iterable jnp.frompyfunc jnp.vectorize jnp.ndarray jnp.empty jnp.empty_like
    lax.empty jnp.object_ lax.rng_uniform lax.create_token lax.after_all lax.infeed lax.outfeed
    tree_util.register_dataclass tree_util.register_pytree_node
    tree_util.register_pytree_node_class tree_util.register_pytree_with_keys
    tree_util.register_pytree_with_keys_class tree_util.register_static lax.custom_root
    lax.custom_linear_solve lax.while_p lax.conv_general_shape_tuple
    lax.conv_transpose_shape_tuple
""".split())  # noqa: SIM905
SPACES = {"jnp": 60, "lax": 26, "nn": 6, "random": 8}

TOTAL = Code("""
def total(tree):
    leaves = [jnp.asarray(y) for y in jax.tree.leaves(tree)]
    return sum(jnp.vdot(jnp.arange(y.size) + 1., jnp.ravel(jnp.real(y))) for y in leaves
               if not jnp.issubdtype(y.dtype, jax.dtypes.extended))
""")


class Calls:
    """Makes calls of the functions that both sides have, by the oracle's signatures."""

    def __init__(self, names: dict[str, Any], ours: Container[str]) -> None:
        public = {n: p for n, p in names.items()
                  if p is not None and n not in LEFT_OUT and not n.endswith("_p")}
        self.names = {n: p for n, p in public.items() if n in ours}
        self.missing = sorted(n for n in public if n not in ours)
        self.spaces = {s: sorted(n for n in self.names if n.startswith(f"{s}."))
                       for s in SPACES}

    def expression(self, g: Gen, function: str) -> Call:
        made = WHOLE.get(function)
        if made is not None and g.chance(0.95):
            args, named = made(g)
            return call(function, *args, **named)
        positional, keywords = arguments(g, function, self.names[function])
        return Call(function, tuple(positional), tuple(keywords))

    def program(self, g: Gen) -> Program:
        space = str(g.weighted(SPACES))
        function = g.rng.choice(self.spaces[space])
        return wrapped(g, "calls", self.expression(g, function), function)


def lifted(g: Gen, e: Expr, statements: list[Statement], rate: float = 1.0) -> Expr:
    """The expression with its arrays in variables `x0`, `x1`, ..."""
    if isinstance(e, Data) and e.form != "list" and g.chance(rate):
        name = f"x{len(statements)}"
        statements.append(Assign(name, e))
        return Text(name)
    return e.rebuilt(tuple(lifted(g, p, statements, rate) for p in e.parts)) if e.parts else e


def differentiable(statement: Statement) -> bool:
    assert isinstance(statement, Assign) and isinstance(statement.value, Data)
    return kind_of(statement.value.dtype) in "fc" and statement.value.form != "py"


def wrapped(g: Gen, kind: str, e: Expr, name: str) -> Program:
    """The expression as a program: eager, or inside a transformation of its arrays."""
    mode = g.weighted({"eager": 56, "jit": 16, "grad": 10, "jvp": 6, "vmap": 8, "abstract": 2,
                       "vjp": 2})
    arrays: list[Statement] = []
    inside = lifted(g, e, arrays, 0.9 if mode == "eager" else 0.8)
    names = [s.name for s in arrays if isinstance(s, Assign)]
    chosen = [n for n, s in zip(names, arrays, strict=True)
              if mode in ("jit", "vmap", "abstract") or differentiable(s)]
    if mode == "eager" or not chosen:
        return Program(kind, (*arrays, Assign("result", inside)), g.x64, (name,))
    f = Function("f", ", ".join(chosen), (), inside)
    body: tuple[Statement, ...]
    actual = ", ".join(chosen)
    if mode in ("jit", "abstract"):
        outer = "jax.jit(f)({})" if mode == "jit" else "jax.eval_shape(f, {})"
        body = (*arrays, f, Assign("result", Text(outer.format(actual))))
    elif mode in ("grad", "vjp"):
        scalar = Function("s", ", ".join(chosen), (), Text(f"total(f({actual}))"))
        maker = "jax.grad" if mode == "grad" else "jax.value_and_grad"
        numbers = tuple(range(len(chosen)))
        found = Text(f"{maker}(s, {numbers})({actual})")
        body = (*arrays, f, TOTAL, scalar, Assign("result", found))
    elif mode == "jvp":
        tangents = ", ".join(f"jnp.ones_like({n})" for n in chosen)
        body = (*arrays, f, Assign("result", Text(
            f"jax.jvp(f, ({actual},), ({tangents},))")))
    else:
        body = batched(g, arrays, chosen, f)
    return Program(kind, body, g.x64, (name,))


def batched(g: Gen, arrays: list[Statement], chosen: list[str],
            f: Function) -> tuple[Statement, ...]:
    """`vmap` of the function; some of the arrays get an axis more."""
    axes: list[int | None] = []
    found: list[Statement] = []
    for statement in arrays:
        assert isinstance(statement, Assign) and isinstance(statement.value, Data)
        x = statement.value
        if statement.name not in chosen:
            found.append(statement)
            continue
        if not g.chance(0.75):
            axes.append(None)
            found.append(statement)
            continue
        at = g.rng.randint(0, len(x.shape))
        shape = (*x.shape[:at], 2, *x.shape[at:])
        form = "jnp" if x.form in ("py", "npscalar") else x.form
        found.append(Assign(statement.name, g.data(shape, x.dtype, form)))
        axes.append(at)
    outer = text(tuple(axes)).render()
    out = f", out_axes={g.pick(0, -1, 1)}" if g.chance(0.2) else ""
    inner = f"jax.vmap(f, in_axes={outer}{out})"
    if g.chance(0.3):
        inner = f"jax.jit({inner})"
    return (*found, f, Assign("result", Text(f"{inner}({', '.join(chosen)})")))


def functions_of(program: Program) -> tuple[str, ...]:
    """The names called in the program, for the table of causes."""
    found: list[str] = []
    for statement in program.body:
        parts: list[Expr] = []
        if isinstance(statement, Assign):
            parts = [statement.value]
        elif isinstance(statement, Function):
            parts = [statement.result,
                     *(s.value for s in statement.body if isinstance(s, Assign))]
        for part in parts:
            found += [e.function for e in walk(part) if isinstance(e, Call)]
    return tuple(dict.fromkeys(found))
