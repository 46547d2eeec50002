"""Operations that ask for more than elementwise ones where their sizes are symbolic."""

import operator

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export, lax, nn
from pyjx.core import dtypes
from pyjx.errors import InconclusiveDimensionOperation

KEY = jax.random.key(0)


def _jacobian(of, argnums):
    def f(a, b):
        return {"u": jnp.sin(a) @ b, "v": b.sum()}

    return lambda a: of(f, argnums)(a, a[0])


def _grams(x):
    return x @ x.T + jnp.eye(x.shape[0])


OPERATIONS = {
    "jacfwd": _jacobian(jax.jacfwd, 0),
    "jacfwd of both": _jacobian(jax.jacfwd, (0, 1)),
    "jacrev": _jacobian(jax.jacrev, 1),
    "jacrev of both": _jacobian(jax.jacrev, (0, 1)),
    "hessian": lambda x: jax.hessian(lambda v: jnp.sin(v * v).sum())(x[0]),
    "resize": lambda x: jax.image.resize(x, (2 * x.shape[0], 7), "linear"),
    "resize, nearest": lambda x: jax.image.resize(x, (2 * x.shape[0] + 1, 7), "nearest"),
    "resize, antialiased": lambda x: jax.image.resize(x, (2, x.shape[1]), "cubic"),
    "resize, area": lambda x: jax.image.resize(x, (2 * x.shape[0], 3), "area"),
    "fftfreq": lambda x: (jnp.fft.fftfreq(x.shape[0]), jnp.fft.rfftfreq(x.shape[0], 0.5)),
    "fftshift": lambda x: (jnp.fft.fftshift(x), jnp.fft.ifftshift(x, 0)),
    "gamma": lambda x: jax.random.gamma(KEY, 2.0, x.shape),
    "beta": lambda x: jax.random.beta(KEY, 2.0, 3.0, x.shape),
    "dirichlet": lambda x: jax.random.dirichlet(KEY, jnp.ones(3), x.shape),
    "pad by a dimension": lambda x: jnp.pad(x, ((0, x.shape[0]), (1, 2))),
    "edges": lambda x: jnp.pad(x, (x.shape[0], 1), mode="edge"),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.argsort(x, 0), 0),
    "take_along_axis by one row": lambda x: jnp.take_along_axis(x, jnp.array([[0]]), 1),
    "det": lambda x: jnp.linalg.det(_grams(x)),
    "causal attention": lambda x: nn.dot_product_attention(
        *[x[None, :, None]] * 3, is_causal=True),
    "attention in a window": lambda x: nn.dot_product_attention(
        *[x[None, :, None]] * 3, local_window_size=1),
    "convolutions with kernels of their own": jax.vmap(lambda x: jnp.convolve(x, x[:3], "same")),
    "convolutions of images": lambda x: jax.vmap(lambda x, k: lax.conv(
        x[None], k, (1, 1), "SAME")[0])(x[:, None, :, None] + jnp.ones((2, 1, 2)),
                                        x[:, None, None, :2, None] + jnp.ones((3, 2, 1, 1))),
    "slopes of examples": lambda x: jax.vmap(jax.grad(lambda k, x: (lax.conv(
        x[None], k, (1,), "SAME") ** 2).sum()), (None, 0))(jnp.ones((3, 1, 2)), x[:, None]),
    "pad within by a dimension": lambda x: lax.pad(x, 0.0, ((0, 0, 0), (0, 0, x.shape[0]))),
    "a slice by steps of a dimension": lambda x: lax.slice(
        jnp.arange(9.0), (1,), (9,), (x.shape[0],)),
    "approx_max_k": lambda x: lax.approx_max_k(x, x.shape[1]),
    "partition": lambda x: jnp.sort(jnp.partition(x, 1, axis=0)[2:], 0),
    "top_k of all": lambda x: lax.top_k(jnp.round(x).astype(int), x.shape[1]),
    "unravel_index": lambda x: jnp.unravel_index(jnp.array([2, -1, 99]), x.shape),
    "tril_indices": lambda x: (jnp.tril_indices(x.shape[0]), jnp.tril_indices(x.shape[1], 1),
                               jnp.tril_indices(x.shape[0], -1, x.shape[1])),
    "triu_indices": lambda x: (jnp.triu_indices(x.shape[0]), jnp.triu_indices(x.shape[0], 2),
                               jnp.triu_indices(x.shape[0], -2, x.shape[1])),
    "polyadd": lambda x: jnp.polyadd(jnp.ones(2), x[0]),
    "toeplitz": lambda x: jax.scipy.linalg.toeplitz(x[0], x[:, 0]),
    "hankel": lambda x: jax.scipy.linalg.hankel(x[0], x[:, 0]),
    "circulant": lambda x: jax.scipy.linalg.circulant(x[0]),
    "shorter or longer": lambda x: (jnp.resize(x, (3, 5)), jnp.resize(x, (x.shape[0], 2))),
    "conjugate gradients": lambda x: jax.scipy.sparse.linalg.cg(lambda v: 2 * v, x)[0],
    "elements that may be beyond the end": lambda x: (x[4], x[:, 3], x[-5], x[4, -1], x[2:, 2]),
    "convolution": lambda x: lax.conv(x[None, None], jnp.ones((1, 1, 2, 3)), (1, 2), "VALID"),
    "isin": lambda x: jnp.isin(jnp.round(x, 1), jnp.round(x[0], 1)),
    "product of three": lambda x: jnp.einsum("ab,bc,cd->ad", x, x.T, x),
    "place in a mapped axis": lambda x: jax.vmap(
        lambda v: v * lax.axis_index("i") / lax.axis_size("i"), axis_name="i")(x),
    "transforms along known axes": lambda x: jnp.fft.rfft2(jnp.stack([x[:, :2]] * 4), axes=(0, 2)),
    "windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 2), "VALID"),
    "sizes of results": lambda x: (
        jnp.repeat(x[0], 2, total_repeat_length=2 * x.shape[1]),
        jnp.bincount(jnp.array([1, 2, 2]), length=x.shape[0])),
    "places from the end": lambda x: (
        lax.dynamic_index_in_dim(x, -1), lax.dynamic_index_in_dim(x, np.int8(-2), 1, False),
        lax.dynamic_update_index_in_dim(x, x[0], -1, 0), jnp.delete(
            x[:, 0], jnp.array([1, -1]), assume_unique_indices=True)),
    "unique": lambda x: jnp.unique(jnp.round(x), size=4, fill_value=-1),
    "searchsorted": lambda x: (jnp.searchsorted(jnp.sort(x[0]), x),
                               jnp.searchsorted(jnp.sort(x[:, 0]), x, side="right")),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_symbolic_sizes_give_what_known_ones_give(name):
    fun = jax.jit(OPERATIONS[name])
    dims = export.symbolic_shape("m + 2, n + 2")
    e = export.export(fun)(jax.ShapeDtypeStruct(dims, np.float32))
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    wanted, tree = jax.tree.flatten(fun(x))
    got, got_tree = jax.tree.flatten(e.call(x))
    assert got_tree == tree
    for a, b in zip(got, wanted, strict=True):
        assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


# Each is another program for CPUs than for other platforms.
CUMULATIVE = {
    "cumsum": jnp.cumsum, "cumprod": jnp.cumprod, "cummax": lax.cummax,
    "cumlogsumexp": lax.cumlogsumexp,
    "cummin, reverse": lambda x: lax.cummin(x, reverse=True),
    "of a matrix": lambda x: jnp.cumsum(x[:, None] * x, 1),
    "narrow": lambda x: lax.cumsum(x.astype("int4")).astype(int),
    "slopes of a sum": jax.grad(lambda x: (jnp.cumsum(x) ** 2).sum()),
    "slopes of a product": jax.grad(lambda x: (jnp.cumprod(x) ** 2).sum()),
    "unique": lambda x: jnp.unique(x, size=3),
    "nonzero": lambda x: jnp.nonzero(x > 0.5, size=2),
}


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_operations_of_other_platforms(name, platform):
    fun = jax.jit(CUMULATIVE[name])
    x = jax.ShapeDtypeStruct(export.symbolic_shape("m"), np.float32)
    e = export.export(fun, platforms=[platform],
                      disabled_checks=[export.DisabledSafetyCheck.platform()])(x)
    for size in (1, 2, 13):
        x = np.random.default_rng(0).uniform(0.1, 1.2, size).astype(np.float32)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), e.call(x), fun(x))


@pytest.mark.parametrize("name", ["polar", "qdwh"])
def test_polar_factors_of_symbolic_matrices(name):
    fun = jax.jit({"polar": jax.scipy.linalg.polar, "qdwh": lambda x: (
        *lax.linalg.qdwh(x)[:2], lax.linalg.qdwh(x)[3])}[name])
    x = jax.ShapeDtypeStruct(export.symbolic_shape("n, n"), np.float32)
    e = export.export(fun)(x)
    for size in (1, 6):
        x = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
        for a, b in zip(e.call(x), fun(x), strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5)


MATRICES = {
    "svd": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "svd with vectors": lambda x: (lambda u, s, v: u * s @ v)(*jnp.linalg.svd(x)),
    "eigh": lambda x: jnp.linalg.eigvalsh(x), "qr": lambda x: jnp.abs(jnp.linalg.qr(x)[1]),
    "pinv": jnp.linalg.pinv, "inv": jnp.linalg.inv,
}


def _exported_for(platform, name):
    x = jax.ShapeDtypeStruct(export.symbolic_shape("n, n"), np.float32)
    return export.export(jax.jit(MATRICES[name]), platforms=[platform],
                         disabled_checks=[export.DisabledSafetyCheck.platform()])(x)


@pytest.mark.parametrize("name", [name for name in MATRICES if name != "inv"])
def test_symbolic_matrices_of_tpus(name):
    """XLA has what TPUs call here, too."""
    e = _exported_for("tpu", name)
    for size in (1, 6):
        x = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
        x = x + x.T + 3 * np.eye(size, dtype=np.float32)
        np.testing.assert_allclose(e.call(x), MATRICES[name](x), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(("platform", "name"), [
    ("tpu", "inv"), *[("cuda", name) for name in MATRICES]])
def test_calls_for_symbolic_matrices_are_told_their_shapes(platform, name):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"No .*registered"):  # by this machine
        _exported_for(platform, name).call(np.eye(3, dtype=np.float32))


@pytest.mark.parametrize("value", [
    np.float32(2), np.complex64(2j), np.array(2, dtypes.bfloat16)[()], np.int32(3), np.True_,
    np.ones(3, np.float32), np.arange(1, 4), 2.5, 2], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_dimensions_meet_values_of_numpy(op, value):
    def fun(x):
        return jnp.asarray(op(value, x.shape[0])), jnp.asarray(op(x.shape[0], value))

    x = np.ones(4, np.float32)
    e = export.export(jax.jit(fun))(jax.ShapeDtypeStruct(export.symbolic_shape("n"), x.dtype))
    for got, wanted in zip(e.call(x), jax.jit(fun)(x), strict=True):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        np.testing.assert_allclose(np.asarray(got, complex), np.asarray(wanted, complex), rtol=1e-6)


PARTS = {
    "inner": lambda x: x[1:-1],
    "first half": lambda x: x[:x.shape[0] // 2],
    "every other": lambda x: x[1::2],
    "backwards": lambda x: x[::-2],
    "rolled": lambda x: jnp.roll(x, 2),
    "differences": jnp.diff,
    "added": lambda x: x.at[:-1].add(x[1:]),
    "sums of two": lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (2,), "VALID"),
    "integral": jnp.trapezoid,
}


@pytest.mark.parametrize("name", PARTS)
def test_slopes_of_parts_that_may_be_empty(name):
    fun = jax.jit(jax.grad(lambda x: jnp.square(PARTS[name](x)).sum()))
    e = export.export(fun)(jax.ShapeDtypeStruct(export.symbolic_shape("n"), np.float32))
    for n in 7, 2:
        x = np.linspace(1, 2, n, dtype=np.float32)
        np.testing.assert_allclose(e.call(x), fun(x), rtol=1e-6)


@pytest.mark.parametrize("reshape", [jnp.reshape, lambda x, shape: x.reshape(shape),
                                     lambda x, shape: jnp.asarray(x).reshape(*shape)])
def test_sizes_that_may_not_divide(reshape):
    x = jax.ShapeDtypeStruct(export.symbolic_shape("n"), np.float32)
    with pytest.raises(InconclusiveDimensionOperation, match=r'remainder mod\(n, 3\) should be 0.* '
                                                             r'"mod\(n, 3\) == 0"'):
        export.export(jax.jit(lambda x: reshape(x, (3, -1))))(x)
    known = jax.ShapeDtypeStruct(
        export.symbolic_shape("n", constraints=["mod(n, 3) == 0"]), np.float32)
    e = export.export(jax.jit(lambda x: reshape(x, (3, -1))))(known)
    assert e.call(np.ones(6, np.float32)).shape == (3, 2)


def test_a_second_derivative_in_64_bits():
    with jax.enable_x64(True):
        x = jax.ShapeDtypeStruct(export.symbolic_shape("n"), np.float64)
        e = export.export(jax.jit(jax.hessian(lambda x: (x ** 3).sum())))(x)
        assert e.call(np.arange(3.0)).tolist() == np.diag([0.0, 6.0, 12.0]).tolist()


def test_what_needs_a_known_size_names_it():
    x = jax.ShapeDtypeStruct(export.symbolic_shape("n"), np.float32)
    with pytest.raises(NotImplementedError, match="fft along an axis of symbolic size n"):
        export.export(jax.jit(jnp.fft.fft))(x)
    for name, key, fun in (
        ("conv_general_dilated", "feature_group_count", lambda x: lax.conv_general_dilated(
            x[None, :, None], x[:, None, None], (1,), "SAME", feature_group_count=x.shape[0])),
        ("conv_general_dilated", "batch_group_count", lambda x: lax.conv_general_dilated(
            x[:, None, None], x[:, None, None], (1,), "SAME", batch_group_count=x.shape[0])),
        ("conv_general_dilated", "rhs_dilation", lambda x: lax.conv_general_dilated(
            x[None, None], jnp.ones((1, 1, 2)), (1,), "SAME", rhs_dilation=x.shape)),
        ("reduce_window_sum", "window_dimensions", lambda x: lax.reduce_window(
            x, 0.0, lax.add, x.shape, (1,), "VALID")),
        ("rng_bit_generator", "shape", lambda x: lax.rng_bit_generator(
            jnp.zeros(4, np.uint32), x.shape)),
    ):
        with pytest.raises(NotImplementedError, match=f"{key} of {name} must be numbers for "
                                                      "StableHLO; it holds the symbolic size n. "):
            export.export(jax.jit(fun))(x)
    with pytest.raises(InconclusiveDimensionOperation, match="'n' <= '1' is inconclusive"):
        export.export(jax.jit(lambda x: jax.random.permutation(KEY, x.shape[0])))(x)
    shape = export.symbolic_shape("n", constraints=["n >= 2", "n <= 1000"])
    order = jax.jit(lambda x: jax.random.permutation(KEY, x.shape[0]))
    exported = export.export(order)(jax.ShapeDtypeStruct(shape, np.float32))
    np.testing.assert_array_equal(exported.call(np.ones(7, "f")), order(np.ones(7, "f")))
