"""Functions of arrays of some sizes, each with what padding could be seen by."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, tree_util
from pyjx.core.avals import get_aval
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.dynamic.padded import garbage, padded_jaxpr


class Function(NamedTuple):
    """A function, the shapes of its arguments and which of these hold indices; `derived` says that
    its derivative is asked for, too."""

    fun: Callable
    shapes: Sequence[str]
    integers: Sequence[int] = ()
    derived: bool = True


def planted(fun, dims, args, room=8):
    """The results of a function on arguments padded with garbage, whose operations fill their
    padding with it; None where these sizes run unpadded."""
    spec = jax.jit(fun, dynamic=dims)._jit_spec
    leaves, tree = tree_util.tree_flatten((tuple(args), {}))
    avals = tuple(map(get_aval, leaves))
    sizes = spec.sizes(spec.symbolic_avals(spec.scope, tree, avals, ()), tree, avals, ())
    traced = spec.traced_symbolic(tree, avals, (), dict(sizes))
    if traced is None:
        return None
    bounds = tuple((v, int(min(max(room, n), traced.scope.variable_bounds(v)[1])))
                   for v, n in sizes)
    program = padded_jaxpr(traced.call.closed, bounds, True, False)
    padded = []
    for x, aval in zip(leaves, program.in_avals[len(sizes):], strict=True):
        full = np.full(aval.shape, garbage(aval.dtype))
        full[tuple(map(slice, np.shape(x)))] = x
        padded.append(full)
    outs = jax.jit(jaxpr_as_fun(program))(*[np.int32(n) for _, n in sizes], *padded)
    expected = jax.tree.leaves(jax.eval_shape(fun, *args))
    return [np.asarray(x)[tuple(map(slice, y.shape))] for x, y in zip(outs, expected, strict=True)]


def _key(shape):
    return jax.random.normal(jax.random.key(0), shape)


FUNCTIONS = {
    "elementwise": Function(lambda x: jnp.exp(x) * 2 + 1, ["n, 3"]),
    "softmax": Function(lambda x: jax.nn.softmax(x), ["3, n"]),
    "log_softmax": Function(lambda x: jax.nn.log_softmax(x, 0), ["m, n"]),
    "mean": Function(lambda x: x.mean(), ["m, n"]),
    "var": Function(lambda x: x.var(0), ["n, 3"]),
    "median": Function(lambda x: jnp.median(x, 0), ["n, 3"]),
    "prod": Function(lambda x: x.prod(0), ["n, 3"], (), False),
    "max": Function(lambda x: x.max(0), ["n, 3"]),
    "min": Function(lambda x: x.min(), ["n, 3"]),
    "any": Function(lambda x: ((x > 9).any(0), (x < 9).all(0)), ["n, 3"], (), False),
    "argmax": Function(lambda x: (jnp.argmax(x, 0), jnp.argmin(x)), ["n, m"], (), False),
    "logsumexp": Function(lambda x: jax.nn.logsumexp(x, 0), ["n, 3"]),
    "reduce": Function(lambda x: lax.reduce(x, 0.0, lambda a, b: a + b * 1.0, (0,)), ["n, 3"], (),
                       False),
    "norm": Function(lambda x: x / jnp.linalg.norm(x, axis=0), ["n, 3"]),
    "reshape": Function(lambda x: jnp.cumsum(x.reshape(-1)), ["3, n"]),
    "reshape two": Function(lambda x: x.reshape(-1) * 2, ["m, n"]),
    "reshape rows": Function(lambda x: x.reshape(-1, 2), ["n, 6"]),
    "expression": Function(lambda x: x.reshape(-1, 2).sum(1), ["2*n"]),
    "halves": Function(lambda x: x[:x.shape[0] // 2] - x[x.shape[0] // 2:], ["2*n, 3"]),
    "flip": Function(lambda x: x[:, ::-1], ["3, n"]),
    "transpose": Function(lambda x: x.T.reshape(6, -1), ["n, 6"]),
    "differences": Function(lambda x: x[:, 1:] - x[:, :-1], ["3, n"]),
    "last": Function(lambda x: x[:, -1], ["3, n"]),
    "middle": Function(lambda x: x[x.shape[0] // 2:] * 2, ["n, 3"]),
    "stride": Function(lambda x: x[::2], ["n, 3"]),
    "stack": Function(lambda x: jnp.stack([x, x * 2], 1), ["n, 3"]),
    "tile": Function(lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 2, axis=0)), ["n, 3"]),
    "concatenate": Function(lambda x, y: jnp.concatenate([x, y, x * 2], 1), ["2, n", "2, m"]),
    "concatenate last": Function(lambda x: jnp.concatenate([jnp.ones((2, 3)), x]), ["n, 3"]),
    "pad": Function(lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=2.0), ["n, 3"]),
    "pad inside": Function(lambda x: lax.pad(x, 3.0, ((1, 0, 1), (0, 1, 0))), ["n, 3"]),
    "pad edge": Function(lambda x: jnp.pad(x, ((1, 2), (0, 1)), mode="edge"), ["n, 3"]),
    "split": Function(lambda x: jnp.array_split(x, 3), ["n, 3"]),
    "roll": Function(lambda x: jnp.roll(x, 1, 0), ["n, 3"]),
    "triangle": Function(lambda x: jnp.tril(x @ x.T), ["n, 3"]),
    "diagonal": Function(lambda x: (jnp.diagonal(x), jnp.trace(x), jnp.diag(x[0])), ["n, n"]),
    "sort": Function(lambda x: jnp.sort(x, 0), ["n, 3"]),
    "argsort": Function(lambda x: jnp.argsort(x, 0), ["n, 3"], (), False),
    "top_k": Function(lambda x: lax.top_k(x.T, 1), ["n, 3"]),
    "searchsorted": Function(lambda x: jnp.searchsorted(jnp.sort(x), x), ["n"], (), False),
    "quantile": Function(lambda x: jnp.quantile(x, 0.3, axis=0), ["n, 3"]),
    "cumulative": Function(lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 0)), ["n, 3"]),
    "cumulative back": Function(lambda x: (lax.cumsum(x, 0, reverse=True),
                                           lax.cummax(x, 0, reverse=True)), ["n, 3"]),
    "cumlogsumexp": Function(lambda x: lax.cumlogsumexp(x, 0), ["n, 3"]),
    "dot": Function(lambda x: (x @ x.T, x.T @ x), ["n, 3"]),
    "dot two": Function(lambda x, y: jnp.tanh(x @ y), ["m, n", "n, 4"]),
    "einsum": Function(lambda x, y: jnp.einsum("bij,bkj->bik", x, y), ["b, 3, n", "b, 3, n"]),
    "zeros under a root": Function(lambda x, w: jnp.sqrt(jnp.abs(x) @ w).sum(), ["n, 3", "3, 3"]),
    "zeros under a log": Function(lambda w, x: jnp.log((x ** 2) @ (w ** 2)).sum(),
                                  ["3, 3", "n, 3"]),
    "convolution": Function(lambda x, w: lax.conv_general_dilated(x, w, (2,), "SAME"),
                            ["2, 3, n", "4, 3, 3"]),
    "convolution of a batch": Function(lambda x, w: lax.conv_general_dilated(
        x, w, (1,), [(1, 1)]), ["b, 3, n", "4, 3, 3"]),
    "max pool": Function(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), "SAME"),
                         ["n"]),
    "convolution of groups": Function(lambda x, w: lax.conv_general_dilated(
        x, w, (1,), "SAME", feature_group_count=2, dimension_numbers=("NHC", "HIO", "NHC")),
        ["b, n, 2", "3, 1, 4"]),
    "pool with strides": Function(lambda x: lax.reduce_window(
        x, 0.0, lax.add, (1, 3), (1, 2), "SAME"), ["2, n"]),
    "factors of a batch": Function(lambda x: (jnp.linalg.svd(x, compute_uv=False), jnp.abs(
        jnp.linalg.qr(x)[1])), ["n, 3, 3"], (), False),
    "average pool": Function(lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "SAME"),
                             ["n"]),
    "take": Function(lambda x, i: x[i], ["n, 3", "k"], (1,)),
    "take clipped": Function(lambda x, i: jnp.take(x, i, axis=0, mode="clip"), ["n, 3", "k"], (1,)),
    "take filled": Function(lambda x, i: jnp.take(x, i, axis=0, mode="fill", fill_value=3.0),
                            ["n, 3", "k"], (1,)),
    "take along": Function(lambda x, i: jnp.take_along_axis(x, i % x.shape[0], 0),
                           ["n, 3", "n, 3"], (1,)),
    "scatter": Function(lambda x, i: jnp.zeros((5, 3)).at[i].add(x), ["k, 3", "k"], (1,)),
    "scatter clipped": Function(lambda x, i: x.at[i].add(7.0, mode="clip"), ["n, 3", "k"], (1,)),
    "set": Function(lambda x, i: x.at[i].set(7.0), ["n, 3", "k"], (1,), False),
    "update a slice": Function(lambda x: (x.at[1:].set(7.0), x.at[:-1].add(x[1:])), ["n, 3"]),
    "update": Function(lambda x: lax.dynamic_update_slice(x, x[:2] * 2, (1, 2)), ["3, n"]),
    "segments": Function(lambda x, i: jax.ops.segment_sum(x, i, num_segments=x.shape[0]),
                         ["n, 3", "n"], (1,)),
    "bins": Function(lambda x: jnp.bincount((x > 0).astype(int), length=3), ["n"], (), False),
    "random": Function(lambda x: _key(x.shape) + x, ["n, 3"]),
    "random columns": Function(lambda x: _key(x.shape) + x, ["3, n"]),
    "random keys": Function(lambda x: jax.vmap(lambda k, x: jax.random.normal(k, (3,)) + x)(
        jax.random.split(jax.random.key(0), x.shape[0]), x), ["n, 3"]),
    "cholesky": Function(lambda x: jnp.linalg.cholesky(x @ x.T + 5 * jnp.eye(x.shape[0])),
                         ["n, 3"]),
    "solve": Function(lambda x, y: jnp.linalg.solve(x + 9 * jnp.eye(x.shape[0]), y),
                      ["n, n", "n, 2"]),
    "determinant": Function(lambda x: jnp.linalg.slogdet(x + 9 * jnp.eye(x.shape[0])), ["n, n"]),
    "transform of rows": Function(lambda x: jnp.abs(jnp.fft.fft(x, axis=1)), ["n, 3"]),
    "scan": Function(lambda x: lax.scan(lambda c, y: (jnp.sin(c + y), c * y), jnp.zeros(3), x),
                     ["n, 3"]),
    "scan back": Function(lambda x: lax.scan(lambda c, y: (jnp.sin(c + y), c * y), jnp.zeros(3), x,
                                             reverse=True), ["n, 3"]),
    "scan across": Function(lambda x: lax.scan(
        lambda c, y: (jnp.sin(c + y.sum()), c * y.mean()), jnp.zeros(3), x.T), ["n, 3"]),
    "fori": Function(lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i] * i,
                                             jnp.zeros(3)), ["n, 3"]),
    "while": Function(lambda x: lax.while_loop(lambda c: c.sum() < 20.0, lambda c: c * 1.5 + 1,
                                               jnp.abs(x) + 0.1), ["n, 3"], (), False),
    "while of each": Function(lambda x: jax.vmap(lambda r: lax.while_loop(
        lambda c: c < 20.0, lambda c: c * 1.5 + 1, jnp.abs(r) + 0.1))(x), ["n"], (), False),
    "cond": Function(lambda x: lax.cond(x.sum() > 0, jnp.exp, lambda x: x[::-1], x), ["n, 3"]),
    "cond of each": Function(lambda x: jax.vmap(lambda r: lax.cond(
        r > 0, jnp.exp, lambda r: r * 2, r))(x), ["n"]),
    "map": Function(lambda x: lax.map(lambda r: jnp.sin(r).sum(), x), ["n, 3"]),
    "checkpoint": Function(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x).sum(0) * x))(x),
                           ["n, 3"]),
    "custom": Function(lambda x: jax.nn.relu(x) @ jax.nn.gelu(x).T + jax.nn.sigmoid(x).sum(),
                       ["n, 3"]),
    "attention": Function(lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True),
                          ["2, n, 2, 4"]),
    "distances": Function(lambda x: jnp.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 1e-6),
                          ["n, 3"]),
    "one hot": Function(lambda x: jax.nn.one_hot(jnp.argmax(x, 1), 3) * x, ["n, 3"]),
    "callback": Function(lambda x: jax.pure_callback(
        lambda v: np.asarray(v) * len(v), jax.ShapeDtypeStruct(x.shape, x.dtype), x), ["n, 3"], (),
        False),
}
