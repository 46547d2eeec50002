"""Shardings in types: what each operation makes of them, and that results lie as types say."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.errors import ShardingTypeError
from pyjx.sharding import AbstractMesh, AxisType, NamedSharding
from pyjx.sharding import PartitionSpec as P

MESH = "AbstractMesh('x': 4, 'y': 2, axis_types=(Explicit, Explicit), device_kind=cpu, " \
       "num_cores=None, platform=cpu)"


@pytest.fixture(autouse=True)
def explicit():
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    with jax.set_mesh(mesh):
        yield mesh


def make(shape, *spec, dtype="float32"):
    values = np.random.RandomState(0).uniform(0.5, 1.5, shape).astype(dtype)
    return jax.device_put(values, P(*spec))


def host(x):
    return jnp.asarray(np.asarray(x))


def check(f, *args, type):
    """The type of `f(*args)`, its value, and that it lies as its type says; eager and compiled."""
    want = f(*map(host, args))
    for call in (f, jax.jit(f)):
        got = call(*args)
        assert str(jax.typeof(got)) == type, (str(jax.typeof(got)), type)
        assert got.sharding.is_equivalent_to(
            NamedSharding(jax.sharding.get_mesh(), jax.typeof(got).sharding.spec), got.ndim)
        np.testing.assert_allclose(np.asarray(got, "float64"), np.asarray(want, "float64"),
                                   rtol=2e-5, atol=1e-6)
    assert str(jax.jit(f).trace(*args).jaxpr.out_avals[0]) == type


def test_types_of_arrays(explicit):
    x = make((8, 16), "x", "y")
    assert str(jax.typeof(x)) == "float32[8@x,16@y]"
    assert repr(jax.typeof(x).sharding) == f"NamedSharding(mesh={MESH}, spec=P('x', 'y'))"
    assert str(jax.typeof(make((8, 16), ("x", "y")))) == "float32[8@(x,y),16]"
    assert jax.typeof(jnp.ones(3)).sharding == NamedSharding(explicit.abstract_mesh, P(None))
    assert jax.typeof(x).str_short(True, True) == "f32[8@x,16@y]({Explicit: ('x', 'y')})"
    mixed = explicit.update(axis_types=(AxisType.Auto, AxisType.Explicit))
    with jax.set_mesh(mixed):
        x = make((8, 16), "x", "y")
        assert str(jax.typeof(x)) == "float32[8,16@y]" and x.sharding.spec == P("x", "y")
        assert str(jax.typeof(x.T + 1)) == "float32[16@y,8]"
        assert (x.T + 1).sharding.is_equivalent_to(NamedSharding(mixed, P("y", "x")), 2)


def test_printed_programs():
    x = make((8, 16), "x", "y")
    assert str(jax.jit(lambda x: jnp.sin(x) + x.sum(0)).trace(x).jaxpr) == """\
{ lambda ; a:f32[8@x,16@y]. let
    b:f32[8@x,16@y] = sin a
    c:f32[16@y] = reduce_sum[axes=(0,) out_sharding=None] a
    d:f32[8,16@y] = broadcast_in_dim[broadcast_dimensions=(1,)] c
    e:f32[8@x,16@y] = add b d
  in (e,) }"""
    text = jax.jit(jnp.sin).lower(x).as_text()
    assert 'sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]>' in text


OPS = {
    "elementwise": (lambda x: jnp.sin(x) * 2 + jnp.where(x > 1, x, 0), "8@x,16@y"),
    "transpose": (lambda x: x.T, "16@y,8@x"),
    "sum": (lambda x: x.sum(0), "16@y"),
    "max": (lambda x: x.max(1), "8@x"),
    "mean": (lambda x: x.mean(), ""),
    "prod": (lambda x: x.prod(0), "16@y"),
    "var": (lambda x: x.var(1), "8@x"),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, 1), "8@x"),
    "softmax": (jax.nn.softmax, "8@x,16@y"),
    "reduce": (lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b, (0,)), "16@y"),
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (3, 8, 16), (1, 2)), "3,8@x,16@y"),
    "broadcast_to": (lambda x: jnp.broadcast_to(x[:, None], (8, 3, 16)), "8@x,3,16@y"),
    "expand_dims": (lambda x: x[:, None], "8@x,1,16@y"),
    "squeeze": (lambda x: x[:, None].squeeze(1), "8@x,16@y"),
    "ravel": (lambda x: x.ravel(), "128@(x,y)"),
    "split an axis": (lambda x: x.reshape(8, 4, 4), "8@x,4@y,4"),
    "singleton": (lambda x: x.reshape(8, 1, 16), "8@x,1,16@y"),
    "reshape": (lambda x: lax.reshape(x, (4, 32), out_sharding=P("y")), "4@y,32"),
    "reshape by columns": (lambda x: x.reshape((32, 4), order="F", out_sharding=P("y")), "32@y,4"),
    "concatenate": (lambda x: jnp.concatenate([x, x], 1), "8@x,32@y"),
    "stack": (lambda x: jnp.stack([x, x]), "2,8@x,16@y"),
    "pad": (lambda x: lax.pad(x, np.float32(0), ((4, 0, 0), (1, 1, 0))), "12@x,18@y"),
    "slice": (lambda x: x[:4, 2:], "4@x,14@y"),
    "stride": (lambda x: x[::2], "4@x,16@y"),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (1, 3), (4, 8)), "4@x,8@y"),
    "dynamic_update_slice": (lambda x: lax.dynamic_update_slice(x, 2 * x[:4], (1, 0)), "8@x,16@y"),
    "split": (lambda x: jnp.split(x, 2)[1], "4@x,16@y"),
    "rev": (lambda x: x[::-1], "8@x,16@y"),
    "tile": (lambda x: jnp.tile(jax.reshard(x, P("x")), (1, 2)), "8@x,32"),
    "select": (lambda x: lax.select(x > 1, x, 2 * x), "8@x,16@y"),
    "clamp": (lambda x: jnp.clip(x, 0.8, 1.2), "8@x,16@y"),
    "convert": (lambda x: (x * 4).astype("int32").astype("float32"), "8@x,16@y"),
    "tril": (jnp.tril, "8@x,16@y"),
    "nan_to_num": (jnp.nan_to_num, "8@x,16@y"),
    "barrier": (lax.optimization_barrier, "8@x,16@y"),
    "reduce_window": (lambda x: lax.reduce_window(x, np.float32(0), lax.add, (1, 2), (1, 2),
                                                  "VALID"), "8@x,8@y"),
    "largest of windows": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2),
                                                       "VALID"), "8@x,8@y"),
    "smallest of windows": (lambda x: lax.reduce_window(jax.reshard(x, P("x")), np.inf, lax.min,
                                                        (1, 3), (1, 1), "SAME"), "8@x,16"),
    "windows of one's own": (lambda x: lax.reduce_window(
        x, np.float32(1), lambda a, b: a * b + 1, (1, 2), (1, 2), "VALID"), "8@x,8@y"),
    "one window": (lambda x: lax.reduce_window(x, np.float32(0), lax.add, (8, 16), (1, 1),
                                               "VALID"), "1,1"),
    "element": (lambda x: lax.slice(x, (3, 5), (4, 6)), "1,1"),
    "element at a traced place": (lambda x: x[jnp.argmax(x.sum(1)), 5], ""),
    "element at a clipped place": (
        lambda x: x.at[3, jnp.argmax(x.sum(0))].get(mode="clip"), ""),
    "take_along_axis": (lambda x: jnp.take_along_axis(jax.reshard(x, P("x")), jnp.argsort(
        jax.reshard(x, P("x")), 1), 1), "8@x,16"),
    "take_along_axis by whole indices": (lambda x: jnp.take_along_axis(
        jax.reshard(x, P("x")), np.full((8, 2), 3), 1), "8@x,2"),
    "take_along_axis of whole rows": (lambda x: jnp.take_along_axis(
        jax.reshard(x, P()), jax.reshard((x[:, :2] > 1).astype(int), P("x")), 1), "8@x,2"),
    "take_along_axis by one row": (lambda x: jnp.take_along_axis(
        jax.reshard(x, P(None, "y")), np.array([[2], [1]]), 0), "2,16@y"),
    "searchsorted": (lambda x: jnp.searchsorted(
        jnp.arange(8.) + 0 * x.sum(1), 2.5).astype("float32"), ""),
    "searchsorted for cut values": (lambda x: jnp.searchsorted(
        jnp.arange(8.), x, method="compare_all").astype("float32"), "8@x,16@y"),
    "imag": (lambda x: jnp.imag(x) + jnp.isreal(x) * x, "8@x,16@y"),
    "rows of an array": (lambda x: jnp.concatenate(jax.reshard(x, P("x"))), "128@x"),
    "rows as columns": (lambda x: jnp.column_stack(jax.reshard(x, P("x"))), "16,8@x"),
    "rows one above the other": (lambda x: jnp.vstack(x), "8@x,16@y"),
    "numbers side by side": (lambda x: jnp.hstack(x.sum(1)), "8@x"),
    "one matrix and vectors": (lambda x: jnp.matvec(
        np.arange(48., dtype=np.float32).reshape(3, 16), jax.reshard(x, P("x"))), "8@x,3"),
    "one vector and matrices": (lambda x: jnp.vecmat(
        np.ones(4, np.float32), jax.reshard(x, P("x")).reshape(8, 4, 4)), "8@x,4"),
    "diag": (lambda x: jnp.diag(x.sum(1), 4), "12@x,12"),
    "vander": (lambda x: jnp.vander(x.sum(1), 3), "8@x,3"),
    "cumsum": (lambda x: jnp.cumsum(jax.reshard(x, P("x", None)), 1), "8@x,16"),
    "sort": (lambda x: jnp.sort(jax.reshard(x, P("x", None)), 1), "8@x,16"),
    "argsort": (lambda x: jnp.argsort(jax.reshard(x, P("x", None)), 1).astype("float32"),
                "8@x,16"),
    "argmax": (lambda x: jnp.argmax(x, 0).astype("float32"), "16@y"),
    "top_k": (lambda x: lax.top_k(jax.reshard(x, P("x", None)), 2)[0], "8@x,2"),
    "take": (lambda x: jnp.take(jax.reshard(x, P("x", None)), jnp.array([3, 1, 0]), axis=1),
             "8@x,3"),
    "get": (lambda x: x.at[jnp.array([3, 1, 0, 5])].get(out_sharding=P("x", None)), "4@x,16"),
    "set": (lambda x: x.at[jnp.array([3, 1])].add(1., out_sharding=P("y", None)), "8@y,16"),
    "column": (lambda x: jax.reshard(x, P("x", None)).at[:, 0].add(1.), "8@x,16"),
    "zeros_like": (jnp.zeros_like, "8@x,16@y"),
    "full_like": (lambda x: jnp.full_like(x, 3), "8@x,16@y"),
    "reshard": (lambda x: jax.reshard(x, P(None, ("x", "y"))), "8,16@(x,y)"),
    "device_put": (lambda x: jax.device_put(x, P("y")), "8@y,16"),
    "einsum": (lambda x: jnp.einsum("ij,kj->ik", x, x, out_sharding=P("x", "y")), "8@x,8@y"),
    "matmul": (lambda x: jnp.matmul(x, x.T, out_sharding=P("x", None)), "8@x,8"),
    "outer": (lambda x: jnp.outer(x.sum(1), x.sum(0)), "8@x,16@y"),
    "auto_axes": (jax.sharding.auto_axes(lambda x: x @ x.T, out_sharding=P("x")), "8@x,8"),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(jax.reshard(x, P("x", None)))), "8@x,16"),
}


@pytest.mark.parametrize("name", OPS)
def test_operations(name):
    f, dims = OPS[name]
    check(f, make((8, 16), "x", "y"), type=f"float32[{dims}]")


def test_products():
    a, b = make((8, 16), "x", None), make((16, 8), None, "y")
    check(lambda a, b: a @ b, a, b, type="float32[8@x,8@y]")
    check(lambda a, b: a @ b, make((8, 16), "x", "y"), make((16, 8)), type="float32[8@x,8]")
    check(lambda a, b: jnp.einsum("bij,bjk->bik", a, b), make((8, 4, 4), "x", "y"),
          make((8, 4, 4), "x"), type="float32[8@x,4@y,4]")
    for f in (jnp.dot, lambda a, b, **kw: jnp.tensordot(a, b, 1, **kw)):
        check(lambda a, b, f=f: f(a, b, out_sharding=P("y", None)), make((8, 16), None, "x"),
              make((16, 8), "x"), type="float32[8@y,8]")


def test_unreduced():
    def product(a, b):
        return jnp.matmul(a, b, out_sharding=P("x", None, unreduced={"y"}))

    a, b = make((8, 16), "x", "y"), make((16, 8), "y", None)
    types = jax.jit(lambda a, b: (product(a, b) + product(a, b), -product(a, b).T)).trace(a, b)
    assert [str(t) for t in types.jaxpr.out_avals] == ["float32[8@x,8]{U:y}", "float32[8,8@x]{U:y}"]
    for total in (f := lambda a, b: jax.reshard(product(a, b) + product(a, b), P("x")), jax.jit(f)):
        assert str(jax.typeof(total(a, b))) == "float32[8@x,8]"
        np.testing.assert_allclose(total(a, b), 2 * np.asarray(a) @ np.asarray(b), rtol=1e-5)
    with pytest.raises(ShardingTypeError, match="unreduced axes should be equal to the"):
        product(make((8, 16), "x"), make((16, 8)))
    with pytest.raises(ShardingTypeError, match="rhs is unreduced while lhs is not"):
        jax.jit(lambda a, b: 1 + product(a, b))(a, b)
    for f, message in ((jnp.sin, "cannot accept input that is unreduced"),
                       (lambda x: x * x, "since mul is bilinear"),
                       (lambda x: x @ x, "since dot_general is bilinear")):
        with pytest.raises(ShardingTypeError, match=message):
            jax.jit(lambda a, b, f=f: f(product(a, b)))(a, b)


def test_convolution():
    x, k = make((8, 4, 16, 16), "x"), make((6, 4, 3, 3))
    check(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), x, k, type="float32[8@x,6,16,16]")
    with pytest.raises(ShardingTypeError, match="Please specify the output sharding via `out_"):
        lax.conv(make((8, 4, 16, 16), None, "x"), k, (1, 1), "SAME")


def test_linear_algebra_along_batches():
    x = make((8, 4, 4), "x")
    check(lambda x: jnp.linalg.eigh(x @ x.mT + 3 * jnp.eye(4))[0], x, type="float32[8@x,4]")
    check(lambda x: jnp.linalg.svd(x)[1], x, type="float32[8@x,4]")
    with pytest.raises(ShardingTypeError, match="should be unsharded over its last 2 axes"):
        lax.linalg.cholesky(make((8, 8), "x"), symmetrize_input=False)


def test_creation():
    for f in (lambda **kw: jnp.zeros((8, 4), **kw), lambda **kw: jnp.ones((8, 4), **kw),
              lambda **kw: jnp.full((8, 4), 3., **kw), lambda **kw: jnp.empty((8, 4), **kw),
              lambda **kw: lax.broadcasted_iota("float32", (8, 4), 0, **kw),
              lambda **kw: jax.random.normal(jax.random.key(0), (8, 4), **kw),
              lambda **kw: jax.random.uniform(jax.random.key(0), (8, 4), **kw)):
        for call in (f, lambda f=f, **kw: jax.jit(lambda: f(**kw))()):
            x = call(out_sharding=P("x"))
            assert str(jax.typeof(x)).lstrip("~") == "float32[8@x,4]"
            assert x.sharding.is_equivalent_to(NamedSharding(jax.sharding.get_mesh(), P("x")), 2)
            np.testing.assert_array_equal(x, f())
    assert str(jax.typeof(jnp.arange(8, out_sharding=P("x")))) == "int32[8@x]"
    with pytest.raises(ValueError, match=r"Sharding spec \('x',\) implies that array axis 0 is "
                       "partitioned 4 times, but does not evenly divide the dimension size 6"):
        jax.jit(lambda: jnp.zeros(6, out_sharding=P("x")))()
    with pytest.raises(ValueError, match=r"Length of sharding.spec \(2\) must be equal to aval's "):
        jax.jit(lambda: jnp.zeros(8, out_sharding=P("x", "y")))()


@pytest.mark.parametrize(("f", "args", "message"), [
    (jnp.add, [("x", "y"), ("y", "x")],
     r"add got incompatible shardings for broadcasting: \('x', 'y'\), \('y', 'x'\)."),
    (lambda a, b: jnp.where(a > 0, a, b), [("x", None), ("y", None)],
     "select cases must have the same shardings, got "),
    (lambda a, b: a @ b.T, [("x", "y"), ("x", "y")],
     "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. "
     "Please specify the output sharding via the `out_sharding` parameter. Got "
     r"lhs_contracting_spec=\('y',\) and rhs_contracting_spec=\('y',\)"),
    (lambda a, b: a @ b.T, [("x", None), ("x", None)],
     r"dot_general operation with inputs: f32\[8@x,16\], f32\[16,8@x\] produces an illegally "
     r"sharded result: f32\[8@x,8@x\]"),
    (lambda a: a.ravel(), [(None, "x")],
     "This reshape is not supported. Please specify the sharding of the output via the "
     r"`out_sharding` argument of jax.lax.reshape. Got operand type: float32\[8,16@x\], new sizes"),
    (lambda a, b: lax.concatenate([a, b], 1), [("x", None), ("y", None)],
     "All operands should have the same sharding. Got shardings"),
    (lambda a: a[1:], [("x", None)],
     r"slicing on sharded dims where out dim \(7\) is not divisible by mesh axes \(4\) with spec "
     r"\(x\) is not implemented. Got input type=f32\[8@x,16\] and output shape=\(7, 16\)"),
    (lambda a: jnp.pad(a, 1), [("x", None)], "padding on sharded dims where out dim"),
    (lambda a: jnp.cumsum(a, 0), [("x", None)],
     "Input should be unsharded over the axis being reduced. Got input type=float32.* and axis=0"),
    (lambda a: jnp.sort(a, 0), [("x", None)],
     "Arguments to sort must be unsharded over the sorting dimension"),
    (lambda a: a[jnp.array([1, 2])], [("x", None)], r"Use `.at\[...\].get\(out_sharding=\)` to "),
    (lambda a: a.at[jnp.array([1, 2])].set(1.), [("x", None)],
     r"Use `.at\[...\].set/add/mul/...\(out_sharding=\)` to provide output PartitionSpec"),
])
def test_errors(f, args, message):
    with pytest.raises(ShardingTypeError, match=message):
        f(*[make((8, 16), *spec) for spec in args])


@pytest.mark.parametrize("find", [
    lambda x: jnp.nonzero(x, size=2), lambda x: jnp.flatnonzero(x, size=2),
    lambda x: jnp.argwhere(x, size=2), lambda x: jnp.where(x > 1, size=2)])
def test_places_of_nonzeros_of_cut_arrays(find):
    with pytest.raises(ValueError, match=r"Cannot apply nonzero over sharded axes \(0,\): got "):
        find(make((8,), "x"))


def test_constraints_are_asserted():
    x = make((8, 16), "x")
    assert lax.with_sharding_constraint(x, P("x")) is x
    elsewhere = jax.device_put(np.ones(8), jax.devices()[0])
    assert lax.with_sharding_constraint(elsewhere, P()) is elsewhere
    with pytest.raises(AssertionError, match="acts as an assert"):
        lax.with_sharding_constraint(elsewhere, P("x"))
    with pytest.raises(AssertionError, match="acts as an assert when all axes of mesh are of type"):
        jax.jit(lambda x: lax.with_sharding_constraint(x, P("y")))(x)
    for sums in (P("x", unreduced={"y"}), P("x", reduced={"y"})):
        for wrap in (lambda f: f, jax.jit):
            with pytest.raises(AssertionError, match=r"not match the sharding provided: P.*red"):
                wrap(lambda x, sums=sums: lax.with_sharding_constraint(x, sums))(x)
    y = jax.reshard(x, P("x", unreduced={"y"}))
    assert lax.with_sharding_constraint(y, P("x", unreduced={"y"})) is y


def test_sums_are_not_opened_in_a_map_over_some_axes():
    inner = jax.shard_map(
        lambda x: jax.reshard(jax.reshard(x, P(None, None, unreduced={"y"})), P(None, None)),
        in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    with pytest.raises(NotImplementedError, match=r"reshard: an open sum .* inside a shard_map"):
        jax.jit(inner)(make((8, 16), "x"))


@pytest.mark.parametrize("name", sorted(set(OPS) - {
    "reduce", "reduce_window",  # whose derivatives cut and extend what they read
    "argmax", "argsort", "searchsorted", "zeros_like", "full_like", "convert"}))
def test_gradients_lie_as_primals(name):
    f, _ = OPS[name]
    x = make((8, 16), "x", "y")
    check(jax.grad(lambda x: (f(x) * 2).sum()), x, type="float32[8@x,16@y]")


def test_cotangents_have_the_types_of_results():
    _, pull = jax.vjp(lambda x: x * 2, make((8, 16), "x", "y"))
    with pytest.raises(ValueError, match=r"got float32\[8@y,16\], but expected float32"):
        pull(make((8, 16), "y"))


def test_gradients_of_products():
    def loss(a, b):
        return jnp.tanh(a @ b).sum()

    # a quarter: products of about 1, where tanh still has a slope that rounding does not decide
    a, b = make((8, 16), "x", None) / 4, make((16, 8), None, "y") / 4
    for i, dims in enumerate(("8@x,16", "16,8@y")):
        check(jax.grad(loss, i), a, b, type=f"float32[{dims}]")


def test_loops_and_branches():
    c, xs = make((16,), "x"), make((8, 16), None, "x")
    check(lambda c, xs: lax.scan(lambda c, x: (c * 2, c + x), c, xs)[0], c, xs,
          type="float32[16@x]")
    check(lambda c, xs: lax.scan(lambda c, x: (c * 2, c + x), c, xs)[1], c, xs,
          type="float32[8,16@x]")
    check(lambda c: lax.fori_loop(0, 3, lambda i, c: c * 2, c), c, type="float32[16@x]")
    check(lambda c: lax.while_loop(lambda c: c.sum() < 99, lambda c: c * 2, c), c,
          type="float32[16@x]")
    check(lambda c: lax.cond(c[0:4].sum() > 0, lambda c: c * 2, lambda c: c + 1, c), c,
          type="float32[16@x]")
    check(jax.grad(lambda c, xs: lax.scan(lambda c, x: (jnp.sin(c) * x, c), c, xs)[1].sum(), 1),
          c, xs, type="float32[8,16@x]")
    check(jax.grad(lambda c: jax.checkpoint(lambda c: jnp.sin(jnp.sin(c)))(c).sum()), c,
          type="float32[16@x]")
    with pytest.raises(ValueError, match=r"0th dimension of all xs should be replicated\. Got P"):
        lax.scan(lambda c, x: (c, x), 0., c)
    with pytest.raises(TypeError, match=r"type float32\[16@x\] but .* has type float32\[16\]"):
        lax.scan(lambda c, _: (jax.reshard(c, P()), None), c, length=3)
    with pytest.raises(TypeError, match="cond branches must have equal output types"):
        lax.cond(True, lambda c: c * 2, lambda c: jax.reshard(c, P("y")), c)


def test_keys():
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), P("x"))
    assert str(jax.typeof(keys)) == "key<fry>[8@x]"
    for f in (jax.vmap(jax.random.normal), jax.jit(jax.vmap(jax.random.normal))):
        draws = f(keys)
        assert str(jax.typeof(draws)) == "float32[8@x]"
        np.testing.assert_array_equal(draws, jax.vmap(jax.random.normal)(
            jax.random.split(jax.random.key(0), 8)))
    more = jax.jit(lambda k: jax.vmap(jax.random.split)(k))(keys)
    assert str(jax.typeof(more)) == "key<fry>[8@x,2]"
    assert more.sharding.is_equivalent_to(NamedSharding(jax.sharding.get_mesh(), P("x")), 3)
    assert str(jax.typeof(jax.random.key_data(keys))) == "uint32[8@x,2]"


def test_vmap():
    x = make((8, 16), "x", "y")
    seen = []
    check(jax.vmap(lambda r: (seen.append(str(jax.typeof(r))), jnp.sin(r) + r.sum())[1]), x,
          type="float32[8@x,16@y]")
    assert "float32[16@y]" in seen
    check(jax.vmap(jnp.sin, in_axes=1), x, type="float32[16@y,8@x]")
    check(jax.vmap(lambda a, b: a @ b, in_axes=(0, None)), make((8, 16), "x"), make((16, 4)),
          type="float32[8@x,4]")
    check(jax.vmap(lambda r: jax.reshard(r, P("y"))), make((8, 16), "x"), type="float32[8@x,16@y]")
    check(jax.vmap(lambda r: jnp.broadcast_to(r[:, None], (16, 4), out_sharding=P("y"))),
          make((8, 16), "x"), type="float32[8@x,16@y,4]")
    check(jax.vmap(lambda r: jnp.reshape(r, (4, 4), out_sharding=P(None, "y"))),
          make((8, 16), "x"), type="float32[8@x,4,4@y]")
    check(jax.vmap(lambda r, w: jnp.dot(r, w, out_sharding=P("y")), (0, None)),
          make((8, 16), "x"), make((16, 4), "y"), type="float32[8@x,4@y]")
    check(jax.vmap(jax.grad(lambda r: (r * r.sum()).sum())), make((8, 16), "x"),
          type="float32[8@x,16]")


def test_auto_and_explicit_axes(explicit):
    a, b = make((8, 16), "x", "y"), make((16, 8), "y", None)
    seen = []

    @jax.sharding.auto_axes(axes="y", out_sharding=P("x", None))
    def product(a, b):
        seen.append((str(jax.typeof(a)), jax.sharding.get_abstract_mesh().auto_axes))
        return a @ b

    check(product, a, b, type="float32[8@x,8]")
    assert set(seen) == {("float32[8,16]", ("y",)), ("float32[8@x,16]", ("y",))}
    assert str(jax.typeof(product(a, b, out_sharding=P("y")))) == "float32[8@y,8]"
    with pytest.raises(TypeError, match="Missing required keyword argument: 'out_sharding'"):
        jax.sharding.auto_axes(lambda x: x)(a)
    inside = jax.sharding.explicit_axes(lambda a: seen.append(str(jax.typeof(a))) or a * 2,
                                        in_sharding=P("x", "y"))
    check(jax.sharding.auto_axes(inside, out_sharding=P("x", "y")), a, type="float32[8@x,16@y]")
    assert seen[-1] == "float32[8@x,16@y]"
    with jax.sharding.use_abstract_mesh(AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)), \
            pytest.raises(ValueError, match="cannot contain axis names that are of type Auto"):
        jnp.matmul(jnp.ones((8, 8)), jnp.ones((8, 8)), out_sharding=P("x"))


def test_jit_in_and_out():
    x = make((8, 16), "x", "y")
    out = jax.jit(lambda x: x * 2, out_shardings=P("y"))(x)
    assert str(jax.typeof(out)) == "float32[8@y,16]"
    assert str(jax.typeof(jax.jit(lambda x: (x * 2, 1.))(x)[1])) == "~float32[]"
    lowered = jax.jit(lambda x: x.T).lower(jax.ShapeDtypeStruct((8, 16), "float32",
                                                                sharding=P("x")))
    assert lowered.compile().output_shardings.spec == P(None, "x")
    f = jax.jit(lambda x: x + 1)
    for spec in (("x",), ("y",), (), ("x", "y"), ("x",)):
        assert f(make((8, 16), *spec)).sharding.is_equivalent_to(
            NamedSharding(jax.sharding.get_mesh(), P(*spec)), 2)


def test_without_a_mesh_that_is_set(explicit):
    x = jax.device_put(np.ones((8, 16), "f4"), NamedSharding(explicit, P("x")))
    assert str(jax.typeof(x.T * 2)) == "float32[16,8@x]"
    with pytest.raises(ValueError, match="Mesh for all inputs should be equal"):
        x + jax.device_put(np.ones((8, 16), "f4"), NamedSharding(
            explicit.update(axis_types=(AxisType.Explicit, AxisType.Auto)), P("x")))


def test_a_constraint_over_a_mixed_mesh_keeps_the_entries_of_the_type():
    mesh = jax.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    seen = []

    @jax.jit
    def f(a):
        out = jax.lax.with_sharding_constraint(a, P(P.UNCONSTRAINED, "y"))
        seen.append(jax.typeof(out))
        return out

    with jax.set_mesh(mesh):
        a = jax.device_put(np.ones((8, 8), "f4"), NamedSharding(mesh, P("x")))
        assert f(a).sharding.is_equivalent_to(NamedSharding(mesh, P("x", "y")), 2)
    assert seen[0].str_short() == "float32[8@x,8]"


def test_global_arrays_of_a_process_have_the_type_of_their_sharding():
    from pyjx.experimental import multihost_utils

    mesh = jax.make_mesh((8,), ("x",))
    x = multihost_utils.host_local_array_to_global_array(np.arange(8.), mesh, P("x"))
    assert jax.typeof(x).str_short() == "float32[8@x]"
    y = multihost_utils.global_array_to_host_local_array(x, mesh, P("x"))
    for move in (multihost_utils.host_local_array_to_global_array,
                 multihost_utils.global_array_to_host_local_array):
        np.testing.assert_array_equal(jax.jit(lambda v, m=move: m(v, mesh, P("x")))(np.arange(8.)),
                                      np.arange(8.))
    assert jax.typeof(y).str_short() == "float32[8@x]"


SHARDED_RESULTS = {
    "repeat": (lambda x, s: jnp.repeat(x[:, 0], 2, out_sharding=s), P("x")),
    "bincount": (lambda x, s: jnp.bincount(x[0].astype(int), length=8, out_sharding=s), P(None)),
    "histogram": (lambda x, s: jnp.histogram(x, bins=8, out_sharding=s),
                  (P("x"), P(None))),
    "percentile": (lambda x, s: jnp.percentile(x, 30., axis=0, out_sharding=s), P("x")),
    "apply": (lambda x, s: x.at[2:4].apply(jnp.sin, out_sharding=s), P("x", None)),
    "conv": (lambda x, s: lax.conv_general_dilated(
        x[None, None], jnp.ones((8, 1, 1, 1)), (1, 1), "SAME", out_sharding=s),
             P(None, "x", None, None)),
    "ragged_dot": (lambda x, s: lax.ragged_dot(x, jnp.ones((2, 8, 8)), jnp.array([3, 5]),
                                               out_sharding=s), P("x", None)),
}


@pytest.mark.parametrize("name", SHARDED_RESULTS)
def test_results_lie_as_out_sharding_says(name):
    f, spec = SHARDED_RESULTS[name]
    x = np.random.default_rng(0).uniform(0, 8, (8, 8)).astype("f4")
    expected = f(jnp.asarray(x), None)
    with jax.set_mesh(jax.make_mesh((8,), ("x",))):
        given = jax.device_put(x, P(None, None))
        for out in (f(given, spec), jax.jit(lambda x: f(x, spec))(given)):
            jax.tree.map(lambda a, s: pytest.fail(str(a.sharding)) if jax.typeof(a).sharding.spec
                         != s else None, out, spec)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5),
                         out, expected)


def test_axes_that_a_program_for_each_device_leaves_to_types(explicit):
    """Where some axes are manual the types inside, and of results, keep the other Explicit ones."""
    mesh = explicit
    x = jax.device_put(np.arange(32.0, dtype="f4").reshape(8, 4), NamedSharding(mesh, P("x", "y")))
    inside = []

    def f(x):
        y = jnp.sin(x).T
        inside.append(f"{jax.typeof(x)} {jax.typeof(y)}")
        return y

    with jax.set_mesh(mesh):
        for in_specs in (P("x"), None):
            g = jax.shard_map(f, in_specs=in_specs, out_specs=P(None, "x"), axis_names={"x"})
            for call in (g, jax.jit(g)):
                y = call(x)
                assert jax.typeof(y).sharding.spec == y.sharding.spec == P("y", "x")
                np.testing.assert_allclose(y, np.sin(x).T, rtol=1e-6)
            dx = jax.jit(jax.grad(lambda x, g=g: g(x).sum()))(x)
            assert jax.typeof(dx).sharding.spec == P("x", "y")
            np.testing.assert_allclose(dx, np.cos(x), rtol=1e-6)
        assert set(inside) == {"float32[2,4@y]{V:x} float32[4@y,2]{V:x}"}

        def product(x, w):
            return x @ w

        with pytest.raises(ShardingTypeError, match="Contracting dimensions"):
            jax.jit(jax.shard_map(product, in_specs=(P("x"), P()), out_specs=P("x"),
                                  axis_names={"x"}))(
                x, jax.device_put(np.ones((4, 4), "f4"), NamedSharding(mesh, P("y"))))


def test_batches_of_calls_are_cut_as_their_operands():
    @jax.jit
    def called(a, b):
        return jnp.sin(a) * 2 + a @ b

    x, w = jax.device_put(jnp.ones((8, 3)), P("x")), jnp.ones((3, 3))
    for f in (jax.vmap(called, (0, None)), jax.jit(jax.vmap(called, (0, None))),
              jax.vmap(jax.checkpoint(called), (0, None))):
        out = f(x, w)
        assert str(jax.typeof(out)) == "float32[8@x,3]"
        assert out.sharding.spec == P("x", None)
    swapped = jax.vmap(called, (1, None))(jax.device_put(jnp.ones((3, 8)), P(None, "y")), w)
    assert str(jax.typeof(swapped)) == "float32[8@y,3]"


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_constraints_along_auto_axes_leave_the_explicit_ones(wrap):
    mesh = jax.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    x = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, jax.P("x")))
    free = jax.P.UNCONSTRAINED
    with jax.set_mesh(mesh):
        out = wrap(lambda v: jax.lax.with_sharding_constraint(v, jax.P(free, "y")))(x)
    assert str(jax.typeof(out)) == "float32[8@x,8]" and out.sharding.spec == jax.P("x", "y")
