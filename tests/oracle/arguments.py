"""Arguments by the names of parameters: what `axis`, `where` or `x2` nearly always stand for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.oracle.language import Data, Expr, Form, Text, call, form, text
from tests.oracle.values import Gen


class Context:
    """What the arguments of one call have in common: the first array's shape, rank and dtype."""

    def __init__(self, gen: Gen, function: str) -> None:
        self.gen = gen
        self.function = function
        self.shape: tuple[int, ...] = gen.shape()
        self.dtype = gen.dtype()
        self.first: Data | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)


Maker = Callable[[Gen, Context], Any]


def main_array(g: Gen, c: Context) -> Expr:
    """The first array decides shape and dtype; further ones broadcast against it."""
    if c.first is None:
        c.first = g.data(c.shape, c.dtype)
        return c.first
    return other_array(g, c)


def other_array(g: Gen, c: Context) -> Expr:
    if c.first is None:
        return main_array(g, c)
    if g.chance(0.04):
        return g.data()
    shape = g.broadcastable(c.shape)
    return g.data(shape if g.chance(0.8) else (), c.dtype if g.chance(0.55) else None)


def arrays(g: Gen, c: Context) -> Expr:
    """A list or tuple of arrays that mostly agree in shape."""
    main_array(g, c)
    count = g.weighted({1: 2, 2: 5, 3: 3})
    found = [g.data(c.shape if g.chance(0.85) else g.shape(), c.dtype if g.chance(0.6) else None)
             for _ in range(count)]
    return text(found if g.chance(0.7) else tuple(found))


def indices(g: Gen, c: Context) -> Expr:
    high = max(c.shape, default=1) + 1
    low = -high if g.chance(0.5) else 0
    return g.nonnegative(g.shape(0, 2), high, g.pick("int32", "int32", "uint8", "int8"), low)


def shape_argument(g: Gen, c: Context) -> Any:
    return g.pick(g.shape(0, 3), g.dim(), g.shape(0, 2), list(g.shape(1, 2)))


def reshaped(g: Gen, c: Context) -> Any:
    size = math.prod(c.shape)
    options: list[Any] = [-1, (-1,), size, (1, -1), (size, 1), tuple(reversed(c.shape)),
                          (-1, 2), (2, -1), (*c.shape, 1), ()]
    return g.pick(*options)


def maybe(p: float, maker: Maker) -> Maker:
    """None, or with probability `p` what the maker makes."""
    return lambda g, c: maker(g, c) if g.chance(p) else None


def flag(g: Gen, c: Context) -> bool:
    return g.chance(0.5)


def small(low: int, high: int) -> Maker:
    return lambda g, c: g.rng.randint(low, high)


def words(*options: Any) -> Maker:
    return lambda g, c: g.pick(*options)


def axis(g: Gen, c: Context) -> Any:
    return g.axis(c.rank)


def where(g: Gen, c: Context) -> Expr:
    return g.mask(g.broadcastable(c.shape))


def scalar(kinds: str = "fi") -> Maker:
    return lambda g, c: g.data((), kinds=kinds)


def like_scalar(g: Gen, c: Context) -> Expr:
    return g.data((), c.dtype) if g.chance(0.6) else g.data((), kinds="fi")


def dtype(g: Gen, c: Context) -> Expr:
    return g.dtype_text()


def float_dtype(g: Gen, c: Context) -> Expr:
    return g.dtype_text("f" if g.chance(0.85) else "fic")


def sections(g: Gen, c: Context) -> Any:
    return g.pick(1, 2, 3, [1], (1, 2), [0, 2, 2], 0)


def parameter(g: Gen, c: Context) -> Expr:
    """A parameter of a distribution: positive as a rule."""
    shape = () if g.chance(0.5) else g.broadcastable(c.shape)
    size = math.prod(shape)
    values = tuple(round(g.rng.uniform(0.2, 4.0), 2) for _ in range(size))
    kind = "py" if not shape and g.chance(0.5) else "jnp"
    if g.chance(0.1):
        return g.data(shape)
    return Data(kind, "float32" if kind == "py" else g.dtype("f"), shape, values)


def probability(g: Gen, c: Context) -> Expr:
    shape = () if g.chance(0.5) else g.broadcastable(c.shape)
    values = tuple(g.rng.randint(0, 20) / 20 for _ in range(math.prod(shape)))
    kind = "py" if not shape and g.chance(0.5) else "jnp"
    return Data(kind, "float32" if kind == "py" else g.dtype("f"), shape, values)


def drawn_shape(g: Gen, c: Context) -> Any:
    return g.pick(c.shape, c.shape, (2, *c.shape), g.shape(0, 2))


def precision(g: Gen, c: Context) -> Any:
    return g.pick(None, "highest", Text("lax.Precision.DEFAULT"), "float32",
                  ("high", "default"), "bad")


def window(g: Gen, c: Context) -> Any:
    return tuple(g.rng.randint(1, 2) for _ in c.shape)


def lengths(low: int, high: int) -> Maker:
    return lambda g, c: tuple(g.rng.randint(low, high) for _ in c.shape)


def permutation(g: Gen, c: Context) -> Any:
    found = list(range(c.rank))
    g.rng.shuffle(found)
    if g.chance(0.06):
        found = [*found, 0] if g.chance(0.5) else found[1:]
    return tuple(x - c.rank if g.chance(0.15) else x for x in found)


def numbers(g: Gen, c: Context) -> Any:
    return g.pick(g.rng.randint(-2, 2), Form("({}, {})", (text(g.rng.randint(-2, 2)), text(1))))


# What stands for a parameter of this name in any function.
COMMON: dict[str, Maker] = {
    "axis": axis, "dimension": axis, "axes": lambda g, c: g.axes(c.rank),
    "axis1": axis, "axis2": axis, "axisa": axis, "axisb": axis, "axisc": axis,
    "source": axis, "destination": axis, "dims": axis,
    "keepdims": flag, "where": where, "mask": where, "initial": like_scalar, "dtype": dtype,
    "preferred_element_type": dtype, "new_dtype": dtype, "index_dtype": dtype,
    "shape": shape_argument, "ddof": words(0, 1, 2, 0.5), "correction": words(0, 1, 1.5),
    "k": small(-2, 3), "n": small(0, 4), "N": small(0, 4), "M": maybe(0.6, small(0, 4)),
    "m": main_array, "offset": small(-2, 2), "num": small(0, 6), "endpoint": flag,
    "retstep": flag, "base": words(10.0, 2, 2.5), "decimals": small(-2, 3), "deg": flag,
    "kth": small(-2, 3), "stable": flag, "descending": flag, "kind": words(None, "stable", "bad"),
    "order": words(None, "C", "F", "K", "bad"), "copy": flag, "device": words(None),
    "out": words(None, None, None, Text("jnp.zeros(3)")), "out_sharding": words(None),
    "sharding": words(None), "precision": precision, "mode": words(
        None, "clip", "fill", "wrap", "promise_in_bounds", "drop", "raise", "bad"),
    "method": words("auto", "linear", "scan", "sort", "compare_all", "nearest", "bad"),
    "side": words("left", "right", "bad"), "right": flag, "indices": indices,
    "repeats": words(2, 0, 1, [1, 2], (3,), Text("jnp.array([1, 0, 2])")),
    "total_repeat_length": maybe(0.5, small(0, 7)),
    "reps": words(2, (2,), (1, 2), 0, (2, 1, 1), ()),
    "shift": numbers, "start": scalar(), "stop": scalar(), "step": scalar(),
    "indices_or_sections": sections, "condition": lambda g, c: g.mask(g.shape(0, 2)),
    "edge_order": words(1, 2), "size": maybe(0.6, small(0, 5)), "fill_value": like_scalar,
    "nan": scalar(), "posinf": maybe(0.6, scalar()), "neginf": maybe(0.6, scalar()),
    "rowvar": flag, "bias": flag, "fweights": maybe(0.3, indices), "aweights": maybe(0.3, scalar()),
    "equal_nan": flag, "rtol": words(1e-5, 0.1, 0), "atol": words(1e-8, 0.5, 0),
    "assume_unique": flag, "invert": flag, "return_indices": flag, "return_index": flag,
    "return_inverse": flag, "return_counts": flag, "sorted": flag, "indexing": words("xy", "ij"),
    "sparse": flag, "include_initial": flag, "promote_integers": flag, "reverse": flag,
    "returned": flag, "density": words(None, True, False), "bins": words(
        3, 1, 10, [0, 1, 2.5], Text("jnp.array([0., 0.5, 3.])"), "auto"),
    "range": maybe(0.4, words((0, 1), (-1.0, 2.5), (2, 2))),
    "weights": maybe(0.4, lambda g, c: g.data(c.shape)), "minlength": small(0, 6),
    "length": maybe(0.5, small(0, 6)), "period": maybe(0.2, words(2.0, 1, -1)),
    "left": maybe(0.3, scalar()), "degree": small(0, 3), "wrap_negative_indices": flag,
    "unique_indices": flag, "indices_are_sorted": words(False), "is_stable": flag,
    "shape_argument": shape_argument, "newshape": reshaped, "new_sizes": reshaped,
    "to_end": maybe(0.4, lambda g, c: g.data(g.shape(0, 1), c.dtype)),
    "to_begin": maybe(0.4, lambda g, c: g.data(g.shape(0, 1), c.dtype)),
    "prepend": maybe(0.4, other_array), "append": maybe(0.4, other_array),
    "nonnegative": flag, "accuracy": words(None), "unroll": words(None, 1), "alpha": parameter,
    "negative_slope": words(0.01, 0.2, 1), "num_classes": small(0, 5), "b": other_array,
    "epsilon": words(1e-5, 0.1), "approximate": flag, "return_sign": flag,
    "variance": maybe(0.3, other_array), "mean": maybe(0.3, other_array),
    "sections": sections, "depth": small(0, 3), "casting": words("safe", "same_kind"),
    "rounding_method": words(0, 1), "exponent_bits": small(1, 8), "mantissa_bits": small(0, 10),
    "operand_rank": small(0, 3), "overwrite_input": words(False), "dx": words(1.0, 2, 0.5),
    "independent": flag, "replace": flag, "impl": words(None), "num_keys": small(1, 2),
    "max": other_array, "min": other_array, "element_shape": shape_argument,
    "cases": main_array, "arrays": arrays, "tup": arrays, "operands": arrays, "arys": main_array,
    "xi": lambda g, c: g.data(g.shape(0, 1)), "pred": lambda g, c: g.mask(c.shape),
    "interpolation": words(None), "ndim": small(1, 3), "ndmin": small(0, 3),
    "permutation": permutation, "dimensions": lambda g, c: g.axes(c.rank),
    "allow_negative_indices": flag, "inplace": words(False), "bitorder": words("big", "little"),
    "trim_leading_zeros": flag, "increasing": flag, "full": flag, "strip_zeros": flag,
    "sizes": lambda g, c: g.shape(0, 2), "key": lambda g, c: g.key(),
}

SKIPPED = {"_dot_general", "optimize", "kwargs", "batch_size", "aggregate_to_topk"}

# Parameters that tell the arguments' meaning for a few functions only: by function and name.
PARTICULAR: dict[str, dict[str, Maker]] = {}


def particular(functions: str, **makers: Maker) -> None:
    for function in functions.split():
        PARTICULAR.setdefault(function, {}).update(makers)


def within(module: str, names: str) -> str:
    """The names as functions of a module."""
    return " ".join(f"{module}.{name}" for name in names.split())


def each(names: str, maker: Maker) -> dict[str, Maker]:
    return dict.fromkeys(names.split(), maker)


def maker_of(function: str, name: str) -> Maker:
    found = PARTICULAR.get(function, {}).get(name)
    return found or COMMON.get(name) or main_array


def arguments(g: Gen, function: str, parameters: list[list[str]]) -> tuple[
        list[Expr], list[tuple[str, Expr]]]:
    """Positional and keyword arguments for a function of this signature."""
    c = Context(g, function)
    args: list[Expr] = []
    keywords: list[tuple[str, Expr]] = []
    by_keyword = False
    for name, kind, default in parameters:
        if name in SKIPPED or kind == "VAR_KEYWORD":
            continue
        maker = maker_of(function, name)
        if kind == "VAR_POSITIONAL":
            args += [text(maker(g, c)) for _ in range(g.weighted({1: 3, 2: 6, 3: 1}))]
            continue
        if default and not g.chance(0.3):
            by_keyword = True
            continue
        value = g.bad() if g.chance(0.012) else text(maker(g, c))
        if kind == "KEYWORD_ONLY" or by_keyword or (
                default and kind != "POSITIONAL_ONLY" and g.chance(0.7)):
            if kind != "POSITIONAL_ONLY":
                keywords.append((name, value))
            by_keyword = True
        else:
            args.append(value)
    return args, keywords


__all__ = ["COMMON", "Context", "arguments", "call", "form", "particular"]
