"""Programs as data: expressions and statements that print as a Python snippet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Text:
    """A literal, a name, or any other code that is not taken apart."""

    code: str

    def render(self) -> str:
        return self.code

    @property
    def parts(self) -> tuple[Expr, ...]:
        return ()

    def rebuilt(self, parts: tuple[Expr, ...]) -> Expr:
        return self


@dataclass(frozen=True)
class Data:
    """An array or scalar of given values.

    `form` is `jnp` (a device array), `np` (a NumPy array), `npscalar`, `weak` (a device array of
    weak type, all of whose elements are the first value), `py` (a Python scalar), `list`.
    """

    form: str
    dtype: str
    shape: tuple[int, ...]
    values: tuple[Any, ...]

    def render(self) -> str:
        if self.form == "py":
            return value_text(self.values[0])
        if self.form == "weak":
            first = value_text(self.values[0]) if self.values else "0"
            return f"jnp.broadcast_to({first}, {self.shape})"
        if self.form == "list":
            return nested(self.values, self.shape)
        if self.form == "npscalar":
            return f"np.array({value_text(self.values[0])}, '{self.dtype}')[()]"
        if 0 in self.shape:
            return f"{self.form}.zeros({self.shape}, '{self.dtype}')"
        return f"{self.form}.array({nested(self.values, self.shape)}, '{self.dtype}')"

    @property
    def parts(self) -> tuple[Expr, ...]:
        return ()

    def rebuilt(self, parts: tuple[Expr, ...]) -> Expr:
        return self


@dataclass(frozen=True)
class Call:
    """A call of `function`, which is code, with positional and keyword arguments."""

    function: str
    args: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()

    def render(self) -> str:
        words = [a.render() for a in self.args]
        words += [f"{name}={value.render()}" for name, value in self.keywords]
        return f"{self.function}({', '.join(words)})"

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (*self.args, *(value for _, value in self.keywords))

    def rebuilt(self, parts: tuple[Expr, ...]) -> Expr:
        count = len(self.args)
        names = [name for name, _ in self.keywords]
        return Call(self.function, parts[:count],
                    tuple(zip(names, parts[count:], strict=True)))


@dataclass(frozen=True)
class Form:
    """Code with holes: `{}` in the pattern stands for a part."""

    pattern: str
    parts: tuple[Expr, ...]

    def render(self) -> str:
        pieces = self.pattern.split("{}")
        words = [p.render() for p in self.parts]
        return "".join(a + b for a, b in zip(pieces, [*words, ""], strict=True))

    def rebuilt(self, parts: tuple[Expr, ...]) -> Expr:
        return Form(self.pattern, parts)


@dataclass(frozen=True)
class Items:
    """A tuple, a list, a dict (`keys` given) or the items of an index (`kind` is `index`)."""

    kind: str
    parts: tuple[Expr, ...]
    keys: tuple[str, ...] = ()

    def render(self) -> str:
        words = [p.render() for p in self.parts]
        if self.kind == "dict":
            return "{" + ", ".join(f"{k}: {w}" for k, w in zip(self.keys, words, strict=True)) + "}"
        inside = ", ".join(words)
        if self.kind == "list":
            return f"[{inside}]"
        if self.kind == "index":
            return inside or "()"
        return f"({inside},)" if len(words) == 1 else f"({inside})"

    def rebuilt(self, parts: tuple[Expr, ...]) -> Expr:
        return replace(self, parts=parts)


Expr = Text | Data | Call | Form | Items


@dataclass(frozen=True)
class Assign:
    """`name = value`; the name may be a pattern such as `a, b`."""

    name: str
    value: Expr

    def lines(self) -> list[str]:
        return [f"{self.name} = {self.value.render()}"]


@dataclass(frozen=True)
class Function:
    """A function of straight-line code."""

    name: str
    params: str
    body: tuple[Statement, ...]
    result: Expr
    decorators: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        inside = [line for s in self.body for line in s.lines()]
        inside.append(f"return {self.result.render()}")
        return [*(f"@{d}" for d in self.decorators), f"def {self.name}({self.params}):",
                *(f"    {line}" for line in inside)]


@dataclass(frozen=True)
class Code:
    """Lines that are kept as they are, or left out as a whole."""

    text: str

    def lines(self) -> list[str]:
        return self.text.strip("\n").splitlines()


Statement = Assign | Function | Code


@dataclass(frozen=True)
class Program:
    """What is run: the statements leave their outcome in the variable `result`."""

    kind: str
    body: tuple[Statement, ...]
    x64: bool = False
    calls: tuple[str, ...] = field(default=(), compare=False)

    def source(self) -> str:
        return "\n".join(line for s in self.body for line in s.lines())

    def snippet(self) -> str:
        """The program as a script that runs by itself."""
        head = ["import numpy as np", "import jax", "import jax.numpy as jnp",
                "from jax import lax, nn, random, tree_util"]
        if self.x64:
            head.append("jax.config.update('jax_enable_x64', True)")
        if self.kind == "kernels":
            head += ["from jax.experimental import pallas as pl",
                     "from jax.experimental.pallas import tpu as pltpu"]
        return "\n".join([*head, self.source(), "print(result)"])


# -- text ------------------------------------------------------------------------------------------


def value_text(value: Any) -> str:
    if isinstance(value, complex):
        return f"complex({value_text(value.real)}, {value_text(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def nested(values: tuple[Any, ...], shape: tuple[int, ...]) -> str:
    if not shape:
        return value_text(values[0])
    step = len(values) // shape[0] if shape[0] else 0
    rows = [nested(values[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]
    return f"[{', '.join(rows)}]"


def text(value: Any) -> Expr:
    """A Python value as an expression; expressions pass."""
    if isinstance(value, (Text, Data, Call, Form, Items)):
        return value
    if isinstance(value, (tuple, list)):
        kind = "list" if isinstance(value, list) else "tuple"
        return Items(kind, tuple(text(v) for v in value))
    return Text(value_text(value))


def call(function: str, *args: Any, **keywords: Any) -> Call:
    return Call(function, tuple(text(a) for a in args),
                tuple((k, text(v)) for k, v in keywords.items()))


def form(pattern: str, *parts: Any) -> Form:
    return Form(pattern, tuple(text(p) for p in parts))


def walk(e: Expr) -> Iterator[Expr]:
    yield e
    for part in e.parts:
        yield from walk(part)
