"""Functions of a matrix, or of two, for exports with symbolic shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

UNARY = (
    "abs acos acosh angle arcsinh arctan ceil conj cos cosh cbrt deg2rad exp exp2 expm1 fabs floor "
    "frexp i0 imag isfinite isinf isnan isneginf log log10 log1p log2 logical_not modf "
    "nan_to_num negative positive rad2deg real reciprocal rint round sign signbit sin sinc sinh "
    "sqrt square tan tanh trunc"
)
REDUCTIONS = (
    "all any argmax argmin average count_nonzero max mean median min nanargmax nanmax nanmean "
    "nanmin nansum nanprod nanstd nanvar prod ptp std sum var"
)
BINARY = (
    "add arctan2 copysign divide equal float_power floor_divide fmax fmin fmod greater "
    "greater_equal heaviside hypot less less_equal logaddexp logaddexp2 logical_and logical_or "
    "logical_xor maximum minimum mod multiply nextafter not_equal power remainder subtract "
    "true_divide ldexp"
)
NN = (
    "relu relu6 sigmoid softplus softmax log_softmax elu leaky_relu gelu silu celu selu "
    "hard_tanh hard_sigmoid soft_sign logsumexp standardize swish mish squareplus"
)
ARRANGED = (
    "transpose ravel flip fliplr flipud rot90 atleast_1d atleast_2d atleast_3d cumsum cumprod "
    "sort argsort diff triu tril ones_like zeros_like expand_dims:0 squeeze diagonal trace "
    "array copy swapaxes:0,1 moveaxis:0,1 rollaxis:1 nancumsum nancumprod gradient "
    "permute_dims:(1,0)"
)


def _named(module: Any, entry: str) -> Any:
    name, _, args = entry.partition(":")
    fun = getattr(module, name)
    given = eval(f"({args},)") if args else ()  # of this table
    return lambda x, y: fun(x, *given)


def _axis(module: Any, name: str, axis: int) -> Any:
    fun = getattr(module, name)
    return lambda x, y: fun(x, axis=axis)


def _binary(name: str) -> Any:
    fun = getattr(jnp, name)
    if name == "ldexp":
        return lambda x, y: fun(x, jnp.int32(y))
    return lambda x, y: fun(x, y)


def _scan(x: Any, y: Any) -> Any:
    return lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(x.shape[1]), x)


def _while(x: Any, y: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, s[1] * 1.5), (0, x))[1]


def _cond(x: Any, y: Any) -> Any:
    return lax.cond(jnp.sum(x) > 0, lambda v: v * v.shape[0], lambda v: v - v.shape[1], x)


def _mlp(x: Any, y: Any) -> Any:
    w = jnp.ones((x.shape[1], 3)) / x.shape[1]
    h = jnp.tanh(x @ w)
    return (h - h.mean(0)) / (h.std(0) + 1e-3)


def _attention(x: Any, y: Any) -> Any:
    scores = jnp.einsum("id,jd->ij", x, y) / jnp.sqrt(x.shape[1])
    mask = jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool))
    return jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1) @ y


COMPOSED: dict[str, Any] = {
    "arange": lambda x, y: jnp.arange(x.shape[0]) * 2,
    "arange-float": lambda x, y: jnp.arange(x.shape[1], dtype=jnp.float32) + x,
    "arange-steps": lambda x, y: jnp.arange(2, 2 * x.shape[0] + 2, 2),
    "reshape-flat": lambda x, y: x.reshape(-1),
    "reshape-free": lambda x, y: x.reshape(x.shape[1], -1),
    "reshape-split": lambda x, y: x.reshape(1, x.shape[0], x.shape[1], 1),
    "reshape-back": lambda x, y: x.reshape(-1).reshape(x.shape),
    "broadcast": lambda x, y: jnp.broadcast_to(x[:1], x.shape),
    "broadcast-more": lambda x, y: jnp.broadcast_to(x, (2, *x.shape)),
    "newaxis": lambda x, y: x[:, None] + y[None],
    "concatenate": lambda x, y: jnp.concatenate([x, y, x], 0),
    "concatenate-1": lambda x, y: jnp.concatenate([x, y[:, :1]], 1),
    "stack": lambda x, y: jnp.stack([x, y], 1),
    "vstack": lambda x, y: jnp.vstack([x, y]),
    "hstack": lambda x, y: jnp.hstack([x, y]),
    "tile": lambda x, y: jnp.tile(x, (2, 3)),
    "repeat": lambda x, y: jnp.repeat(x, 2, axis=0),
    "slice": lambda x, y: x[1:],
    "slice-end": lambda x, y: x[:-1, 1:],
    "slice-steps": lambda x, y: x[::2, ::-1],
    "slice-half": lambda x, y: x[:x.shape[0] // 2],
    "row": lambda x, y: x[0],
    "last": lambda x, y: x[-1],
    "column": lambda x, y: x[..., 1],
    "take": lambda x, y: jnp.take(x, jnp.array([0, 1, 1]), axis=0),
    "take-all": lambda x, y: jnp.take(x, jnp.arange(x.shape[0])[::-1], axis=0),
    "gather": lambda x, y: x[jnp.array([1, 0]), jnp.array([0, 1])],
    "gather-rows": lambda x, y: x[jnp.array([1, 0])],
    "take_along_axis": lambda x, y: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "at-set": lambda x, y: x.at[0].set(1.0),
    "at-add": lambda x, y: x.at[:, 1].add(y[:, 0]),
    "at-rows": lambda x, y: x.at[jnp.array([0, 1, 1])].add(1.0),
    "dynamic_slice": lambda x, y: lax.dynamic_slice(x, (1, 0), (1, x.shape[1])),
    "dynamic_update": lambda x, y: lax.dynamic_update_slice(x, y[:1], (1, 0)),
    "dynamic_index": lambda x, y: lax.dynamic_index_in_dim(x, 1, 0),
    "pad": lambda x, y: jnp.pad(x, ((1, 2), (0, 1))),
    "pad-lax": lambda x, y: lax.pad(x, 0.0, ((1, x.shape[0], 0), (0, 0, 1))),
    "roll": lambda x, y: jnp.roll(x, 1, axis=0),
    "where": lambda x, y: jnp.where(x > 0, x, y),
    "clip": lambda x, y: jnp.clip(x, -0.5, 0.5),
    "select": lambda x, y: lax.select(x > y, x, y),
    "mean-by-size": lambda x, y: jnp.sum(x) / x.size,
    "times-size": lambda x, y: x * x.shape[0] + x.shape[1] - x.shape[0] * x.shape[1],
    "size-float": lambda x, y: x * (x.shape[0] * 0.5),
    "size-value": lambda x, y: jnp.asarray(x.shape[0]) + 1,
    "full": lambda x, y: jnp.full((x.shape[0], 2), 3.0),
    "zeros": lambda x, y: jnp.zeros((x.shape[0] + 1, x.shape[1] * 2)),
    "eye": lambda x, y: jnp.eye(x.shape[0]),
    "identity": lambda x, y: jnp.identity(x.shape[1]),
    "iota": lambda x, y: lax.broadcasted_iota(jnp.int32, x.shape, 1),
    "linspace": lambda x, y: jnp.linspace(0.0, 1.0, 5) * x.shape[0],
    "meshgrid": lambda x, y: jnp.meshgrid(x[:, 0], y[0]),
    "one_hot": lambda x, y: jax.nn.one_hot(jnp.arange(x.shape[0]), 4),
    "outer": lambda x, y: jnp.outer(x[0], y[:, 0]),
    "matmul": lambda x, y: x @ y.T,
    "dot": lambda x, y: jnp.dot(x[0], y[0]),
    "vdot": lambda x, y: jnp.vdot(x, y),
    "inner": lambda x, y: jnp.inner(x, y),
    "tensordot": lambda x, y: jnp.tensordot(x, y, ((0, 1), (0, 1))),
    "einsum": lambda x, y: jnp.einsum("ij,kj->ik", x, y),
    "einsum-sum": lambda x, y: jnp.einsum("ij,ij->j", x, y),
    "einsum-outer": lambda x, y: jnp.einsum("ij,kl->ijkl", x, y),
    "kron": lambda x, y: jnp.kron(x, jnp.ones((1, 2))),
    "norm": lambda x, y: jnp.linalg.norm(x, axis=1),
    "cov": lambda x, y: jnp.cov(x),
    "scan": _scan,
    "scan-reverse": lambda x, y: lax.scan(lambda c, r: (c + r, c), x[0], x, reverse=True),
    "fori": lambda x, y: lax.fori_loop(0, 3, lambda i, v: v + y, x),
    "fori-size": lambda x, y: lax.fori_loop(0, x.shape[0], lambda i, v: v + x[i], x[0]),
    "while": _while,
    "cond": _cond,
    "switch": lambda x, y: lax.switch(1, [lambda v: v, lambda v: v + v.shape[0]], x),
    "map": lambda x, y: lax.map(lambda r: r * r.shape[0], x),
    "vmap": lambda x, y: jax.vmap(lambda r, s: r @ s)(x, y),
    "vmap-1": lambda x, y: jax.vmap(lambda c: jnp.cumsum(c), 1, 1)(x),
    "vmap-out": lambda x, y: jax.vmap(lambda r: r.at[0].set(2.0), out_axes=1)(x),
    "grad": lambda x, y: jax.grad(lambda v: jnp.sum(jnp.sin(v) * y))(x),
    "grad-mean": lambda x, y: jax.grad(lambda v: jnp.mean(v * y, 0).sum())(x),
    "grad-slice": lambda x, y: jax.grad(lambda v: jnp.sum(v[1:] * 2))(x),
    "grad-softmax": lambda x, y: jax.grad(lambda v: jax.nn.softmax(v)[:, 0].sum())(x),
    "grad-scan": lambda x, y: jax.grad(lambda v: _scan(v, y)[0].sum())(x),
    "grad-max": lambda x, y: jax.grad(lambda v: v.max(1).sum())(x),
    "jvp": lambda x, y: jax.jvp(jnp.tanh, (x,), (y,)),
    "jit": lambda x, y: jax.jit(lambda v: v + v.shape[0])(x) + jax.jit(jnp.sum)(y),
    "checkpoint": lambda x, y: jax.grad(lambda v: jax.checkpoint(jnp.sin)(v).sum())(x),
    "mlp": _mlp,
    "attention": _attention,
    "layer_norm": lambda x, y: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(
        x.var(-1, keepdims=True) + 1e-5),
    "top_k": lambda x, y: lax.top_k(x, 2),
    "sort-pairs": lambda x, y: lax.sort((x, y), dimension=0, num_keys=1),
    "cummax": lambda x, y: lax.cummax(x, 0),
    "grad-cumprod": lambda x, y: jax.grad(lambda v: lax.cumprod(v, 1, reverse=True).sum())(x),
    "grad-cummax": lambda x, y: jax.grad(lambda v: lax.cummax(v, reverse=True).sum())(x),
    "cumsum-1": lambda x, y: jnp.cumsum(x, 1),
    "cumsum-reverse": lambda x, y: lax.cumsum(x, 1, reverse=True),
    "reduce_window": lambda x, y: lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (1, 1), "VALID"),
    "conv": lambda x, y: lax.conv_general_dilated(
        x[None, None], jnp.ones((1, 1, 2, 2)), (1, 1), "VALID"),
    "conv-same": lambda x, y: lax.conv_general_dilated(
        x[None, None], jnp.ones((1, 1, 3, 3)), (1, 1), "SAME"),
    "convert": lambda x, y: x.astype(jnp.bfloat16).astype(jnp.int32),
    "bits": lambda x, y: lax.bitcast_convert_type(x, jnp.int32) ^ 3,
    "int-ops": lambda x, y: (x * 10).astype(jnp.int32) // 3 % x.shape[0],
    "uniform": lambda x, y: jax.random.uniform(jax.random.key(0), x.shape),
    "normal": lambda x, y: jax.random.normal(jax.random.key(0), (x.shape[0],)),
    "dropout": lambda x, y: jnp.where(jax.random.bernoulli(jax.random.key(1), 0.5, x.shape), x, 0),
    "searchsorted": lambda x, y: jnp.searchsorted(jnp.sort(x[0]), y[0]),
    "quadratic": lambda x, y: jnp.sum(x[:, :, None] * y[:, None, :], 0),
    "allclose": lambda x, y: jnp.allclose(x, y),
    "isin": lambda x, y: jnp.isin(x, y),
    "interp": lambda x, y: jnp.interp(x, jnp.array([-1.0, 0.0, 1.0]), jnp.array([0.0, 1.0, 4.0])),
    "segment_sum": lambda x, y: jax.ops.segment_sum(x, jnp.arange(x.shape[0]) % 3, 3),
    "delete": lambda x, y: jnp.delete(x, 0, axis=0),
    "append": lambda x, y: jnp.append(x, y, axis=0),
    "split": lambda x, y: jnp.split(x, [1], axis=0),
    "unravel": lambda x, y: jnp.unravel_index(3, (2, 2)),
    "complex": lambda x, y: jnp.abs(x + 1j * y),
    "polyval": lambda x, y: jnp.polyval(jnp.array([1.0, 2.0, 3.0]), x),
    "apply_along": lambda x, y: jnp.apply_along_axis(lambda r: r - r.mean(), 1, x),
    "logcumsumexp": lambda x, y: lax.cumlogsumexp(x, 0),
    "conv-strides": lambda x, y: lax.conv_general_dilated(
        x[None, None], jnp.ones((1, 1, 2, 2)), (2, 2), "SAME"),
    "conv-transpose": lambda x, y: lax.conv_transpose(
        x[None, None], jnp.ones((1, 1, 2, 2)), (2, 2), "SAME",
        dimension_numbers=("NCHW", "OIHW", "NCHW")),
    "conv-grad": lambda x, y: jax.grad(lambda v: lax.conv_general_dilated(
        v[None, None], jnp.ones((1, 1, 2, 2)), (1, 1), "VALID").sum())(x),
    "at-steps": lambda x, y: x.at[::2].multiply(2.0),
    "repeat-size": lambda x, y: jnp.repeat(x[0], x.shape[0]),
    "tile-size": lambda x, y: jnp.tile(x[0], (x.shape[0], 1)),
    "nonzero": lambda x, y: jnp.nonzero(x > 0, size=x.size),
    "pad-edge": lambda x, y: jnp.pad(x, 1, mode="edge"),
    "pad-reflect": lambda x, y: jnp.pad(x, 1, mode="reflect"),
    "percentile": lambda x, y: jnp.percentile(x, 30.0, axis=0),
    "solve": lambda x, y: jnp.linalg.solve(x @ x.T + 8 * jnp.eye(x.shape[0]), y),
    "eigvalsh": lambda x, y: jnp.linalg.eigvalsh(x @ x.T),
    "singular-values": lambda x, y: jnp.linalg.svd(x, compute_uv=False),
    "lstsq": lambda x, y: jnp.linalg.inv(x.T @ x + jnp.eye(x.shape[1])),
    "attention-nn": lambda x, y: jax.nn.dot_product_attention(
        x[None, :, None], y[None, :, None], x[None, :, None]),
    "scan-length": lambda x, y: lax.scan(lambda c, _: (c + 1, c), 0.0, None, length=x.shape[0]),
    "grad-fori": lambda x, y: jax.grad(lambda v: lax.fori_loop(
        0, x.shape[0], lambda i, s: s + v[i].sum() ** 2, 0.0))(x),
    "associative_scan": lambda x, y: lax.associative_scan(jnp.add, x[:, :2].T, axis=0),
}


def functions() -> dict[str, Any]:
    """All of them, by name: `f(x, y)`, for matrices of one shape."""
    found: dict[str, Any] = {}
    for entry in UNARY.split():
        found[f"numpy.{entry}"] = _named(jnp, entry)
    for name in REDUCTIONS.split():
        found[f"numpy.{name}"] = _named(jnp, name)
        for axis in (0, 1):
            found[f"numpy.{name}-{axis}"] = _axis(jnp, name, axis)
    for name in BINARY.split():
        found[f"numpy.{name}"] = _binary(name)
    for name in NN.split():
        found[f"nn.{name}"] = _named(jax.nn, name)
    for entry in ARRANGED.split():
        found[f"numpy.{entry}"] = _named(jnp, entry)
    return {**found, **COMPOSED}


# Three symbolic forms of a matrix's shape, and the shapes to call it with.
FORMS: dict[str, tuple[str, tuple[tuple[int, int], ...]]] = {
    "rows": ("b, 6", ((4, 6), (9, 6))),
    "both": ("a, b", ((4, 6), (3, 3), (5, 8))),
    "expressions": ("2*a, a + b + 1", ((4, 6), (2, 3), (6, 6))),
}
CONSTRAINTS = {"rows": ("b >= 4",), "both": ("a >= 3", "b >= 3"), "expressions": ()}


def matrices(shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, *shape)).astype(np.float32)
    return x, y
