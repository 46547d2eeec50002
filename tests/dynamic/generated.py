"""Programs made from a seed, of arrays with one or two sizes that vary, and their derivatives.

`python -m tests.dynamic.generated --count N` runs many, and says which were refused.
"""

import argparse
import collections
import random
import sys
import warnings

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import errors, lax, nn
from tests.dynamic.functions import planted
from tests.oracle.programs import BINARY, ELEMENTWISE

CHOSEN = (4, 5), (7, 8)  # sizes of n and m

ALONG = [f"{f}({{0}}, axis={{a}})" for f in (
    "jnp.sum", "jnp.mean", "jnp.max", "jnp.min", "jnp.prod", "jnp.var", "jnp.std", "nn.logsumexp",
    "jnp.median", "jnp.ptp", "jnp.cumsum", "jnp.cumsum", "jnp.sort", "jnp.flip", "nn.softmax",
    "nn.log_softmax", "jnp.cumprod", "lax.cummax", "lax.cumlogsumexp", "nn.standardize",
    "jnp.argmax", "jnp.argsort", "jnp.linalg.norm", "jnp.any", "jnp.diff", "jnp.nansum",
    "jnp.average", "jnp.count_nonzero", "jnp.expand_dims")]
ALONG += ["lax.cumsum({0}, axis={a}, reverse=True)", "jnp.roll({0}, 2, axis={a})",
          "jnp.concatenate([{0}, {0}], axis={a})", "jnp.stack([{0}, 2 * {0}], axis={a})",
          "jnp.repeat({0}, 2, axis={a})", "jnp.take({0}, jnp.array([0, -1, 1]), axis={a})",
          "jnp.sum({0}, axis={a}, keepdims=True)", "jnp.max({0}, axis={a}, keepdims=True)",
          "jnp.quantile({0}, 0.4, axis={a})", "jnp.moveaxis({0}, {a}, 0)",
          "jnp.take_along_axis({0}, jnp.argsort({0}, axis={a}), axis={a})",
          "jnp.partition({0}, 1, axis={a})", "jnp.apply_along_axis(jnp.sin, {a}, {0})"]
WHOLE = [
    "{0}.sum()", "{0}.mean()", "{0}.max()", "{0}.std()", "jnp.ravel({0})", "{0}.T", "{0}[::-1]",
    "{0}[..., None]", "{0}[1:]", "{0}[:-1]", "{0}[::2]", "{0}[0]", "{0}[-1]", "{0}[-2:]",
    "{0}[:{0}.shape[0] // 2]", "{0}[{0}.shape[0] // 2:]", "{0}.at[0].set(1.5)",
    "{0}.at[-1].add(2)", "{0}.at[1:].multiply(2.0)", "{0}.at[:-1].add({0}[1:])",
    "{0}.at[jnp.array([0, 0])].add(0.5)", "{0} @ {0}.T", "{0}.T @ {0}", "jnp.outer({0}, {0})",
    "jnp.tile({0}, 2)", "jnp.pad({0}, [(1, 2)] + [(0, 0)] * ({0}.ndim - 1))",
    "jnp.tril({0})", "jnp.triu({0} @ {0}.T)", "jnp.broadcast_to({0}, (2, *{0}.shape))",
    "jnp.einsum('...i,...i->...', {0}, {0})", "jnp.where({0} > {0}.mean(), {0}, 0.0)",
    "{0}[jnp.arange({0}.shape[0])[::-1]]", "{0}[jnp.argsort({0}.reshape({0}.shape[0], -1)[:, 0])]",
    "lax.scan(lambda c, r: (jnp.tanh(c + r), c * r), {0}[0], {0})[1]",
    "lax.scan(lambda c, r: (jnp.tanh(c + r), c), {0}[0], {0}, reverse=True)[0]",
    "lax.fori_loop(0, {0}.shape[0], lambda i, c: c + {0}[i] * i, {0}[0] * 0)",
    "lax.map(lambda r: jnp.sin(r).sum(), {0})", "jax.vmap(lambda r: r - r.mean())({0})",
    "lax.cond({0}.sum() > 0, lambda v: jnp.sin(v), lambda v: v[::-1], {0})",
    "jax.checkpoint(lambda v: jnp.sin(jnp.sin(v).sum(0) * v))({0})",
    "nn.one_hot(jnp.argmax({0}.reshape({0}.shape[0], -1), 1), 3)",
    "jnp.zeros((3, *{0}.shape[1:])).at[jnp.arange({0}.shape[0]) % 3].add({0})",
    "jax.ops.segment_sum({0}, jnp.arange({0}.shape[0]) // 2, {0}.shape[0])",
    "jax.random.normal(jax.random.key(1), {0}.shape) + {0}",
    "jax.random.bernoulli(jax.random.key(1), 0.5, {0}.shape) * {0}",
    "jnp.sqrt(((({0}[:, None] - {0}[None]) ** 2)).sum(-1) + 1e-3)",
    "jnp.convolve({0}.ravel(), jnp.array([1.0, 2.0, 3.0]))", "jnp.vander({0}.ravel(), 3)",
    "lax.reduce_window({0}, 0.0, lax.add, (2,) * {0}.ndim, (1,) * {0}.ndim, 'VALID')",
    "jnp.linalg.solve({0} @ {0}.T + 5 * jnp.eye({0}.shape[0]), {0})",
    "jnp.linalg.cholesky({0} @ {0}.T + 5 * jnp.eye({0}.shape[0]))",
    "jnp.abs(jnp.fft.rfft({0}))", "jnp.linalg.svd({0}, compute_uv=False)", "jnp.trace({0})",
    "jnp.diagonal({0})", "lax.top_k({0}, 2)[0]", "jnp.meshgrid({0}.ravel(), {0}.ravel())[0]",
    "jnp.searchsorted(jnp.sort({0}.ravel()), {0})", "jnp.interp({0}, jnp.linspace(-2, 2, 5), "
    "jnp.arange(5.0))", "jnp.histogram({0}, 4)[0]", "jnp.cov({0})", "jnp.cov({0}.T)",
    "{0} / {0}.shape[0]", "jnp.linspace(0, 1, {0}.shape[0])", "jnp.squeeze({0})",
    "jnp.split({0}, 1)[0]", "jnp.hsplit({0}, 1)[0]", "jnp.gradient({0}, axis=0)",
    "jnp.array_split({0}, 2)[0]", "jnp.append({0}, 1.0)", "jnp.insert({0}.ravel(), 1, 2.0)"]
PAIRS = [*BINARY, "jnp.concatenate([{0}, {1}])", "({0} @ {1})", "({0} @ {1}.T)",
         "jnp.stack([{0}, {1}])", "jnp.einsum('ij,ik->jk', {0}, {1})", "jnp.outer({0}, {1})",
         "jnp.where({0} > 0, {0}, {1})", "jnp.take({0}, jnp.argmax({1}), axis=0)",
         "{0}.at[jnp.argmax({1}) % {0}.shape[0]].add(1.0)", "jnp.convolve({0}, {1})",
         "jnp.dot({0}, {1})", "jnp.append({0}, {1})", "jnp.searchsorted(jnp.sort({0}), {1})"]
SINGLE = [e for e in ELEMENTWISE if "float16" not in e]
NAMES = {"jnp": jnp, "lax": lax, "nn": nn, "jax": jax, "np": np}


class Made:
    """A program: steps, each a text of code and the values that it reads. The first two values are
    arguments, of shapes (n, m), or (n, 3), and (n,)."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.two = rng.random() < 0.5
        self.steps = []
        pools = [self.arguments(sizes, jax.ShapeDtypeStruct) for sizes in ((4, 7), (6, 5))]
        length = rng.randint(4, 9)
        while len(self.steps) < length:
            kind = rng.choice([SINGLE, ALONG, ALONG, WHOLE, WHOLE, PAIRS])
            code = rng.choice(kind)
            picked = [rng.choice(range(len(pools[0]))[-4:]) for _ in range(2)]
            rank = max(len(pools[0][picked[0]].shape), 1)
            code = code.replace("{a}", str(rng.randrange(rank)))
            if kind is BINARY or code in BINARY:
                code = code.replace("{}", "{0}", 1).replace("{}", "{1}")
            step = code.replace("{}", "{0}"), picked
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    new = [jax.eval_shape(lambda *p, step=step: run_step(step, p), *p)
                           for p in pools]
            except Exception:  # it does not fit
                continue
            if all(isinstance(x, jax.ShapeDtypeStruct) and x.size <= 400 for x in new):
                self.steps.append(step)
                for pool, x in zip(pools, new, strict=True):
                    pool.append(x)

    def arguments(self, sizes, make):
        n, m = sizes
        return [make((n, m if self.two else 3), np.float32), make((n,), np.float32)]

    def __call__(self, x, y):
        pool = [x, y]
        for step in self.steps:
            pool.append(run_step(step, pool))
        return pool[-1], pool[-2]

    def derived(self, x, y):
        def loss(x, y):
            outs = self(x, y)
            floats = [o for o in outs if jnp.issubdtype(o.dtype, jnp.floating)]
            return sum(jnp.sin(o).sum() for o in floats), outs

        return jax.grad(loss, (0, 1), has_aux=True)(jnp.asarray(x), y)

    def __str__(self):
        return "\n".join(f"v{i + 2} = " + filled(step) for i, step in enumerate(self.steps))


def filled(step):
    code, picked = step
    return code.replace("{0}", f"v{picked[0]}").replace("{1}", f"v{picked[1]}")


def run_step(step, pool):
    found = eval(filled(step), {**NAMES, **{f"v{i}": x for i, x in enumerate(pool)}})
    return found.astype(jnp.float32) if jnp.issubdtype(found.dtype, jnp.integer) or (
        found.dtype == bool) else found


class Leak(AssertionError):
    """A padded program gives something else."""


def check(made):
    """Compare a program with itself, padded, at some sizes.

    Raises:
      NotImplementedError, InconclusiveDimensionOperation: it is refused.
      Leak: padding was seen.
    """
    dims = {"x": ("n", "m" if made.two else None), "y": ("n",)}
    rng = np.random.default_rng(0)
    for n, m in CHOSEN:
        true = made.arguments((n, m), lambda shape, dtype: rng.normal(size=shape).astype(dtype))
        found = planted(made.derived, dims, true)
        if found is None:
            continue
        plain = jax.jit(made.derived)
        expected, nearby = [jax.tree.leaves(plain(*[x * factor for x in true]))
                            for factor in (np.float32(1), np.float32(1 + 2e-7))]
        differing = []
        for x, y, z in zip(found, expected, nearby, strict=True):
            y = np.asarray(y)
            size = np.abs(y[np.isfinite(y)]).max(initial=1.0)
            spread = np.nan_to_num(np.abs(y - z), nan=0.0, posinf=0.0).max(initial=0.0)
            kinds = {"rtol": 1e-3, "atol": 1e-4 * size + 50 * spread, "equal_nan": True}
            if not np.allclose(x, y, **kinds):
                differing.append((x, y, kinds))
        if differing:  # XLA makes zero of some products of zero and NaN, and not of others
            step_by_step = jax.tree.leaves(made.derived(*true))
            for x, y, kinds in differing:
                if not any([x.shape == z.shape and np.all(
                        np.isclose(x, y, **kinds) | np.isclose(x, z, **kinds))
                        for z in map(np.asarray, step_by_step)]):
                    raise Leak(f"at sizes n = {n}, m = {m}:\n{x}\n{y}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    reasons = collections.Counter()
    warnings.simplefilter("ignore")
    for seed in range(options.seed, options.seed + options.count):
        made = Made(seed)
        try:
            check(made)
            reasons["equal"] += 1
        except (NotImplementedError, errors.InconclusiveDimensionOperation) as error:
            reasons[f"refused: {str(error).split(' at ')[0][:90]}"] += 1
        except Exception as error:
            reasons[f"{type(error).__name__}"] += 1
            print(f"seed {seed}\n{made}\n{type(error).__name__}: {str(error)[:1500]}\n", flush=True)
        if seed % 25 == 24:
            jax.clear_caches()
            print(seed, dict(reasons), file=sys.stderr, flush=True)
    for reason, n in reasons.most_common():
        print(n, reason)


if __name__ == "__main__":
    main()
