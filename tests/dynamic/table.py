"""Expressions of public functions of arrays x and y whose sizes vary: those that padding is hidden
from, by the shapes of their arguments, and those that are refused.

`python -m tests.dynamic.table` tells of each.
"""

import sys

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import image, lax, nn, ops, random
from pyjx.errors import InconclusiveDimensionOperation
from pyjx.scipy import linalg, ndimage, signal, special, stats
from tests.dynamic.functions import planted

ROWS = "n,3"
SPD = "(x @ x.T + 5 * jnp.eye(x.shape[0]))"
KEY = "random.key(0)"
SIZES = {1: [(2,), (5,), (8,)], 2: [(2, 3), (5, 4), (8, 8)]}
NAMES = {"jax": jax, "jnp": jnp, "lax": lax, "nn": nn, "ops": ops, "random": random, "np": np,
         "image": image, "linalg": linalg, "ndimage": ndimage, "signal": signal, "stats": stats,
         "special": special}


def each(template, names):
    return [template.replace("{}", name) for name in names.split()]


EXACT = {
    ROWS: [
        *each("jnp.{}(x, axis=0)",
              "all any argmax argmin argsort average count_nonzero cumprod cumsum diff flip "
              "gradient max mean median min nanargmax nancumsum nanmax nanmean nanmedian nanmin "
              "nanprod nanstd nansum nanvar prod ptp sort std sum trapezoid unwrap var"),
        *each("nn.{}(x)",
              "celu elu gelu hard_tanh leaky_relu log_sigmoid mish relu relu6 selu sigmoid silu "
              "soft_sign softplus sparse_plus squareplus"),
        *each("nn.{}(x, axis=0)", "log_softmax logmeanexp logsumexp softmax standardize"),
        *each("special.{}(nn.sigmoid(x))",
              "digamma entr erf erfc erfinv exp1 expi expit gamma gammaln i0 i0e i1 i1e logit "
              "logsumexp ndtr ndtri spence"),
        *each("special.{}(nn.sigmoid(x), 2.5)",
              "betaln gammainc gammaincc rel_entr xlog1py xlogy zeta"),
        "special.betainc(2.0, 3.0, nn.sigmoid(x))", "special.polygamma(1, nn.sigmoid(x))",
        "special.multigammaln(nn.sigmoid(x) + 3, 2)",
        "jnp.allclose(x, x + 1e-9)", "jnp.append(x, 9.0)", "jnp.array_equal(x, x)",
        "jnp.array_split(x, 3)", "jnp.block([[x, x], [x, x]])",
        "jnp.apply_along_axis(lambda r: r.sum(), 0, x)", "jnp.argwhere(x > 0, size=4)",
        "jnp.broadcast_to(x, (2, *x.shape))", "jnp.concatenate([x, x * 2])",
        "jnp.cross(x, x * 2 + 1)", "jnp.expand_dims(x, 1)", "jnp.eye(x.shape[0], 3) + x",
        "jnp.fft.fft(x)", "jnp.fft.rfft2(x[:, None])", "jnp.identity(x.shape[0]) @ x",
        "jnp.indices(x.shape)", "jnp.inner(x, x)", "jnp.meshgrid(x[:, 0], x[:, 1])",
        "jnp.moveaxis(x, 0, 1)", "jnp.nan_to_num(x / (x > 0))",
        "jnp.nanquantile(x, 0.3, axis=0)", "jnp.percentile(x, 30, axis=0, method='nearest')",
        "jnp.quantile(x, jnp.array([0.2, 0.7]), axis=0)", "jnp.repeat(x, 3, axis=0)",
        "jnp.reshape(x, -1, order='F')", "jnp.reshape(x, (3, -1))", "jnp.roll(x, 2, 0)",
        "jnp.rot90(x)", "jnp.select([x > 0, x < -1], [x, 2 * x])", "jnp.stack([x, x * 2], -1)",
        "jnp.take_along_axis(x, jnp.argsort(x, 0), 0)", "jnp.tensordot(x, x, 2)",
        "jnp.tile(x, (2, 2))", "jnp.tril(x)", "jnp.vdot(x, x)", "jnp.where(x > 0, x, 0.0)",
        "jnp.vectorize(lambda r: r.sum(), signature='(k)->()')(x)",
        "jnp.put_along_axis(x, jnp.argmax(x, 0, keepdims=True), 9.0, 0, inplace=False)",
        "jnp.linalg.norm(x)", "jnp.linalg.norm(x, np.inf)", "jnp.linalg.qr(x)",
        "jnp.linalg.qr(x, mode='r')", "linalg.block_diag(x, x)", "linalg.lu(x)",
        "lax.argmax(x, 0, np.int32)", "lax.associative_scan(jnp.multiply, x)",
        "lax.associative_scan(jnp.maximum, x, reverse=True)",
        "lax.bitcast_convert_type(x, np.int32)", "lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)",
        "lax.cumlogsumexp(x, reverse=True)", "lax.cummax(x)", "lax.cummin(x, reverse=True)",
        "lax.cumsum(x, reverse=True)", "lax.dot_general(x, x, (((0,), (0,)), ((), ())))",
        "lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(3))",
        "lax.map(jnp.sin, x)", "lax.map(lambda r: r.sum(), x, batch_size=2)",
        "lax.reduce(lax.stop_gradient(x), 1.0, lambda a, b: a * b + 0.0, (0,))",
        "lax.reduce_precision(x, 5, 3)",
        "lax.ragged_dot(x, jnp.ones((2, 3, 4)), jnp.array([1, x.shape[0] - 1]))",
        "lax.rev(x, (0,))", "lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(3), x)",
        "lax.switch(1, [jnp.sin, jnp.cos], x)", "lax.top_k(x.T, 2)",
        "lax.while_loop(lambda c: c.sum() < 20, lambda c: c * 1.5 + 1, jnp.abs(x))",
        "image.resize(x, (3, 6), 'linear')", "image.resize(x, (2 * x.shape[0], 3), 'linear')",
        "nn.one_hot(jnp.argmax(x, 1), x.shape[0])", "stats.norm.logpdf(x).sum()",
        *each("ops.segment_{}(x, jnp.arange(x.shape[0]) % 4, 4)", "max min prod sum"),
        *each("random.{}(random.key(0), x.T.shape) + x.T",
              "bits cauchy exponential gumbel laplace logistic normal uniform"),
        *each("random.{}(random.key(0), jnp.abs(x.T) + 1)", "chisquare dirichlet gamma poisson t"),
        f"random.beta({KEY}, jnp.abs(x) + 1, 2.0)", f"random.binomial({KEY}, 5, nn.sigmoid(x))",
        f"random.bernoulli({KEY}, 0.3, x.T.shape)", f"random.categorical({KEY}, x.T)",
        f"random.choice({KEY}, x, (4,))",
        f"random.permutation({KEY}, x)", f"random.permutation({KEY}, x, independent=True)",
        f"random.randint({KEY}, x.T.shape, 0, 9)",
        f"random.truncated_normal({KEY}, -1, 1, x.T.shape)",
        f"jax.vmap(random.normal)(random.split({KEY}, x.shape[0]))",
        f"jax.vmap(lambda i: random.normal(random.fold_in({KEY}, i)))(jnp.arange(x.shape[0]))"],
    "n": [
        "jnp.arange(x.shape[0]) * x", "jnp.arange(0, x.shape[0], 2)", "jnp.argpartition(x, 1)[:1]",
        "jnp.bincount(jnp.abs(x).astype(int), length=5)", "jnp.compress(x > 0, x, size=2)",
        "jnp.convolve(x, jnp.array([1.0, 2.0, 3.0]), 'same')", "jnp.delete(x, 0)", "jnp.diag(x)",
        "jnp.diagflat(x)", "jnp.ediff1d(x)", "jnp.extract(x > 0, x, size=2)",
        "jnp.fft.fftfreq(x.shape[0]) * x", "jnp.fft.fftshift(x)",
        "jnp.geomspace(1, 5, x.shape[0]) * x", "jnp.histogram(x, 4)",
        "jnp.histogram2d(x, x * 2, 4)[0]", "jnp.insert(x, 1, 9.0)",
        "jnp.intersect1d(jnp.round(x), jnp.arange(4.0), size=3)",
        "jnp.isin(jnp.round(x), jnp.arange(4.0))", "jnp.kron(x, jnp.array([1.0, 2.0]))",
        "jnp.lexsort((jnp.round(x), x))", "jnp.linspace(0, 1, x.shape[0]) * x",
        "jnp.logspace(0, 1, x.shape[0]) * x", "jnp.nonzero(x > 0, size=4)", "jnp.outer(x, x)",
        "jnp.packbits(x > 0)", "jnp.pad(x, 1, mode='linear_ramp')", "jnp.pad(x, 1, mode='mean')",
        "jnp.pad(x, 1, mode='reflect')", "jnp.partition(x, 1)",
        "jnp.piecewise(x, [x < 0, x >= 0], [jnp.sin, jnp.cos])", "jnp.polyval(x, 2.0)",
        "jnp.repeat(x, jnp.arange(x.shape[0]) % 3, total_repeat_length=9)",
        "jnp.setdiff1d(jnp.round(x), jnp.arange(2.0), size=3)",
        "jnp.union1d(x, x + 1, size=20)", "jnp.vander(x)", "jnp.vander(x, 3)",
        "jnp.unique(jnp.round(x), size=5, return_inverse=True, return_counts=True)",
        "jnp.split(x, 2) if x.shape[0] % 2 == 0 else x", "linalg.toeplitz(x)",
        "lax.linalg.tridiagonal_solve(x, x + 9, x, x[:, None])",
        "lax.reduce_window(x, -np.inf, lax.max, (3,), (2,), 'SAME')",
        "lax.sort((jnp.round(x), x), num_keys=2)", "signal.convolve(x, jnp.ones(3), 'same')",
        "ndimage.map_coordinates(x, [jnp.array([0.5, 1.2])], 1)", "stats.rankdata(x)",
        "stats.mode(jnp.round(x))", f"random.choice({KEY}, x, (2,), replace=False)",
        f"random.choice({KEY}, x, (4,), p=nn.softmax(x))",
        f"random.choice({KEY}, x, (2,), p=nn.softmax(x), replace=False)",
        f"random.multinomial({KEY}, 5.0, nn.softmax(x))",
        f"random.multivariate_normal({KEY}, x, jnp.eye(x.shape[0]))",
        f"random.permutation({KEY}, x.shape[0])", f"random.orthogonal({KEY}, x.shape[0])"],
    "n,n": [
        f"jnp.linalg.cholesky{SPD}", f"jnp.linalg.det{SPD}", f"jnp.linalg.inv{SPD}",
        f"jnp.linalg.slogdet{SPD}", f"jnp.linalg.solve({SPD}, x[0])", f"jnp.linalg.qr({SPD})",
        "jnp.linalg.matrix_power(x / 5, 3)", f"linalg.cho_solve(linalg.cho_factor({SPD}), x[0])",
        f"linalg.expm({SPD} / 9)", f"linalg.lu({SPD})", f"linalg.polar({SPD})",
        f"linalg.lu_solve(linalg.lu_factor({SPD}), x[0])",
        f"linalg.solve({SPD}, x[0], assume_a='pos')",
        f"linalg.solve_triangular({SPD}, x[0], lower=True)", "jnp.diagonal(x, 1)", "jnp.trace(x)",
        "jnp.fill_diagonal(x, 3.0, inplace=False)", "x[jnp.tril_indices(x.shape[0])]",
        "lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), 'VALID')"],
    "n;m": [
        "jnp.convolve(x, y)", "jnp.correlate(x, y, 'full')", "jnp.digitize(x, jnp.sort(y))",
        "jnp.interp(y, jnp.sort(x), x)", "jnp.kron(x, y)", "jnp.searchsorted(jnp.sort(x), y)",
        "jnp.take(x, jnp.abs(y).astype(int))"],
    "n,m": ["jnp.corrcoef(x)", "jnp.cov(x)", "jnp.einsum('ij,kj->ik', x, x)", "jnp.ravel(x)",
            "jnp.triu(x, 1)"],
    "n,2,m": [
        "lax.conv_general_dilated(x, jnp.ones((4, 2, 3)), (2,), 'SAME')",
        "lax.conv_general_dilated(x, jnp.ones((4, 2, 3)), (1,), [(2, 3)], (2,), (2,))",
        "lax.conv_general_dilated(x, jnp.ones((2, 1, 3)), (1,), 'SAME', feature_group_count=2)",
        "lax.conv_transpose(x.swapaxes(1, 2), jnp.ones((3, 2, 4)), (2,), 'SAME')"],
    "n,m,2,4": ["nn.dot_product_attention(x, x, x, is_causal=True)",
                "nn.dot_product_attention(x, x, x, key_value_seq_lengths=jnp.full(x.shape[0], 2))"],
}

REFUSED = {
    "n": ["jnp.fft.fft(x)", "jnp.fft.rfft(x)", "signal.fftconvolve(x, jnp.ones(3), 'same')",
          "jnp.pad(x, 1, mode='wrap')", "jnp.polyfit(jnp.arange(x.shape[0]) * 1.0, x, 1)"],
    "n,n": [f"jnp.linalg.eigh({SPD})", f"jnp.linalg.eigvalsh({SPD})", "jnp.linalg.eig(x)",
            "jnp.linalg.eigvals(x)", "linalg.schur(x)", "linalg.sqrtm(x)",
            "jax.grad(lambda x: jnp.linalg.svdvals(x).sum())(x)"],
    ROWS: ["jnp.linalg.svd(x, full_matrices=False)", "jnp.linalg.pinv(x)",
           "jnp.linalg.lstsq(x, x[:, 0])", "jnp.linalg.multi_dot([x.T, x, x.T])",
           "random.normal(random.key(0, impl='rbg'), x.shape)"],
}
CASES, REFUSED_CASES = [[(code, shapes) for shapes, codes in table.items() for code in codes]
                        for table in (EXACT, REFUSED)]


def compiled(code):
    return lambda x, y=None: eval(code, {**NAMES, "x": x, "y": y})


def with_gradient(fun):
    def loss(*args):
        outs = jax.tree.leaves(fun(*args))
        return sum(jnp.sin(jnp.abs(o)).sum() for o in outs if jnp.issubdtype(o.dtype, jnp.inexact))

    return lambda x, y=None: jax.grad(loss, 0 if y is None else (0, 1))(
        *[v for v in (x, y) if v is not None])


def arguments(shapes, numbers):
    rng = np.random.default_rng(0)
    sizes = dict(zip("nm", numbers, strict=False))
    return [rng.normal(size=[sizes.get(d) or int(d) for d in s.split(",")]).astype(np.float32)
            for s in shapes.split(";")]


def dims_of(shapes):
    return {v: tuple(d if d.isalpha() else None for d in s.split(","))
            for v, s in zip("xy", shapes.split(";"), strict=False)}


def check(code, shapes):
    """Compare an expression and its derivative, padded with NaN, with themselves.

    Raises:
      AssertionError: padding was seen.
      NotImplementedError, InconclusiveDimensionOperation: one is refused.
    """
    fun = compiled(code)
    for both in (fun, with_gradient(fun)):
        for numbers in SIZES[2 if "m" in shapes else 1]:
            args = arguments(shapes, numbers)
            try:
                expected = jax.tree.leaves(jax.jit(both)(*args))
            except Exception:  # it has no derivative
                assert both is not fun
                break
            found = planted(both, dims_of(shapes), args)
            for x, y in zip(expected if found is None else found, expected, strict=True):
                np.testing.assert_allclose(x, y, rtol=3e-4, atol=1e-4)


def main():
    for code, shapes in (*CASES, *REFUSED_CASES):
        try:
            check(code, shapes)
            print("exact  ", code, flush=True)
        except (NotImplementedError, InconclusiveDimensionOperation) as error:
            print("refused", code, str(error).splitlines()[0][:200], flush=True)
        except Exception as error:
            print("WRONG  ", code, type(error).__name__, str(error)[:500], flush=True)


if __name__ == "__main__":
    sys.exit(main())
