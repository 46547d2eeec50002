"""Random dtypes, shapes, arrays and scalars."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from tests.oracle.language import Data, Expr, Items, Text, call, form

FLOATS = {"float32": 35, "bfloat16": 7, "float16": 7, "float64": 0}
INTS = {"int32": 18, "int8": 4, "int16": 3, "uint8": 5, "uint16": 3, "uint32": 4, "int64": 0,
        "uint64": 0}
COMPLEX = {"complex64": 8, "complex128": 0}
BOOL = {"bool": 8}
WIDE = {"float64": 20, "int64": 14, "uint64": 4, "complex128": 6}
KINDS = {"f": FLOATS, "i": INTS, "c": COMPLEX, "b": BOOL}


def kind_of(dtype: str) -> str:
    return "b" if dtype == "bool" else "c" if dtype.startswith("c") else (
        "i" if "int" in dtype else "f")


LIMITS = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4028e38, "float64": 1.79e308}


class Gen:
    """A source of random parts of programs, all from one seed."""

    def __init__(self, seed: str, x64: bool = False) -> None:
        self.rng = random.Random(seed)
        self.x64 = x64

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, *options: Any) -> Any:
        return self.rng.choice(options)

    def weighted(self, table: dict[Any, float]) -> Any:
        return self.rng.choices(list(table), list(table.values()))[0]

    def dtype(self, kinds: str = "fibc") -> str:
        table = {name: w for k in kinds for name, w in KINDS[k].items()}
        if self.x64:
            table.update({name: w for name, w in WIDE.items() if name in table})
        return str(self.weighted(table))

    def dim(self) -> int:
        return int(self.weighted({0: 3, 1: 14, 2: 30, 3: 34, 4: 14, 5: 5}))

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        ranks = {0: 18, 1: 34, 2: 30, 3: 13, 4: 5}
        rank = self.weighted({r: w for r, w in ranks.items() if least <= r <= most})
        return tuple(self.dim() for _ in range(rank))

    def broadcastable(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts with `shape`."""
        if self.chance(0.5):
            return tuple(shape)
        found = [1 if self.chance(0.3) else n for n in shape]
        return tuple(found[self.rng.randint(0, len(found)):] if self.chance(0.5) else found)

    # -- values ------------------------------------------------------------------------------------

    def floats(self, count: int, dtype: str) -> tuple[float, ...]:
        r = self.rng
        profile = self.weighted({"quarters": 50, "normal": 30, "unit": 10, "special": 10})
        if profile == "quarters":
            return tuple(r.randint(-12, 12) / 4 for _ in range(count))
        if profile == "normal":
            return tuple(round(r.gauss(0, 1.5), 3) for _ in range(count))
        if profile == "unit":
            return tuple(r.randint(0, 20) / 20 for _ in range(count))
        odd = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 2.5, -7.5, 1e-4, 300.0,
               LIMITS.get(dtype, 1e3)]
        return tuple(r.choice(odd) for _ in range(count))

    def ints(self, count: int, dtype: str) -> tuple[int, ...]:
        r = self.rng
        unsigned, bits = dtype.startswith("u"), int(dtype.lstrip("uint"))
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if self.chance(0.08):
            return tuple(r.choice([low, high, 0, 1, high - 1]) for _ in range(count))
        return tuple(r.randint(max(low, -4), 7) for _ in range(count))

    def values(self, count: int, dtype: str) -> tuple[Any, ...]:
        kind = kind_of(dtype)
        if kind == "b":
            return tuple(self.chance(0.5) for _ in range(count))
        if kind == "i":
            return self.ints(count, dtype)
        if kind == "f":
            return self.floats(count, dtype)
        part = "float32" if dtype == "complex64" else "float64"
        return tuple(map(complex, self.floats(count, part), self.floats(count, part)))

    def data(self, shape: Sequence[int] | None = None, dtype: str | None = None,
             form_: str | None = None, kinds: str = "fibc") -> Data:
        """An array or scalar; where nothing is said its form is chosen too."""
        shape = self.shape() if shape is None else tuple(shape)
        dtype = dtype or self.dtype(kinds)
        if form_ is None:
            table = {"jnp": 72, "np": 16, "weak": 4, "list": 1}
            if not shape:
                table = {"jnp": 40, "np": 10, "weak": 8, "py": 26, "npscalar": 12}
            form_ = str(self.weighted(table))
        if form_ in ("py", "weak", "list"):
            dtype = {"f": "float32", "i": "int32", "b": "bool", "c": "complex64"}[kind_of(dtype)]
        elif form_ in ("np", "npscalar") and self.chance(0.12):
            dtype = {"f": "float64", "i": "int64", "b": "bool", "c": "complex128"}[kind_of(dtype)]
        return Data(form_, dtype, shape, self.values(math.prod(shape), dtype))

    def array(self, shape: Sequence[int] | None = None, kinds: str = "fibc",
              dtype: str | None = None) -> Data:
        """A device array or a NumPy array."""
        return self.data(shape, dtype, "np" if self.chance(0.15) else "jnp", kinds)

    def mask(self, shape: Sequence[int]) -> Data:
        return self.data(shape, "bool", "jnp")

    def nonnegative(self, shape: Sequence[int], high: int, dtype: str = "int32",
                    low: int = 0) -> Data:
        count = math.prod(shape)
        values = tuple(self.rng.randint(low, max(low, high)) for _ in range(count))
        return Data("jnp" if self.chance(0.8) else "np", dtype, tuple(shape), values)

    # -- small arguments ---------------------------------------------------------------------------

    def axis(self, rank: int, wrong: float = 0.03) -> int:
        if self.chance(wrong) or rank == 0:
            return int(self.pick(rank, -rank - 1, rank + 3, 0))
        return self.rng.randint(-rank, rank - 1)

    def axes(self, rank: int) -> tuple[int, ...]:
        """Distinct axes, some negative; now and then a repeated or a wrong one."""
        chosen = [i for i in range(rank) if self.chance(0.5)]
        self.rng.shuffle(chosen)
        found = [i - rank if self.chance(0.3) else i for i in chosen]
        if self.chance(0.04):
            found.append(self.axis(rank, 0.5))
        return tuple(found)

    def axis_or_axes(self, rank: int) -> Any:
        pick = self.weighted({"one": 5, "none": 2, "some": 3})
        return {"one": lambda: self.axis(rank), "none": lambda: None,
                "some": lambda: self.axes(rank)}[pick]()

    def dtype_text(self, kinds: str = "fibc") -> Expr:
        """A dtype as users write it."""
        name = self.dtype(kinds)
        way = self.weighted({"jnp": 5, "text": 3, "np": 2, "python": 1, "wide": 0.4})
        if way == "python":
            return Text(self.pick("float", "int", "bool", "complex"))
        if way == "wide":
            return Text(self.pick("np.float64", "'int64'", "jnp.float64", "np.uint64"))
        if way == "text" or (way == "np" and name == "bfloat16"):
            return Text(f"'{name}'")
        if way == "np":
            return call("np.dtype", name)
        return Text(f"jnp.{'bool_' if name == 'bool' else name}")

    def key(self, shape: Sequence[int] = ()) -> Expr:
        seed = self.rng.randint(0, 99)
        maker = "random.key" if self.chance(0.7) else "random.PRNGKey"
        impl = {"impl": "rbg"} if self.chance(0.06) else {}
        made = call(maker, seed, **impl)
        return call("random.split", made, tuple(shape)) if shape else made

    def bad(self) -> Expr:
        """Something that is no argument of a numerical function."""
        return self.pick(
            Text("None"), Text("'a'"), Text("object()"), Text("{}"), Text("{'a': 1.0}"),
            Text("len"), Text("[1.0, 2.0]"), Text("[[1], [1, 2]]"), Text("np.array(['a'])"),
            Text("np.array([None])"), Text("1.5"), Text("-1"), Text("()"), Text("float('nan')"),
            Text("2**70"), Text("jnp.float32"), Text("slice(None)"), Text("..."),
            Text("np.datetime64('2020-01-01')"), form("{}", self.data()),
            Items("tuple", (self.data(), self.data())), Text("random.key(0)"),
            Text("jnp.ones((2, 2), 'complex64')"), Text("jax.ShapeDtypeStruct((2,), 'float32')"),
        )
