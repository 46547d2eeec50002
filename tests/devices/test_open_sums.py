"""Values in shard_map that are yet to be summed over devices, and those whose cotangents are."""

import threading

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import jaxlib_api, lax
from pyjx.core.forbidden import ForbiddenCollectiveError
from pyjx.errors import ShardingTypeError
from pyjx.sharding import AxisType, NamedSharding
from pyjx.sharding import PartitionSpec as P

X = np.random.default_rng(0).normal(size=(8, 4)).astype("f4")
W = np.random.default_rng(1).normal(size=(2, 4)).astype("f4")


@pytest.fixture(autouse=True, scope="module")
def explicit():
    mesh = jax.make_mesh((8,), ("x",))
    with jax.set_mesh(mesh):
        yield mesh


CUT = P("x")


def smap(f, in_specs=CUT, out_specs=CUT):
    return jax.shard_map(f, in_specs=in_specs, out_specs=out_specs)


def unreduced(x):
    return lax.pcast(x, "x", to="unreduced")


def reduced(x):
    return lax.pcast(x, "x", to="reduced")


def summed(x):
    return lax.psum(x, "x")


def cut(x):
    return jax.device_put(x, P("x"))


def type_inside(f, *args, in_specs=CUT):
    seen = []

    def g(*args):
        seen.append(jax.typeof(f(*args)).str_short())
        return jnp.zeros(())

    jax.eval_shape(smap(g, in_specs, P()), *args)
    return seen[0]


def test_types():
    assert type_inside(unreduced, cut(X)) == "float32[1,4]{U:x}"
    assert type_inside(lambda x: -unreduced(x).T, cut(X)) == "float32[4,1]{U:x}"
    assert type_inside(lambda x: unreduced(x) + unreduced(x), cut(X)) == "float32[1,4]{U:x}"
    assert type_inside(lambda x: summed(unreduced(x)), cut(X)) == "float32[1,4]"
    assert type_inside(reduced, W, in_specs=P()) == "float32[2,4]{R:x}"
    assert type_inside(lambda w: jnp.sin(reduced(w)), W, in_specs=P()) == "float32[2,4]{R:x}"
    assert type_inside(lambda w: lax.pcast(reduced(w), "x", to="varying"), W,
                       in_specs=P()) == "float32[2,4]{V:x}"
    assert type_inside(lambda x: lax.all_gather(x, "x", tiled=True, to="reduced"),
                       cut(X)) == "float32[8,4]{R:x}"
    both = (P(), P("x"))
    assert type_inside(lambda w, x: reduced(w)[:1] * x, W, cut(X),
                       in_specs=both) == "float32[1,4]{V:x}"
    assert type_inside(lambda w, x: reduced(w)[:1] * unreduced(x), W, cut(X),
                       in_specs=both) == "float32[1,4]{U:x}"
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    with jax.set_mesh(mesh):
        x = jax.device_put(X, P("x", "y"))
        assert type_inside(unreduced, x, in_specs=P("x", "y")) == "float32[2,2]{V:y, U:x}"
        assert type_inside(lambda x: x, x, in_specs=P("x", "y")) == "float32[2,2]{V:(x,y)}"


@pytest.mark.parametrize("f, error, message", [
    (lambda x: lax.pcast(x, "x", to="reduced"), ValueError, "from=varying, to='reduced'"),
    (lambda x: unreduced(unreduced(x)), ValueError, "from=unreduced, to='unreduced'"),
    (lambda x: lax.pcast(unreduced(x), "x", to="varying"), ValueError, "from=unreduced"),
    (lambda x: jnp.sin(unreduced(x)), ShardingTypeError, "sin is a non-linear operation"),
    (lambda x: unreduced(x) * unreduced(x), ShardingTypeError, "since mul is bilinear"),
    (lambda x: x * unreduced(x), ValueError, "pvary cannot accept args which are unreduced"),
    (lambda x: unreduced(x) + summed(x), ShardingTypeError, "lhs is unreduced while rhs is not"),
    (lambda x: summed(x) * unreduced(x), ShardingTypeError, "LHS should be reduced along"),
    (lambda x: reduced(summed(x)) * summed(x), ShardingTypeError, "cannot be replicated on"),
    (lambda x: lax.ppermute(unreduced(x), "x", [(0, 1)]), ValueError, "which are unreduced"),
])
def test_errors(f, error, message):
    with pytest.raises(error, match=message):
        type_inside(f, cut(X))


@pytest.mark.parametrize("collective", [
    lax.psum, lax.pmean, lax.pmax, lax.pmin, lax.all_gather,
    lambda x, axis: lax.psum((X, x), axis), lambda x, axis: lax.psum_scatter(x, axis, tiled=True),
    lambda x, axis: lax.all_gather(x, axis, to="reduced"),
    lambda x, axis: lax.all_gather(x, axis, to="invarying"),
    lambda x, axis: lax.ppermute(x, axis, [(0, 1)]), lambda x, axis: lax.pbroadcast(x, axis, 0),
    lambda x, axis: lax.all_to_all(x, axis, 0, 0),
    lambda x, axis: lax.ragged_all_to_all(x, x, *[np.arange(8)] * 4, axis_name=axis),
])
def test_collectives_refuse_copies(collective):
    """A sum of a reduced value would be that of its copies: as many times as large."""
    def gathered(x):
        return lax.all_gather(x, "x", tiled=True, to="reduced")

    with pytest.raises(ValueError, match=r"are reduced\. Got f32\[8,\S+\{R:x\} and axes=\{'x'\}"):
        type_inside(lambda x: collective(gathered(x), "x"), cut(X))
    # what it is multiplied with makes a value that varies of it
    type_inside(lambda x: lax.psum(gathered(x) * x, "x"), cut(X))


def test_errors_of_specs(explicit):
    for f, spec, what in ((lambda x: x, P(unreduced={"x"}), "unreduced"),
                          (summed, P(reduced={"x"}), "reduced"), (unreduced, P(), "unreduced")):
        with pytest.raises(ValueError, match=f"should be equal to the {what} present"):
            jax.eval_shape(smap(f, out_specs=spec), cut(X))
    auto = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(auto):
        with pytest.raises(ValueError, match="can only refer to mesh axes that is of type"):
            smap(unreduced, out_specs=P(unreduced={"x"}))(X)
        np.testing.assert_allclose(smap(lambda x: summed(unreduced(x)), out_specs=P())(X),
                                   X.sum(0, keepdims=True), rtol=1e-5)


def test_sums_are_taken_outside():
    parts = smap(unreduced, out_specs=P(unreduced={"x"}))
    total = X.sum(0, keepdims=True)
    np.testing.assert_allclose(jax.jit(lambda x: jax.reshard(parts(x), P()))(cut(X)), total,
                               rtol=1e-5)
    again = smap(summed, P(unreduced={"x"}), P())
    np.testing.assert_allclose(jax.jit(lambda x: again(parts(x)))(cut(X)), total, rtol=1e-5)
    rows = np.arange(128, dtype="f4").reshape(64, 2)
    scattered = jax.jit(lambda x: jax.reshard(parts(x), P("x")))(cut(rows))
    np.testing.assert_allclose(scattered, rows.reshape(8, 8, 2).sum(0))
    assert scattered.sharding.spec[0] == "x"


BOTH = (P(), P("x"))
LOSSES = {
    "sin": (lambda w, x: summed((jnp.sin(reduced(w))[:1] * x).sum()),
            lambda w, x: (jnp.sin(w)[:1] * x).sum()),
    "product": (lambda w, x: summed((x @ jnp.exp(reduced(w)).T).sum()) ** 2,
                lambda w, x: (x @ jnp.exp(w).T).sum() ** 2),
    "scan": (lambda w, x: summed(_steps(reduced(w), x).sum()), lambda w, x: _steps(w, x).sum()),
    "branch": (lambda w, x: summed(_chosen(reduced(w), x)),
               lambda w, x: sum(_chosen(w, r[None]) for r in x)),
    "remat": (lambda w, x: summed(jax.checkpoint(lambda w: (jnp.sin(w)[:1] * x).sum())(reduced(w))),
              lambda w, x: (jnp.sin(w)[:1] * x).sum()),
    "jit": (lambda w, x: summed(jax.jit(lambda w: (jnp.sin(w)[:1] * x).sum())(reduced(w))),
            lambda w, x: (jnp.sin(w)[:1] * x).sum()),
    "sum": (lambda w, x: summed(unreduced(x * w[:1]) + unreduced(jnp.sin(x))).sum(),
            lambda w, x: (x * w[:1] + jnp.sin(x)).sum()),
    "gather": (lambda w, x: summed((lax.all_gather(x, "x", tiled=True, to="reduced") ** 2 *
                                    lax.axis_index("x").astype("f4")).sum() + w.sum()),
               lambda w, x: (x ** 2).sum() * 28 + 8 * w.sum()),
}


def _steps(w, x):
    return lax.scan(lambda c, _: (jnp.sin(c + x * w[0]), None), x, None, length=3)[0]


def _chosen(w, x):
    return lax.cond(x.sum() > 0, lambda: (w[:1] * x).sum(), lambda: x.sum())


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives(name):
    f, reference = LOSSES[name]
    f = smap(f, BOTH, P())
    got = jax.jit(lambda w, x: (f(w, x), jax.grad(f, (0, 1))(w, x)))(W, cut(X))
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
        want = jax.value_and_grad(reference, (0, 1))(jnp.asarray(W), jnp.asarray(X))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5), got, want)


def test_cotangents_of_reduced_arguments_are_unreduced(explicit):
    w = jax.reshard(W, P(reduced={"x"}))
    f = smap(lambda w, x: summed((jnp.sin(w)[:1] * x).sum()), (P(reduced={"x"}), P("x")), P())
    assert jax.typeof(jax.eval_shape(jax.grad(f), w, cut(X))).str_short() == "float32[2,4]{U:x}"
    dw = jax.jit(lambda w, x: jax.reshard(jax.grad(f)(w, x), P()))(w, cut(X))
    np.testing.assert_allclose(dw, [np.cos(W[0]) * X.sum(0), 0 * W[1]], rtol=1e-5, atol=1e-5)


def test_a_scattered_gradient():
    """The gather's cotangent is summed where each device keeps its part."""
    def f(w, x):
        return jax.grad(lambda w: (lax.all_gather(w, "x", tiled=True, to="reduced")
                                   * x.sum()).sum())(w)

    mapped = smap(f, (P("x"), P("x")), P("x"))
    np.testing.assert_allclose(jax.jit(mapped)(cut(X), cut(X)), np.full((8, 4), X.sum()), rtol=1e-5)
    text = str(jax.make_jaxpr(mapped)(cut(X), cut(X)))
    assert "unreduced_reduce_scatter" in text
    assert "reduce_scatter" in jax.jit(mapped).lower(cut(X), cut(X)).as_text()
    sharding = NamedSharding(jax.sharding.get_mesh(), P("x"))
    assert mapped(cut(X), cut(X)).sharding.is_equivalent_to(sharding, 2)


FORBIDDEN = {
    "reduce_sum` loses": lambda x, w: x.sum(0),
    "argmax` loses": lambda x, w: jnp.argmax(x, 0),
    "reshard` loses": lambda x, w: jax.reshard(x, P()),
    "dot_general` contracts": lambda x, w: jnp.matmul(w, x, out_sharding=P()),
    "psum` acts": lambda x, w: smap(summed, out_specs=P())(x),
    "all_gather` acts": lambda x, w: smap(lambda x: lax.all_gather(x, "x"))(x),
    "ppermute` acts": lambda x, w: smap(lambda x: lax.ppermute(x, "x", [(0, 1)]))(x),
    "reduce_scatter` acts": lambda x, w: smap(
        lambda x: lax.psum_scatter(x[0, :, None] * jnp.ones(8), "x", scatter_dimension=1,
                                   tiled=True))(x),
}


@pytest.mark.parametrize("message", FORBIDDEN)
def test_forbidden_collectives(message):
    f, x, w = FORBIDDEN[message], cut(X), jax.device_put(X.T, P(None, "x"))
    for call in (f, jax.jit(f)):
        call(x, w)
        for _ in range(2):
            with jax.sharding.no_collectives({"x"}), \
                    pytest.raises(ForbiddenCollectiveError, match=f"'x' is forbidden.*`{message}"):
                call(x, w)
        with jax.sharding.no_collectives({"y"}):
            call(x, w)


def test_other_threads_do_not_allow_what_is_forbidden():
    def types():
        return jax.make_jaxpr(lambda x: x.sum(0))(x)

    x = cut(X)
    with jax.sharding.no_collectives({"x"}):
        other = threading.Thread(target=types)
        other.start()
        other.join()
        with pytest.raises(ForbiddenCollectiveError, match="'x' is forbidden"):
            types()


def test_what_needs_no_collective_is_allowed():
    x = cut(X)
    with jax.sharding.no_collectives({"x"}):
        np.testing.assert_allclose(jax.reshard(2 * x.sum(1), P("x")), 2 * X.sum(1), rtol=1e-5)
        smap(lambda x: x * lax.psum(1, "x") + lax.axis_index("x"))(x)
        assert jax.vmap(lambda a: lax.psum(a, "x"), axis_name="x")(jnp.ones(3)).tolist() == [3] * 3
        types = jax.eval_shape(lambda w: jnp.matmul(w, x, out_sharding=P(unreduced={"x"})),
                               jax.device_put(X.T, P(None, "x")))
        assert jax.typeof(types).str_short() == "float32[4,4]{U:x}"
    for wrong in (["x"], "x", None):
        with pytest.raises(TypeError, match="Expected axis name"):
            jax.sharding.no_collectives(wrong)


def open_product():
    """An array of open sums, and what it is."""
    x = cut(X)
    return jax.jit(lambda x: jnp.einsum("ij,ik->jk", x, x, out_sharding=P(unreduced={"x"})))(x), \
        X.T @ X


def test_open_sums_as_arguments_of_shard_map():
    product, wanted = open_product()
    f = smap(summed, P(unreduced={"x"}), P())
    for call in (f, jax.jit(f)):
        np.testing.assert_allclose(call(product), wanted, rtol=1e-5)
    kept = smap(lambda x: -x, P(unreduced={"x"}), P(unreduced={"x"}))(product)
    np.testing.assert_allclose(jax.reshard(kept, P()), -wanted, rtol=1e-5)


@pytest.mark.parametrize("read", [
    np.asarray, jax.device_get, lambda x: x.tolist(), lambda x: float(x.sum()),
    lambda x: f"{x.sum():.3f}",
], ids=["asarray", "device_get", "tolist", "float", "format"])
def test_open_sums_have_no_values(read):
    with pytest.raises(RuntimeError, match=r"float32\[.*\]\{U:x\} with an unreduced sharding has "
                                           r"no values yet: .* axes x\. Sum it with "
                                           r"jax\.reshard\(x, P\(\)\)"):
        read(open_product()[0])


def test_open_sums_are_shown_by_their_sharding():
    product, _ = open_product()
    assert not product.is_fully_replicated
    shown = repr(product)
    assert shown.startswith("Array(shape=(4, 4), dtype=float32, sharding=NamedSharding(")
    assert str(product) == f"{product}" == shown


def test_einsum_leaves_a_sum_open(explicit):
    x, y = jax.device_put(X.T, P(None, "x")), jax.device_put(X, P("x"))
    out = jnp.einsum("ij,jk->ik", x, y, out_sharding=P(unreduced={"x"}))
    assert str(jax.typeof(out)) == "float32[4,4]{U:x}"
    np.testing.assert_allclose(jax.reshard(out, P()), X.T @ X, rtol=1e-5)


def test_einsum_that_leaves_a_sum_open_is_compiled_once(explicit):
    x, y = jax.device_put(X.T, P(None, "x")), jax.device_put(X, P("x"))

    def product():
        return jnp.einsum("ij,jk->ik", x, y, optimize=[(0, 1)], out_sharding=P(unreduced={"x"}))

    product()
    events = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
    try:
        product()
    finally:
        jax.monitoring.clear_event_listeners()
    assert not events


# -- outside of programs for each device -----------------------------------------------------------

REDUCED = P(reduced={"x"})


def test_gradients_of_reduced_arrays_are_unreduced():
    w = jax.device_put(W, REDUCED)
    for f, slope in ((lambda w: (w + w).sum(), 2), (lambda w: jnp.concatenate([w, 3 * w]).sum(), 4),
                     (lambda w: jnp.where(w > 9, w, 0.).sum(), 0),
                     (lambda w: lax.split(w, (1, 1))[1].sum(), [[0], [1]]),
                     (lambda w: w.reshape(8)[2:6].sum(), [[0, 0, 1, 1], [1, 1, 0, 0]]),
                     (lambda w: w.astype("bfloat16").astype("f4").sum(), 1)):
        for call in (jax.grad(f), jax.jit(jax.grad(f))):
            found = call(w)
            assert str(jax.typeof(found)) == "float32[2,4]{U:x}"
            np.testing.assert_allclose(jax.reshard(found, P()), np.broadcast_to(slope, W.shape))


def test_second_derivatives_and_jacobians_of_reduced_arrays():
    w = jax.device_put(W[0], REDUCED)
    found = jax.jit(jax.hessian(lambda w: (w ** 3).sum()))(w)
    np.testing.assert_allclose(jax.reshard(found, P()), np.diag(6 * W[0]), rtol=1e-5)
    for transform in (jax.jacfwd, jax.jacrev):
        found = jax.jit(transform(lambda w: w * w))(w)
        np.testing.assert_allclose(jax.reshard(found, P()), np.diag(2 * W[0]), rtol=1e-5)


def test_products_with_reduced_arrays():
    """What is contracted with an array that is cut leaves the sum of the gradient open."""
    w = jax.device_put(X.T @ X, REDUCED)
    for spec in (REDUCED, P(), P(None, "x")):
        y = jax.device_put(X.T, spec)
        grads = jax.jit(jax.grad(lambda w, y: jnp.sin(w @ y).sum(), (0, 1)))(w, y)
        slope = np.cos(np.asarray(w) @ np.asarray(y))
        np.testing.assert_allclose(jax.reshard(grads[0], P()), slope @ np.asarray(y).T, rtol=2e-4,
                                   atol=1e-4)
        np.testing.assert_allclose(jax.reshard(grads[1], P()), np.asarray(w).T @ slope, rtol=2e-4,
                                   atol=1e-4)
        assert "{U:x}" in str(jax.typeof(grads[0]))


@pytest.mark.parametrize("f, other, message", [
    (lambda a, b: a + b, P(), "Inputs cannot be replicated on the same axes"),
    (lambda a, b: b * a, P(None, "x"), "Inputs cannot be sharded/varying on the same axes"),
    (jnp.maximum, P(None, "x"), "Inputs cannot be sharded/varying on the same axes"),
    (lambda a, b: jnp.concatenate([a, b]), P(), "Inputs cannot be replicated on the same axes"),
])
def test_reduced_arrays_go_with_reduced_ones(f, other, message):
    w = jax.device_put(np.ones((8, 8), "f4"), REDUCED)
    with pytest.raises(ShardingTypeError, match=message):
        f(w, jax.device_put(np.ones((8, 8), "f4"), other))


def test_a_whole_value_becomes_an_open_sum_on_one_device():
    for x in (jnp.arange(3.), jax.device_put(np.arange(3.), P()),
              jax.device_put(np.arange(3) * 1j, P())):
        for f in (jax.reshard, jax.jit(jax.reshard, static_argnums=1),
                  jax.jit(lambda x, s: jax.reshard(1 * x, s), static_argnums=1),
                  lambda x, s: jax.jit(lambda x: 1 * x, out_shardings=s)(x)):
            first, *rest = [np.asarray(s.data) for s in f(x, P(unreduced={"x"})).addressable_shards]
            np.testing.assert_array_equal(first, np.asarray(x))
            assert not np.any(rest)


def test_results_are_unreduced_only_where_sums_are_left_open():
    whole = jax.device_put(X, P())
    spec = P(unreduced={"x"})
    for call, error, message in (
            (lambda: jnp.einsum("ij,ik->jk", whole, whole, out_sharding=spec), ShardingTypeError,
             "equal to the contracting specs"),
            (lambda: lax.reduce_sum(whole, axes=(0,), out_sharding=spec), ShardingTypeError,
             "out_sharding's unreduced axes"),
            (lambda: lax.reduce_sum(whole, axes=(0,), out_sharding=REDUCED), ValueError,
             "cannot be reduced"),
            (lambda: jnp.reshape(X, (4, 8), out_sharding=spec), ValueError, "must be unreduced"),
            (lambda: jnp.reshape(X, (4, 8), out_sharding=REDUCED), ValueError, "must be reduced")):
        with pytest.raises(error, match=message):
            call()
    total = lax.reduce_sum(cut(X), axes=(0,), out_sharding=spec)
    np.testing.assert_allclose(jax.reshard(total, P()), X.sum(0), rtol=1e-5)
    with pytest.raises(ShardingTypeError, match="each device would add the padding value"):
        lax.pad(total, jnp.float32(1), ((1, 0, 0),))


def test_cotangents_have_the_type_of_cotangents():
    w = jax.device_put(W, REDUCED)
    back = jax.vjp(jax.jit(lambda a, b: b), w, w)[1]
    ct = jax.reshard(jnp.ones((2, 4)), P(unreduced={"x"}))
    assert [str(jax.typeof(c)) for c in back(ct)] == ["float32[2,4]{U:x}"] * 2
    for wrong in (w, jnp.ones((2, 4))):
        with pytest.raises(ValueError, match="unexpected JAX type"):
            back(wrong)


KINDS = {"V": lambda x: x, "N": summed, "R": lambda x: reduced(summed(x)), "U": unreduced}
COTANGENTS = {"V": "V", "N": "N", "R": "U", "U": "R"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_backward_rules_give_cotangents_of_the_type(kind, given):
    """One that sums once too often is refused; taken as it is it would be multiplied."""
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (KINDS[given](lax.axis_index("x") + jnp.ones(4)),))

    def back(x):
        return jax.vjp(f, KINDS[kind](x))[1](KINDS[COTANGENTS[kind]](x))[0]

    if given == COTANGENTS[kind]:
        type_inside(back, cut(X.reshape(32)))
    else:
        with pytest.raises(ValueError, match="so the manual axis types do not match"):
            type_inside(back, cut(X.reshape(32)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_tangents_and_cotangents_inside_have_the_type(kind, given):
    def pushed(x):
        return jax.linearize(lambda x: 2 * x, KINDS[kind](x))[1](KINDS[given](x))

    def pulled(x):
        return jax.vjp(lambda x: 2 * x, KINDS[kind](x))[1](KINDS[given](x))

    def transposed(x):
        return jax.linear_transpose(lambda x: 2 * x, KINDS[kind](x))(KINDS[given](x))

    for f, right, error in ((pushed, kind, ValueError), (pulled, COTANGENTS[kind], ValueError),
                            (transposed, COTANGENTS[kind], TypeError)):
        run = smap(lambda x, f=f: jnp.zeros(len(str(f(x))) * 0), CUT, P())
        if given == right:
            jax.eval_shape(run, cut(X))
        else:
            with pytest.raises(error):
                jax.eval_shape(run, cut(X))


def test_branches_leave_the_same_sums_open():
    for one, other in (("U", "N"), ("R", "N"), ("U", "R")):
        with pytest.raises(TypeError, match="manual axis types do not match"):
            type_inside(lambda x, one=one, other=other: lax.cond(
                True, lambda: KINDS[one](x), lambda: KINDS[other](x)), cut(X))


@pytest.mark.skipif(jaxlib_api.LOSES_OPEN_SUMS, reason="is refused, as it would be summed twice")
def test_scans_leave_sums_open():
    """One sum over devices, behind the loop."""
    w, x = jax.device_put(np.eye(4, dtype="f4"), REDUCED), cut(X)

    def loss(w, x):
        return lax.scan(lambda c, _: (jnp.sin(c @ w), None), x, None, length=3)[0].sum()

    f = jax.jit(lambda w, x: jax.reshard(jax.grad(loss)(w, x), P()))
    text = f.lower(w, x).compile().as_text()
    assert text.count(" all-reduce(") + text.count(" all-reduce-start(") == 1
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())):
        want = jax.grad(loss)(jnp.eye(4), jnp.asarray(X))
    np.testing.assert_allclose(f(w, x), want, rtol=1e-4, atol=1e-4)
    stacked = jax.jit(jax.grad(lambda w: lax.scan(lambda c, r: (c * r, c), w[0], w)[1].sum()))(w)
    assert "{U:x}" in str(jax.typeof(stacked))


@pytest.mark.skipif(not jaxlib_api.LOSES_OPEN_SUMS, reason="it leaves them open")
@pytest.mark.parametrize("f", [
    lambda y: lax.fori_loop(0, 3, lambda i, c: c * 2, y),
    lambda y: lax.cond(True, lambda y: 2 * y, lambda y: y, y),
])
def test_jaxlibs_that_sum_twice_in_loops_and_branches_are_named(f):
    with pytest.raises(NotImplementedError, match=r"jaxlib 0.7.* sums along \['x'\]"):
        jax.jit(lambda x: f(jax.reshard(x, P(unreduced={"x"}))))(X)
