"""Operators and methods of arrays, indexing and `.at[]`."""

from __future__ import annotations

import math
from typing import Any

from tests.oracle.calls import wrapped
from tests.oracle.language import Call, Data, Expr, Items, Program, Text, call, form, text
from tests.oracle.values import Gen

# -- indices ---------------------------------------------------------------------------------------


def integer(g: Gen, n: int) -> Expr:
    value = g.rng.randint(-n - 2, n + 2) if g.chance(0.12) or not n else g.rng.randint(-n, n - 1)
    way = g.weighted({"py": 6, "np": 1, "jnp": 2, "array0": 1})
    if way == "np":
        return Text(f"np.{g.pick('int32', 'int64', 'int8')}({value})")
    if way == "jnp":
        return Data("jnp", g.pick("int32", "int8", "int16"), (), (value,))
    return Text(f"np.array({value})") if way == "array0" else text(value)


def slice_item(g: Gen, n: int) -> Expr:
    ends = [g.rng.randint(-n - 2, n + 2) if g.chance(0.55) else None for _ in range(2)]
    step = g.weighted({None: 6, 1: 1, 2: 2, -1: 3, -2: 1, 0: 0.1})
    inside = [("" if e is None else str(e)) for e in ends]
    return Text(":".join([*inside, str(step)] if step is not None else inside))


def index_array(g: Gen, n: int, shape: tuple[int, ...]) -> Expr:
    low, high = (-n - 2, n + 1) if g.chance(0.25) else (-n, n - 1)
    values = tuple(g.rng.randint(low, max(low, high)) for _ in range(math.prod(shape)))
    way = g.weighted({"jnp": 6, "np": 3, "list": 0.5})
    dtype = g.pick("int32", "int32", "int64" if way == "np" else "int32", "int16", "uint8")
    if dtype == "uint8":
        values = tuple(abs(v) for v in values)
    return Data(str(way), dtype, shape, values)


def index(g: Gen, shape: tuple[int, ...]) -> Expr:
    """The items of an index of an array of this shape."""
    items: list[Expr] = []
    left = list(shape)
    together = g.shape(0, 2)  # index arrays broadcast against each other
    count = g.rng.randint(0, len(shape) + (1 if g.chance(0.08) else 0))
    while len(items) < count + 2 and (left or g.chance(0.2)):
        if len(items) >= count and not g.chance(0.2):
            break
        table = {"int": 5, "slice": 6, "none": 1.2, "ellipsis": 1.2, "array": 4, "mask": 1.2,
                 "bool": 0.15, "odd": 0.25}
        way = g.weighted(table)
        n = left[0] if left else 0
        if way == "none":
            items.append(Text("None"))
        elif way == "ellipsis":
            if not any(i == Text("...") for i in items) or g.chance(0.05):
                items.append(Text("..."))
                left = left[g.rng.randint(0, len(left)):]
        elif way == "bool":
            items.append(Text(g.pick("True", "False")))
        elif way == "odd":
            items.append(Text(g.pick("1.0", "'a'", "jnp.array([0.5])", "[]", "(0, 1)", "[0, 1]",
                                     "slice(0, 2.5)", "np.array([], bool)", "2**40")))
        elif way == "mask" and left:
            rank = g.rng.randint(1, min(2, len(left)))
            masked = tuple(left[:rank]) if g.chance(0.93) else (left[0] + 1,)
            items.append(g.data(masked, "bool", g.pick("jnp", "np")))
            left = left[rank:]
        else:
            items.append(integer(g, n) if way == "int" else slice_item(g, n) if way == "slice"
                         else index_array(g, n, g.broadcastable(together)))
            left = left[1:]
    return Items("index", tuple(items))


# -- expressions -----------------------------------------------------------------------------------

MODES = ("'clip'", "'fill'", "'drop'", "'wrap'", "'promise_in_bounds'", "None", "'bad'")


def reading(g: Gen) -> Expr:
    x = g.data(form_="jnp")
    if g.chance(0.75):
        return form("{}[{}]", x, index(g, x.shape))
    named: dict[str, Any] = {}
    if g.chance(0.8):
        named["mode"] = Text(g.pick(*MODES))
    if g.chance(0.3):
        named["fill_value"] = g.data(())
    for flag in ("indices_are_sorted", "unique_indices"):
        if g.chance(0.04):
            named[flag] = False
    return form("{}.at[{}]{}", x, index(g, x.shape), Call(".get", (), tuple(
        (k, text(v)) for k, v in named.items())))


def writing(g: Gen) -> Expr:
    x = g.data(form_="jnp")
    name = g.weighted({"set": 8, "add": 6, "multiply": 2, "mul": 1, "divide": 1, "power": 1,
                       "min": 2, "max": 2, "subtract": 1, "apply": 1})
    keywords: list[tuple[str, Expr]] = []
    if g.chance(0.3):
        keywords.append(("mode", Text(g.pick(*MODES))))
    if name == "apply":
        value: Expr = Text(g.pick("jnp.sin", "lambda v: v * 2", "jnp.square"))
    else:
        shape = () if g.chance(0.6) else g.broadcastable(g.shape(0, 2))
        value = g.data(shape, x.dtype if g.chance(0.65) else None)
    return form("{}.at[{}]{}", x, index(g, x.shape), Call(f".{name}", (value,), tuple(keywords)))


BINARY = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "==", "!=", "<",
          "<=", ">", ">=")


def operation(g: Gen) -> Expr:
    if g.chance(0.12):
        return form(g.pick("(-{})", "(+{})", "(~{})", "abs({})", "(not {})"), g.data(form_="jnp"))
    symbol = g.pick(*BINARY)
    x = g.data(form_="jnp")
    other_shape = g.broadcastable(x.shape) if g.chance(0.7) else ()
    y = g.data(other_shape, x.dtype if g.chance(0.45) else None)
    if symbol == "@":
        n, k, m = g.dim(), g.dim(), g.dim()
        x, y = g.data((n, k), x.dtype, "jnp"), g.data((k, m) if g.chance(0.7) else (k,))
    if symbol == "**" and g.chance(0.5):
        y = Data("py", "int32", (), (g.rng.randint(-3, 4),))
    if symbol in ("<<", ">>") and g.chance(0.7):
        x, y = g.data(x.shape, g.dtype("i"), "jnp"), g.data(other_shape, kinds="i")
    if g.chance(0.02):
        return form(f"({{}} {symbol} {{}})", x, g.bad())
    if g.chance(0.08):
        return call("divmod", x, y)
    return form(f"({{}} {symbol} {{}})", *((x, y) if g.chance(0.6) else (y, x)))


REDUCTIONS = ("sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "ptp", "argmax",
              "argmin", "cumsum", "cumprod")
PROPERTIES = ("T", "mT", "real", "imag", "size", "ndim", "shape", "dtype", "nbytes", "itemsize",
              "weak_type", "flat", "is_fully_replicated", "is_fully_addressable", "committed")
CONVERSIONS = ("float", "int", "complex", "bool", "len", "list", "np.asarray", "np.array", "hash",
               "iter", "str", "repr", "round", "range", "tuple", "sum", "max", "any", "reversed",
               "'{:.3f}'.format", "'{}'.format", "np.sum", "np.sin", "jax.device_get",
               "jax.device_put", "isinstance")


def method(g: Gen) -> Expr:
    x = g.data(form_="jnp")
    rank = len(x.shape)
    way = g.weighted({"reduction": 6, "property": 2, "conversion": 3, "other": 7})
    if way == "property":
        return form("{}." + str(g.pick(*PROPERTIES)), x)
    if way == "conversion":
        name = str(g.pick(*CONVERSIONS))
        return call(name, x, *([Text("jax.Array")] if name == "isinstance" else []))
    if way == "reduction":
        named: dict[str, Any] = {}
        if g.chance(0.6):
            named["axis"] = g.axis_or_axes(rank)
        if g.chance(0.2):
            named["keepdims"] = True
        if g.chance(0.15):
            named["dtype"] = g.dtype_text()
        return form("{}{}", x, call(f".{g.pick(*REDUCTIONS)}", **named))
    return form("{}{}", x, other_method(g, x))


def other_method(g: Gen, x: Data) -> Expr:
    rank = len(x.shape)
    options: dict[str, Any] = {
        "astype": lambda: call(".astype", g.dtype_text()),
        "reshape": lambda: call(".reshape", *g.pick(((-1,),), (-1,), (x.shape,), (2, -1), (1, -1))),
        "transpose": lambda: call(".transpose", *g.pick((), tuple(reversed(range(rank))), (0,))),
        "flatten": lambda: call(".flatten"), "ravel": lambda: call(".ravel"),
        "squeeze": lambda: call(".squeeze"), "swapaxes": lambda: call(
            ".swapaxes", g.axis(rank), g.axis(rank)),
        "sort": lambda: call(".sort", axis=g.axis(rank)), "argsort": lambda: call(".argsort"),
        "clip": lambda: call(".clip", g.data(()), g.data(())), "conj": lambda: call(".conj"),
        "copy": lambda: call(".copy"), "diagonal": lambda: call(".diagonal"),
        "dot": lambda: call(".dot", g.data(x.shape)), "item": lambda: call(".item"),
        "nonzero": lambda: call(".nonzero"), "repeat": lambda: call(".repeat", g.pick(2, 0)),
        "round": lambda: call(".round", g.pick(0, 1, 2)), "searchsorted": lambda: call(
            ".searchsorted", g.data(())), "take": lambda: call(
            ".take", g.nonnegative((2,), 3), axis=g.axis(rank)),
        "tolist": lambda: call(".tolist"), "trace": lambda: call(".trace"),
        "view": lambda: call(".view", g.dtype_text()), "tobytes": lambda: call(".tobytes"),
        "item1": lambda: call(".item", g.rng.randint(0, 2)), "argpartition": lambda: call(
            ".argpartition", 0), "choose": lambda: call(".choose", [1, 2, 3]),
        "compress": lambda: call(".compress", g.mask((2,))), "block": lambda: call(
            ".block_until_ready"), "is_deleted": lambda: call(".is_deleted"),
        "delete": lambda: call(".delete"), "round0": lambda: call(".__round__"),
        "dunder": lambda: call(f".__{g.pick('len', 'float', 'index', 'bool', 'int', 'hash')}__"),
        "format": lambda: call(".__format__", g.pick("", ".2f", "d", "10")),
        "on_device": lambda: call(".devices"), "addressable": lambda: call(".addressable_data", 0),
        "setitem": lambda: call(".__setitem__", 0, 1), "matmul": lambda: call(
            ".__matmul__", g.data(x.shape)), "missing": lambda: Text(".nothing"),
    }
    made: Expr = options[g.rng.choice(list(options))]()
    return made


def program(g: Gen) -> Program:
    maker = g.weighted({reading: 34, writing: 26, operation: 24, method: 16})
    return wrapped(g, "indexing", maker(g), maker.__name__)
