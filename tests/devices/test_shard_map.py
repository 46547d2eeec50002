"""shard_map: programs for each device of a mesh, their types, derivatives and collectives."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, lax
from pyjx.experimental import io_callback
from pyjx.experimental.shard_map import shard_map as old_shard_map
from pyjx.runtime.sharding import DuplicateSpecError
from pyjx.sharding import AbstractMesh, AxisType, NamedSharding
from pyjx.sharding import PartitionSpec as P

X = np.random.default_rng(0).normal(size=(8, 4)).astype("f4")
W = np.random.default_rng(1).normal(size=(4, 4)).astype("f4")


@pytest.fixture(params=[True, False], ids=["types", "no types"])
def smap(request, mesh):
    """`shard_map` over the mesh, with the types that say what varies or without."""
    def make(f, in_specs, out_specs, **options):
        return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,
                             check_vma=request.param, **options)

    make.types = request.param
    return make


def close(a, b):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6), a, b)


def check_grads(f, reference, *args):
    """The function and its derivatives are those of the other one."""
    argnums = tuple(range(len(args)))
    close(f(*args), reference(*args))
    of, to = [jax.jit(jax.grad(lambda *args, g=g: jnp.sin(g(*args)).sum(), argnums))
              for g in (f, reference)]
    close(of(*args), to(*args))
    of, to = [jax.jit(lambda *args, g=g: jax.jvp(g, args, args)) for g in (f, reference)]
    close(of(*args), to(*args))


def test_sums_of_parts(smap, mesh):
    f = smap(lambda x: lax.psum(jnp.sin(x) * x.sum(), "x"), P("x"), P())
    check_grads(f, lambda x: sum(jnp.sin(p) * p.sum() for p in jnp.split(x, 4)), X)
    assert f(X).sharding == NamedSharding(mesh, P())
    assert smap(lambda x: 2 * x, P("x", "y"), P("x", "y"))(X).sharding.spec == P("x", "y")


def test_eager_derivatives(smap):
    f = smap(lambda w, x: lax.psum(jnp.sin(x @ w).sum(), "x"), (P(), P("x")), P())
    for _ in range(2):
        close(jax.grad(f, (0, 1))(W, X), jax.grad(lambda w, x: jnp.sin(x @ w).sum(), (0, 1))(W, X))
    close(jax.jvp(f, (W, X), (W, X)), jax.jvp(lambda w, x: jnp.sin(x @ w).sum(), (W, X), (W, X)))


@pytest.mark.parametrize("transform", [jax.jacfwd, jax.jacrev, jax.hessian])
def test_jacobians_of_what_varies(smap, transform):
    def f(x):
        return jnp.sin(x) * x.sum(), lax.stop_gradient(lax.psum(x, "x")) * x[0]

    def each(x):
        return jax.tree.map(lambda j: j.reshape(-1, 2).sum(0), transform(f)(x))

    got = smap(each, P("x"), P("x"))(X[:, 0])
    parts = X[:, 0].reshape(4, 2)
    total = parts.sum(0)
    want = [transform(lambda x: (jnp.sin(x) * x.sum(), total * x[0]))(part) for part in parts]
    for i in range(2):
        close(got[i], np.concatenate([w[i].reshape(-1, 2).sum(0) for w in want]))


def test_matrix_product_cut_along_its_sum(smap):
    f = smap(lambda a, b: lax.psum(a @ b, "y"), (P("x", "y"), P("y")), P("x"))
    check_grads(f, lambda a, b: a @ b, X, W)


def test_data_parallel_loss(smap):
    f = smap(lambda w, x: lax.pmean(jnp.tanh(x @ w).mean(), ("x", "y")), (P(), P(("x", "y"))), P())
    check_grads(f, lambda w, x: jnp.tanh(x @ w).mean(), W, X)


def test_gathers_and_scatters(smap):
    f = smap(lambda x: jnp.cumsum(lax.all_gather(x, "x", tiled=True), 0)[:2] * x.sum(),
             P("x"), P("x"))
    check_grads(f, lambda x: jnp.concatenate([jnp.cumsum(x, 0)[:2] * p.sum()
                                              for p in jnp.split(x, 4)]), X)
    def reference(x):
        return sum(jnp.sin(p) * (1 + i) for i, p in enumerate(jnp.split(x, 4)))

    h = smap(lambda x: lax.psum_scatter(jnp.sin(x) * (1 + lax.axis_index("x")), "x",
                                        scatter_dimension=1, tiled=True), P("x"), P(None, "x"))
    check_grads(h, reference, X)


def test_exchanges(smap):
    ring = [(i, (i + 1) % 4) for i in range(4)]
    check_grads(smap(lambda x: lax.ppermute(jnp.sin(x), "x", ring), P("x"), P("x")),
                lambda x: jnp.roll(jnp.sin(x), 2, 0), X)
    check_grads(smap(lambda x: lax.ppermute(x, "x", [(0, 1)]), P("x"), P("x")),
                lambda x: jnp.zeros_like(x).at[2:4].set(x[:2]), X)
    check_grads(smap(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x"), P(None, "x")),
                lambda x: x, X)
    sent = smap(lambda x: lax.pbroadcast(x, "x", 2), P("x"), P("x"))(np.arange(4))
    assert sent.tolist() == [2] * 4


def test_positions(smap):
    f = smap(lambda: (10 * lax.axis_index("x") + lax.axis_index("y")).reshape(1, 1), (),
             P("x", "y"))
    assert f().tolist() == [[0, 1], [10, 11], [20, 21], [30, 31]]
    both = smap(lambda x: x + lax.axis_index(("y", "x")) + lax.axis_size("x"), P(("x", "y")),
                P(("x", "y")))
    assert both(np.zeros(8, int)).tolist() == [4, 8, 5, 9, 6, 10, 7, 11]
    counted = smap(lambda x: x * lax.psum(1, ("x", "y")), P("x"), P("x"))(np.ones(4))
    assert counted.tolist() == [8] * 4


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint32", "complex64", "bool"])
def test_dtypes(smap, dtype):
    x = jnp.arange(8).astype(dtype)
    total = smap(lambda x: lax.psum(x, "x"), P("x"), P())(x)
    np.testing.assert_array_equal(total, x.reshape(4, 2).sum(0))
    moved = smap(lambda x: lax.ppermute(x, "x", [(0, 1), (1, 0)]), P("x"), P("x"))(x)
    np.testing.assert_array_equal(moved[:4], x[jnp.array([2, 3, 0, 1])])
    assert smap(lambda x: lax.all_gather(x, "x"), P("x"), P("x"))(x).dtype == x.dtype
    if dtype != "complex64":
        largest = smap(lambda x: lax.pmax(x, ("x", "y")), P(("x", "y")), P())(x)
        np.testing.assert_array_equal(largest, x.max(keepdims=True))


def test_empty_arrays(smap):
    assert smap(lambda x: lax.psum(x, "x"), P("x"), P())(np.zeros((8, 0))).shape == (2, 0)


def test_softmax_of_cut_rows(smap):
    def body(a):
        e = jnp.exp(a - lax.pmax(lax.stop_gradient(a).max(1), "y")[:, None])
        return e / lax.psum(e.sum(1), "y")[:, None]

    check_grads(smap(body, P("x", "y"), P("x", "y")), jax.nn.softmax, X)


def test_loops_branches_and_rematerialization(smap):
    def ring(a):
        def step(carry, _):
            moving, total = carry
            moving = lax.ppermute(moving, "x", [(i, (i + 1) % 4) for i in range(4)])
            return (moving, total + moving * jnp.sin(a)), total.sum()

        return lax.scan(step, (a, a * 0), None, length=4)[0][1]

    check_grads(smap(ring, P("x"), P("x")), lambda x: jnp.concatenate(
        [sum(jnp.split(x, 4)) * jnp.sin(p) for p in jnp.split(x, 4)]), X)
    check_grads(smap(lambda a: lax.cond(a.sum() > 0, jnp.sin, lambda a: 2 * a, a), P("x"), P("x")),
                lambda x: jnp.concatenate([jnp.where(p.sum() > 0, jnp.sin(p), 2 * p)
                                           for p in jnp.split(x, 4)]), X)

    def loss(w, x):
        body = jax.checkpoint(lambda w, x: jnp.sin(jnp.sin(x @ w) @ w).sum())
        return smap(lambda w, x: lax.psum(body(w, x), "x"), (P(), P("x")), P())(w, x)

    for f in (loss, jax.checkpoint(loss)):
        check_grads(f, lambda w, x: jnp.sin(jnp.sin(x @ w) @ w).sum(), W, X)


def test_carries_and_branches_vary_alike(smap):
    def body(x):
        total = lax.scan(lambda c, _: ((c[1], c[0] + x.sum()), None), (1., 0.), None, length=3)[0]
        ending = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + x[0, 0]), (0, 0.))
        chosen = lax.cond(x[0, 0] > 0, lambda: x.sum(), lambda: 1.)
        constant = lax.cond(x[0, 0] > 0, lambda: 2., lambda: 3.)
        return (total[0] * total[1] + lax.stop_gradient(ending[1]) + chosen * constant)[None]

    def one(x):
        s, ok = x.sum(), x[0, 0] > 0
        return _totals(s) + lax.stop_gradient(3 * x[0, 0]) + jnp.where(ok, 2 * s, 3.)

    def _totals(s):
        a, b = 1., 0.
        for _ in range(3):
            a, b = b, a + s
        return a * b

    check_grads(smap(body, P("x"), P("x")),
                lambda x: jnp.stack([one(p) for p in jnp.split(x, 4)]), X)


def test_what_devices_repeat_more_or_less_often_varies(smap):
    def doubled(x):
        return lax.while_loop(lambda c: c[0] < lax.axis_index("x"),
                              lambda c: (c[0] + 1, 2 * c[1]), (0, x))[1]

    one = np.ones(1, np.float32)
    for f in (doubled, lambda x: jax.jvp(doubled, (x,), (x,))[1],
              lambda x: jax.vmap(doubled)(x[None])[0],
              lambda x: lax.fori_loop(0, lax.axis_index("x"), lambda i, y: 2 * y, x)):
        np.testing.assert_array_equal(smap(f, P(), P("x"))(one), [1, 2, 4, 8])
        if smap.types:
            with pytest.raises(ValueError, match="which require replication"):
                smap(f, P(), P())(one)


def test_mapped(smap):
    f = smap(lambda a: lax.psum(jnp.sin(a), "x"), P("x"), P())
    batch = np.stack([X, 2 * X, X ** 2, X + 1])

    def reference(b):
        return jnp.sin(b).reshape(4, 4, 2, 4).sum(1)

    check_grads(jax.vmap(f), reference, batch)
    check_grads(jax.vmap(f, in_axes=2, out_axes=1), lambda b: jnp.moveaxis(
        reference(jnp.moveaxis(b, 2, 0)), 0, 1), np.moveaxis(batch, 0, 2))
    check_grads(jax.vmap(f, spmd_axis_name="y"), reference, batch)
    named = smap(lambda a: lax.psum(a, ("i", "x")), P("x"), P())
    close(jax.vmap(named, axis_name="i")(batch)[0], batch.reshape(16, 2, 4).sum(0))


def test_custom_derivatives(smap):
    @jax.custom_vjp
    def twice(x):
        return 2 * x

    twice.defvjp(lambda x: (2 * x, None), lambda _, g: (5 * g,))

    @jax.custom_jvp
    def sine(x):
        return jnp.sin(x)

    sine.defjvp(lambda p, t: (jnp.sin(p[0]), 3 * t[0]))
    f = smap(lambda x: lax.psum(sine(twice(x)), "x"), P("x"), P())
    close(jax.grad(lambda x: f(x).sum())(X), np.full_like(X, 15))


def test_closures(smap):
    def f(c):
        return smap(lambda a: lax.psum(a * c * W[0], "x"), P("x"), P())(X)

    check_grads(f, lambda c: (X * c * W[0]).reshape(4, 2, 4).sum(0), np.float32(3))


def test_random_keys(smap):
    keys = jax.random.split(jax.random.key(0), 8)
    draw = smap(lambda k: jax.random.normal(k[0], (2,)), P(("x", "y")), P(("x", "y")))
    close(draw(keys), np.concatenate([jax.random.normal(k, (2,)) for k in keys]))
    folded = smap(lambda k: jax.random.bits(jax.random.fold_in(k, lax.axis_index("x")), (1,)),
                  P(), P("x"))
    key = jax.random.key(3)
    assert folded(key).tolist() == [int(jax.random.bits(jax.random.fold_in(key, i)))
                                    for i in range(4)]
    split = smap(lambda k: jax.random.split(k[0]), P(("x", "y")), P(("x", "y")))(keys)
    np.testing.assert_array_equal(jax.random.key_data(split), jax.random.key_data(
        jax.vmap(jax.random.split)(keys)).reshape(16, 2))


def test_groups(mesh):
    groups = [[0, 1], [2, 3]]
    f = jax.shard_map(lambda x: lax.psum(x, "x", axis_index_groups=groups), mesh=mesh,
                      in_specs=P("x"), out_specs=P("x"), check_vma=False)
    assert f(np.arange(4.)).tolist() == [1, 1, 5, 5]
    typed = jax.shard_map(lambda x: lax.psum(x, "x", axis_index_groups=groups), mesh=mesh,
                          in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(NotImplementedError, match="check_vma=False"):
        typed(np.arange(4.))


def test_some_axes(smap, mesh):
    f = smap(lambda a, b: lax.psum(jnp.sin(a) @ b, "x") * (1 + lax.axis_index("x")),
             (P("x"), P()), P("x"), axis_names={"x"})
    a = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    total = np.sin(X).reshape(4, 2, 4).sum(0) @ W
    expected = np.concatenate([total * (1 + i) for i in range(4)])
    close(jax.jit(f)(a, W), expected)
    close(f(a, W), expected)
    if smap.types:
        grad = jax.jit(jax.grad(lambda a, b: f(a, b).sum(), 1))(a, W)
        close(grad, 10 * np.sin(X).sum(0)[:, None] * np.ones((1, 4)))


def test_nested(smap):
    def inner(a):
        return jax.shard_map(lambda a: lax.psum(jnp.sin(a), "y"), in_specs=P(None, "y"),
                             out_specs=P(), axis_names={"y"}, check_vma=smap.types)(a)

    f = smap(lambda a: lax.psum(inner(a), "x"), P("x"), P(), axis_names={"x"})
    check_grads(jax.jit(f), lambda x: jnp.sin(x).reshape(4, 2, 2, 2).sum((0, 2)), X)


def test_types(mesh):
    seen = []

    def body(x, w):
        seen.extend(map(jax.typeof, (x, w, x * w, lax.psum(x, "x"), lax.axis_index("y"),
                                     lax.all_gather(x, "x"), lax.pcast(w, "y", to="varying"),
                                     lax.all_gather(x, "x", to="invarying"))))
        assert jax.sharding.get_abstract_mesh().manual_axes == ("x", "y")
        return x

    jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))(X, W[0])
    assert [sorted(a.vma) for a in seen] == [["x"], [], ["x"], [], ["y"], ["x"], ["y"], []]
    assert str(seen[0]) == "float32[2,4]{V:x}"
    assert seen[0].manual_axis_type.varying == {"x"}
    assert jax.sharding.get_abstract_mesh().empty


def test_jaxprs(mesh):
    f = jax.shard_map(lambda x, w: lax.psum(x * w, "x"), mesh=mesh, in_specs=(P("x"), P()),
                      out_specs=P())
    text = str(jax.make_jaxpr(f)(X, W[0]))
    assert "pvary[axes=('x',)]" in text and "psum_invariant[axes=('x',)]" in text
    assert "in_specs=(P('x',), P())" in text and "check_vma=True" in text
    back = str(jax.make_jaxpr(jax.grad(lambda w: f(X, w).sum()))(W[0]))
    assert back.count("psum_invariant") == 2  # of the results, and of the cotangent of w


def test_compiled_program(mesh):
    text = jax.jit(jax.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x", "y"),
                                 out_specs=P(None, "y"))).lower(X).as_text()
    assert 'sdy.manual_computation' in text and 'manual_axes={"x", "y"}' in text
    assert "dense<[[0, 2, 4, 6], [1, 3, 5, 7]]>" in text


def test_meshes(mesh):
    auto = jax.sharding.Mesh(mesh.devices, mesh.axis_names)
    f = jax.shard_map(lambda x: lax.psum(x, "x"), in_specs=P("x"), out_specs=P())
    with pytest.raises(ValueError, match="context mesh cannot be empty"):
        f(X)
    with jax.set_mesh(auto):
        close(f(X), X.reshape(4, 2, 4).sum(0))
        close(jax.jit(f)(X), X.reshape(4, 2, 4).sum(0))
        close(jax.smap(lambda x: lax.psum(x, "y"), in_axes=1, out_axes=None, axis_name="y")(X),
              X[:, :2] + X[:, 2:])
    shape = AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    g = jax.jit(jax.shard_map(lambda x: 2 * x, mesh=shape, in_specs=P("x"), out_specs=P("x")))
    assert g(jax.device_put(X, NamedSharding(auto, P("x")))).sharding.spec == P("x")
    with pytest.warns(DeprecationWarning, match=r"experimental.shard_map is deprecated"):
        old = old_shard_map(lambda x: x + 1, mesh, P("x"), P("x"), check_rep=False)
    close(old(X), X + 1)


def test_the_cure_of_what_is_gathered(mesh):
    def smap(f):
        return jax.shard_map(f, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())

    for f in (lambda x, w, to: lax.all_gather(x, "x", to=to),
              lambda x, w, to: (lax.all_gather(2 * x, ("x", "y"), to=to) + w).sum(),
              lambda x, w, to: lax.all_gather(x, "x", to=to) * lax.pmax(x, "x") + w):
        with pytest.raises(ValueError, match=r"all_gather\(\.\.\., to='invarying'\)\.\n"):
            smap(partial(f, to="varying"))(X, 2.0)
        close(smap(partial(f, to="invarying"))(X, 2.0), jax.shard_map(
            partial(f, to="varying"), mesh=mesh, in_specs=(P("x"), P()), out_specs=P(),
            check_vma=False)(X, 2.0))
    for f in (lambda x, w: lax.all_gather(x, "x") * lax.axis_index("x"), lambda x, w: x,
              lambda x, w: lax.all_gather(x, "x") * x[0], lambda x, w: lax.all_gather(x, "y")):
        with pytest.raises(ValueError, match="psum, or name them in out_specs"):
            smap(f)(X, 2.0)
    with pytest.raises(ValueError, match=r"such as with psum\. Where"):
        smap(lambda x, w: x.sum())(X, 2.0)


def test_errors(mesh):
    def smap(f, in_specs, out_specs, **options):
        return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)

    with pytest.raises(ValueError, match="replication which can't be statically inferred"):
        smap(lambda x: x, P("x"), P())(X)
    with pytest.raises(ValueError, match="not evenly divisible"):
        smap(lambda x: x, P("x"), P("x"))(X[:6])
    with pytest.raises(ValueError, match=r"args\[0\] of [\s\S]*args\[1\] of .*Pad the arguments,"):
        smap(lambda x, y: x, (P("x"), P("x")), P("x"))(X[:6], X[:7])
    with pytest.raises(ValueError, match="in_specs entry which is too long"):
        smap(lambda x: x, P("x", None, None), P("x"))(X)
    with pytest.raises(ValueError, match=r"args\[0\]\['w'\] \(params\['w'\]\) has"):
        smap(lambda params: params, P("x", None, None), P("x"))({"w": X})
    with pytest.raises(ValueError, match=r"args\[1\] of shape float32\[7\S+ \(batch\) has"):
        smap(lambda params, batch: params, (P(), P("x")), P())(1.0, X[:7])
    with pytest.raises(ValueError, match=r"the passed args\[0\] has shape"):
        smap(lambda *args: args[0], P("x", None, None), P("x"))(X)
    with pytest.raises(ValueError, match=r"out_specs entry which is too long[\s\S]*x\[None\], "):
        smap(lambda x: x.sum(), P("x"), P("x"))(X)
    smap(lambda x: x.sum()[None], P("x"), P("x"))(X)
    for twice in (P("x", "x"), P(("x", "x"))):
        with pytest.raises(DuplicateSpecError, match="duplicate entries for `x`"):
            smap(lambda x: x, twice, P("x"))(X)
        with pytest.raises(DuplicateSpecError, match="duplicate entries for `x`"):
            smap(lambda x: x, P("x"), twice)(X)
    with pytest.raises(ValueError, match="must refer to an axis marked as manual"):
        smap(lambda x: x, P("z"), P("x"))(X)
    with pytest.raises(ValueError, match="pytree structure error"):
        smap(lambda x: x, (P("x"), P("y")), P("x"))(X)
    with pytest.raises(ValueError, match=r"subset of mesh\.axis_names"):
        smap(lambda x: x, P("x"), P("x"), axis_names={"z"})(X)
    with pytest.raises(TypeError, match=r"must be a pytree of `jax\.sharding\.PartitionSpec`"):
        smap(lambda x: x, "x", P("x"))
    with pytest.raises(NameError, match="unbound axis name: q"):
        smap(lambda x: lax.psum(x, "q"), P("x"), P("x"))(X)
    with pytest.raises(ValueError, match=r"called under jax\.shard_map"):
        lax.pcast(X, "x", to="varying")


def test_each_eager_call_runs_the_function(mesh):
    factor, calls = 1., []

    def f(x):
        calls.append(x)
        return x * factor

    g = jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    close(g(X), X)
    factor = 2.
    close(g(X), 2 * X)
    close(jax.jvp(g, (X,), (X,)), (2 * X, 2 * X))
    factor = 3.
    close(jax.jvp(g, (X,), (X,)), (3 * X, 3 * X))
    assert len(calls) == 4


def test_eager_calls_of_equal_programs_share_what_is_compiled(mesh):
    def total(w, x):
        f = jax.shard_map(lambda w, x: lax.psum(jax.nn.relu(x @ w).sum(), "x"), mesh=mesh,
                          in_specs=(P(), P("x")), out_specs=P())
        return f(w, x)

    jax.value_and_grad(total)(W, X)
    events = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
    try:
        for _ in range(3):
            total(W, X)
            jax.value_and_grad(total)(W, X)
    finally:
        jax.monitoring.clear_event_listeners()
    assert events.count("/jax/core/compile/backend_compile_duration") == 1  # of `total` itself


def test_flags_of_types_over_meshes() -> None:
    mesh = jax.make_mesh((8, 1), ("a", "b"))
    with jax.set_mesh(mesh):
        x = np.arange(8.0, dtype=np.float32).reshape(8, 1)
        with configuration.remove_size_one_mesh_axis_from_type(True):
            cut = jax.device_put(x, P("a", "b"))
            assert jax.typeof(cut).sharding.spec == P("a", None)
            assert cut.sharding.spec == P("a", "b")
            f = jax.shard_map(lambda x: x + 1, in_specs=P("a", "b"), out_specs=P("a", "b"))
            assert "{V:a}" in str(jax.make_jaxpr(f)(cut))
            assert (f(cut) == x + 1).all()
        cut = jax.device_put(x, P("a", "b"))
        assert jax.typeof(cut).sharding.spec == P("a", "b")
        mixed = jax.shard_map(lambda x, y: x + y, in_specs=(P("a"), P()), out_specs=P("a"))
        whole = jax.device_put(np.ones((1, 1), np.float32), P())
        cut = jax.device_put(x, P("a"))
        assert (jax.jit(mixed)(cut, whole) == x + 1).all()
        with configuration.auto_pcast(False), pytest.raises(
                ValueError, match="add requires varying manual axes to match"):
            jax.jit(mixed)(cut, whole)
    with configuration.disallow_mesh_context_manager(True), pytest.raises(
            RuntimeError, match="disabled"), mesh:
        pass


def test_none_among_specs(mesh):
    axis = mesh.axis_names[0]
    out, nothing = jax.shard_map(lambda x, y, z: (x + y, None), mesh=mesh,
                                 in_specs=(P(axis), None, {"a": None, "b": P()}),
                                 out_specs=(P(axis), None))(X, 1.0, {"a": None, "b": 2.0})
    np.testing.assert_array_equal(out, X + 1)
    assert nothing is None
    with pytest.raises(ValueError, match="tree prefix"):
        jax.shard_map(lambda x: (x, x), mesh=mesh, in_specs=P(axis),
                      out_specs=(P(axis), None))(X)


def test_results_lie_as_the_specs_say_by_name(mesh):
    for spec in (P(), P(None), P(None, None), P(mesh.axis_names[0], None)):
        out = jax.shard_map(lambda x: x, mesh=mesh, in_specs=spec, out_specs=spec)(X)
        assert out.sharding.spec == spec


def test_ordered_effects_of_each_device(mesh):
    """A token goes through the program of each device, whose effects come in order."""
    seen = []

    def note(step, i):
        seen.append((int(i), step))

    def fun(x):
        i = lax.axis_index("x")
        for step in range(2):
            io_callback(lambda i, step=step: note(step, i), None, i, ordered=True)

        def step(c, s):
            io_callback(lambda s, i: note(int(s) + 2, i), None, s, i, ordered=True)
            return c, None

        return lax.scan(step, x, jnp.arange(2))[0]

    f = jax.shard_map(fun, mesh=mesh, in_specs=P("x", "y"),
                      out_specs=P("x", "y"))
    for call in (f, jax.jit(f)):
        seen.clear()
        close(call(X), X)
        jax.effects_barrier()
        assert sorted(seen) == sorted([(i, step) for i in range(4) for step in range(4)] * 2)
        for i in range(4):  # the two devices at one place of x, each in order
            steps = [step for at, step in seen if at == i]
            assert all([steps[:k].count(s) >= steps[:k].count(s + 1)
                        for k in range(9) for s in range(3)])


def test_callbacks_where_some_axes_are_manual(mesh):
    seen = []

    def f(x):
        jax.debug.callback(lambda v: seen.append(np.array(v)), x)
        return 2 * x

    mapped = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"),
                                   axis_names={"x"}))
    close(mapped(X), 2 * X)
    jax.effects_barrier()
    close(np.concatenate(sorted(seen, key=lambda v: list(X[:, 0]).index(v[0, 0]))), X)

    def called(x):
        io_callback(lambda v: None, None, x)
        return x

    with pytest.raises(NotImplementedError, match="all mesh axes are partitioned manually"):
        jax.jit(jax.shard_map(called, mesh=mesh, in_specs=P("x"), out_specs=P("x"),
                              axis_names={"x"}))(X)


@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f])
def test_arguments_lie_as_specs_say_along_explicit_axes(wrap):
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    cut = jax.device_put(X, NamedSharding(mesh, P("x")))

    def double(spec, **options):
        return wrap(jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=spec, out_specs=spec,
                                  **options))

    for x, spec, options in ((X, P("x"), {}), (cut, P(), {}), (cut, P("x", "y"), {}),
                             (cut, P("y"), {"axis_names": {"y"}})):
        with pytest.raises(ValueError, match=r"does not match the specs of the input: .*reshard"):
            double(spec, **options)(x)
    np.testing.assert_array_equal(double(P("x"))(cut), 2 * X)
    np.testing.assert_array_equal(double(P("x"))(jax.reshard(X, cut.sharding)), 2 * X)
    with pytest.raises(ValueError, match=r"device_put\(x, NamedSharding\(mesh, P\('x', None"):
        double(P("x"))(X)
    with jax.set_mesh(mesh):
        np.testing.assert_array_equal(double(P("x"))(jax.reshard(X, P("x",))), 2 * X)
    both = jax.device_put(X, NamedSharding(mesh, P("x", "y")))  # the compiler goes on to cut y
    np.testing.assert_array_equal(wrap(jax.shard_map(
        lambda x: 2 * x, mesh=mesh, in_specs=P("x"), out_specs=P("x"),
        axis_names={"x"}))(both), 2 * X)


@pytest.mark.parametrize(("derivative", "error", "message"), [
    (lambda point, t: jax.linearize(lambda x: x ** 3, point)[1](t), ValueError,
     "the primal value passed"),
    (lambda point, t: jax.vjp(lambda x: x ** 3, point)[1](t)[0], ValueError, "expected float32.1."),
    (lambda point, t: jax.linear_transpose(lambda x: 2 * x, point)(t)[0], TypeError,
     "cotangent type does not match")])
def test_tangents_vary_no_more_than_what_they_are_tangents_of(derivative, error, message):
    mesh = jax.make_mesh((2,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
    point = jnp.full(1, 2.0)
    with pytest.raises(error, match=message):
        jax.shard_map(lambda t: derivative(point, t), mesh=mesh, in_specs=P("a"),
                      out_specs=P("a"))(jnp.ones(2))
    out = jax.shard_map(
        lambda t: derivative(lax.pcast(point, ("a",), to="varying"), t), mesh=mesh,
        in_specs=P("a"), out_specs=P("a"))(jnp.ones(2))
    assert len(set(np.asarray(out).tolist())) == 1


# -- what is asked of calls ------------------------------------------------------------------------


def along_x(f, mesh, **options):
    return jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), **options)


def test_arguments_without_a_spec_are_passed_on(mesh):
    class Thing:
        size = 2

    f = jax.shard_map(lambda thing, x, d: x * thing.size + jnp.ones(d["shape"])[0], mesh=mesh,
                      in_specs=(None, P("x"), None), out_specs=P("x"))
    close(f(Thing(), X, {"shape": (2, 4)}), 2 * X + 1)
    g = jax.shard_map(lambda n, x: lax.psum((n * x).sum(), ("x", "y")), mesh=mesh,
                      in_specs=(None, P("x", "y")), out_specs=P())
    close(jax.jit(jax.grad(g))(3., X), X.sum())
    assert jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=None, out_specs=P())(3.) == 6


def test_meshes_inside_of_others(mesh):
    def inner(x, **options):
        return jax.shard_map(jnp.sin, in_specs=P(None, "y"), out_specs=P(None, "y"), **options)(x)

    for options in ({"mesh": mesh}, {"mesh": mesh, "axis_names": {"y"}}):
        with pytest.raises(ValueError, match=r"context mesh .* should match the mesh passed to"):
            jax.jit(along_x(lambda x, o=options: inner(x, **o), mesh, axis_names={"x"}))(X)
    close(jax.jit(along_x(lambda x: inner(x, axis_names={"y"}), mesh, axis_names={"x"}))(X),
          np.sin(X))
    other = jax.make_mesh((8,), ("z",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(other), pytest.raises(ValueError, match="context mesh"):
        along_x(jnp.sin, mesh)(X)


@pytest.mark.parametrize("names", [{"x", "y"}, {"x"}])
def test_constraints_name_no_manual_axis(mesh, names):
    def f(x):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P("x", "y")))

    with pytest.raises(ValueError, match="contains manual axes"):
        jax.jit(along_x(f, mesh, check_vma=False, axis_names=names))(X)


def test_puts_inside_of_calls_on_values(mesh):
    f = along_x(lambda x: x + jax.device_put(2, jax.devices()[0]), mesh)
    with pytest.raises(ValueError, match=r"device_put with explicit device .* shard_map"):
        f(X)
    close(jax.jit(f)(X), X + 2)
    close(along_x(lambda x: x + jax.device_put(2), mesh)(X), X + 2)


def test_names_of_casts(mesh):
    for names in ({"x"}, frozenset("x")):
        with pytest.raises(TypeError, match="must be a tuple or a str"):
            along_x(lambda x, n=names: lax.pcast(x, n, to="varying"), mesh)(X)
    with pytest.raises(NameError, match="unbound axis name: y"):
        along_x(lambda x: lax.pcast(x, "y", to="varying"), mesh, axis_names={"x"},
                check_vma=False)(X)


def test_types_of_tracers_and_structs(mesh):
    seen = []

    def f(x):
        struct = jax.eval_shape(lambda x: 2 * x, x)
        seen.extend([x.mat.varying, x.str_short(), struct.manual_axis_type.varying,
                     jax.typeof(lax.full_like(struct, 1)).mat.varying])
        return x

    along_x(f, mesh)(X)
    assert seen == [{"x"}, "float32[2,4]{V:x}", {"x"}, {"x"}]


def test_mapping_along_an_axis_of_the_mesh(mesh):
    def over(f, source, target):
        return jax.shard_map(f, mesh=mesh, in_specs=source, out_specs=target, check_vma=False)

    with pytest.raises(ValueError, match=r"Resource axis: batch of P.* is not found in mesh"):
        jax.vmap(over(jnp.sin, P("y"), P("y")), spmd_axis_name="batch")(X)
    with pytest.raises(ValueError, match="spmd_axis_name cannot appear in shard_map out_specs"):
        jax.vmap(over(jnp.sin, P("y"), P(("x", "y"))), spmd_axis_name="x")(X)
    total = over(lambda x: lax.psum((x ** 2).sum(), "y"), P("y"), P())
    x = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    close(jax.vmap(jax.grad(total), spmd_axis_name="x")(x), 2 * X)
    close(jax.vmap(jax.grad(lambda x: total(jnp.sin(x))), spmd_axis_name="x")(x), np.sin(2 * X))


def test_along_explicit_axes():
    explicit = jax.make_mesh((2, 2), ("x", "y"))
    with jax.set_mesh(explicit):
        x = jax.device_put(X, P("x"))
        gather = jax.shard_map(lambda v: lax.all_gather(v, "x", tiled=True, to="reduced"),
                               out_specs=P(reduced={"x"}))
        assert gather(x).sharding.spec == P(reduced={"x"})
        with pytest.raises(NotImplementedError, match="Closing over inputs to shard_map"):
            jax.shard_map(lambda v: v * (x * 1)[:4], out_specs=P("x"), in_specs=P("x"))(x)
        with pytest.raises(TypeError, match="in_axes was not specified"), \
                jax.set_mesh(jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))):
            jax.smap(lambda x: x, out_axes=0, axis_name="x")(X)
        both = jax.device_put(X, P("x", "y"))
        with pytest.raises(ValueError, match=r"(?s)marked as manual .* that vmap maps over"):
            jax.vmap(jax.shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x")))(both)
    with pytest.raises(ValueError, match=r"needs the in_specs entry of `P\(\)`"):
        jax.shard_map(lambda x: x, mesh=explicit, in_specs=P(None), out_specs=P())(3.)


@pytest.mark.parametrize("body", [
    lambda x: lax.cond(lax.axis_index("x") > 0, lambda: lax.psum(x, "x"), lambda: x),
    lambda x: lax.switch(lax.axis_index("x") % 2, [lambda: x, lambda: lax.pmean(x, "x")]),
    lambda x: lax.cond(x[0, 0] > 0, lambda: (x, 2 * lax.pmax(x, "x")), lambda: (x, x))[1],
])
def test_devices_that_choose_differently_wait_for_no_others(mesh, body):
    with pytest.raises(TypeError, match=r"the choice varies along the mesh axis 'x', and .* cast"):
        jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)


def test_devices_that_choose_alike_may_send(mesh):
    def body(x):
        sums = lax.all_gather(x, "x").sum() > 1e6  # which varies by its type
        return lax.cond(sums, lambda: lax.pcast(lax.psum(x, "x"), "x", to="varying"), lambda: x)

    close(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X), X)


def _by_hand(x):
    return lax.pcast(x, "x", to="varying")


def _each_its_own(body, x):
    return lax.fori_loop(0, lax.axis_index("x") + 1, lambda i, c: body(c), x)


@pytest.mark.parametrize("body", [
    lambda x: _each_its_own(lambda c: lax.psum(c, "x"), x),
    lambda x: _each_its_own(lambda c: _by_hand(lax.psum(c, "x")), x),
    lambda x: _each_its_own(lambda c: lax.ppermute(c, "x", [(0, 1), (1, 0)]), x),
    lambda x: _each_its_own(lambda c: lax.scan(
        lambda d, _: (lax.all_gather(d, "x")[0], None), c, None, 2)[0], x),
    lambda x: lax.while_loop(lambda c: lax.psum(c[0, 0], "x") < x[0, 0], lambda c: c + 1, x),
    lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + _by_hand(lax.pmax(1, "x")), x),
])
def test_devices_whose_loops_end_apart_wait_for_no_others(mesh, body):
    with pytest.raises(TypeError, match=r"(bound|condition) varies along the mesh axis 'x', and "
                                        r"(body|cond)_fun has .* ask jax.lax.pmax\((bound|cond)"):
        jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)


@pytest.mark.parametrize(("body", "per_device"), [
    (lambda x: lax.fori_loop(0, lax.pmax(lax.axis_index("x") + 1, "x"),
                             lambda i, c: _by_hand(lax.psum(c, "x")), x),
     lambda s, p, x, y: 64 * s),
    (lambda x: lax.while_loop(lambda c: lax.psum(c[0, 0], "x") < 1e3, lambda c: c + 100, x),
     lambda s, p, x, y: p + 300),
    (lambda x: _each_its_own(lambda c: 2 * c, x), lambda s, p, x, y: p * 2 ** (x + 1)),
    (lambda x: lax.fori_loop(0, lax.axis_index("y") + 1, lambda i, c: lax.psum(c, "x"), x),
     lambda s, p, x, y: s * 4 ** y),
])
def test_devices_whose_loops_end_together_may_send(mesh, body, per_device):
    parts = X.reshape(4, 2, 2, 2)  # by device along x, row, device along y, column
    want = np.stack([np.stack([per_device(parts[:, :, y].sum(0), parts[x, :, y], x, y)
                               for y in range(2)], 1) for x in range(4)])
    close(jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(X),
          want.reshape(X.shape))


def test_a_sum_over_devices_stands_in_no_loop_that_ends_apart(mesh):
    """The cotangent of a value that is one for all, which the body of a loop closes over."""

    def loss(w, cast):
        def body(x):
            one = _by_hand(w) if cast else w
            n = lax.axis_index("x") + 1
            return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * one), (0, x),
                                  max_steps=8)[1]

        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X).sum()

    with pytest.raises(ValueError, match=r"while_loop: devices along the axes \('x',\) do iter"
                       r".*, or cast it before: lax.pcast\(x, \('x',\), to='varying'\)"):
        jax.grad(loss)(2.0, False)
    parts = np.split(np.asarray(X), mesh.shape["x"])
    close(jax.grad(loss)(2.0, True), sum([p.sum() * n * 2.0 ** (n - 1)
                                          for n, p in enumerate(parts, 1)]))
