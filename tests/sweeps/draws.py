"""A program that draws with every sampler, and writes what it drew: `draws.py PACKAGE FILE`.

It runs with this package and, by another Python, with the one it is compared to.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SHAPES = [(), (3,), (2, 0), (4, 5)]
KEYS = ["threefry2x32", "rbg", "unsafe_rbg", "raw"]

# The samplers that take a shape and a dtype, with the parameters that stand before the shape.
SAMPLERS: dict[str, tuple[Any, ...]] = {
    "normal": (), "uniform": (), "exponential": (), "gumbel": (), "laplace": (), "logistic": (),
    "cauchy": (), "maxwell": (), "truncated_normal": (-1.0, 2.0), "beta": (1.5, 0.7),
    "gamma": (0.6,), "loggamma": (1.7,), "chisquare": (3.0,), "f": (2.0, 5.0), "t": (4.0,),
    "pareto": (2.0,), "rayleigh": (0.5,), "weibull_min": (2.0, 0.7), "wald": (1.5,),
    "lognormal": (0.3,), "triangular": (0.0, 1.0, 3.0), "double_sided_maxwell": (0.5, 2.0),
    "generalized_normal": (1.3,), "ball": (3, 2.0), "binomial": (9.0, 0.3),
}
SHAPE_FIRST = {"lognormal"}


def keys(jax: Any) -> Iterator[tuple[str, Any]]:
    for kind in KEYS:
        for seed in (0, 2**31 + 5):
            key = (jax.random.PRNGKey(seed) if kind == "raw"
                   else jax.random.key(seed, impl=kind))
            yield f"{kind}-{seed}", key


def floats(jax: Any, key: Any, dtypes: list[str], shapes: list[Any]
           ) -> Iterator[tuple[str, Any]]:
    random = jax.random
    for name, parameters in SAMPLERS.items():
        for dtype in dtypes:
            for shape in shapes:
                draw = partial(getattr(random, name), key, shape=shape, dtype=dtype)
                kept = {"sigma": parameters[0]} if name in SHAPE_FIRST else {}
                yield f"{name}-{dtype}-{shape}", partial(draw, *(() if kept else parameters),
                                                         **kept)
    alpha = np.array([0.5, 1.5, 2.0], np.float32)
    for dtype in dtypes:
        yield f"dirichlet-{dtype}", lambda t=dtype: random.dirichlet(key, alpha, (2,), t)
        yield f"orthogonal-{dtype}", lambda t=dtype: random.orthogonal(key, 3, (2,), t)
        if dtype in ("float32", "float64"):
            yield f"multivariate-{dtype}", lambda t=dtype: random.multivariate_normal(
                key, np.zeros(2, t), np.eye(2, dtype=t), (3,), t)


def others(jax: Any, key: Any, dtypes: list[str], shapes: list[Any]
           ) -> Iterator[tuple[str, Any]]:
    random = jax.random
    for shape in shapes:
        for dtype in dtypes:
            yield f"randint-{dtype}-{shape}", lambda s=shape, t=dtype: random.randint(
                key, s, 0, 100, t)
            if dtype.startswith("u"):
                yield f"bits-{dtype}-{shape}", lambda s=shape, t=dtype: random.bits(key, s, t)
            yield f"rademacher-{dtype}-{shape}", lambda s=shape, t=dtype: random.rademacher(
                key, s, t)
            if dtype in ("int32", "int64"):
                yield f"geometric-{dtype}-{shape}", lambda s=shape, t=dtype: random.geometric(
                    key, 0.2, s, t)
                yield f"poisson-{dtype}-{shape}", lambda s=shape, t=dtype: random.poisson(
                    key, 12.0, s, t)
        yield f"bernoulli-{shape}", lambda s=shape: random.bernoulli(key, 0.3, s)
        yield f"categorical-{shape}", lambda s=shape: random.categorical(
            key, np.float32([0.1, 2, -1]), shape=s)
        yield f"choice-{shape}", lambda s=shape: random.choice(key, 30, s)
        yield f"weighted-{shape}", lambda s=shape: random.choice(
            key, 4, s, p=np.float32([0.1, 0.2, 0.3, 0.4]))
    yield "distinct", lambda: random.choice(key, 9, (4,), replace=False)
    yield "permutation", lambda: random.permutation(key, 11)
    yield "rows", lambda: random.permutation(key, np.arange(12.0).reshape(4, 3), axis=1)
    yield "independent", lambda: random.permutation(
        key, np.arange(12.0).reshape(4, 3), independent=True)
    yield "multinomial", lambda: random.multinomial(key, 9.0, np.float32([0.2, 0.3, 0.5]))
    yield "split", lambda: key_bits(random, random.split(key, (2, 3)))
    yield "fold_in", lambda: key_bits(random, random.fold_in(key, 7))


def key_bits(random: Any, key: Any) -> Any:
    return key if key.dtype == np.uint32 else random.key_data(key)


def drawn(jax: Any) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {}
    for wide in (False, True):
        jax.config.update("jax_enable_x64", wide)
        narrow = [t for t in FLOATS if not t.endswith("64")], \
            [t for t in INTEGERS if not t.endswith("64")]
        real, whole = (["float64"], ["int64", "uint64"]) if wide else narrow
        for kind, key in keys(jax):
            # Samplers see the bits of a key alone: its kinds need not meet all shapes.
            shapes = SHAPES if kind == "threefry2x32-0" else SHAPES[-1:]
            draws = [*floats(jax, key, real, shapes), *others(jax, key, whole, shapes)]
            for name, draw in draws:
                label = f"{name}/{kind}/{'x64' if wide else 'x32'}"
                try:
                    x = draw()
                except Exception as error:
                    out[label] = np.array(type(error).__name__)
                    continue
                dtype = str(x.dtype)
                host = np.asarray(x)
                out[f"{label}/{dtype}"] = (
                    host.astype(np.float32) if dtype == "bfloat16" else host)
    return out


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.savez(sys.argv[2], **drawn(importlib.import_module(sys.argv[1])))
