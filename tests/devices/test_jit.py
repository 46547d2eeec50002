"""jit over meshes: arguments, in_shardings, out_shardings, constraints."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.pjit import pjit
from pyjx.lax import with_sharding_constraint
from pyjx.sharding import AbstractMesh, AxisType, NamedSharding, SingleDeviceSharding
from pyjx.sharding import PartitionSpec as P

pytestmark = pytest.mark.filterwarnings("ignore:backend and device", "ignore:jax.experimental.pjit")


@pytest.fixture
def rows(mesh):
    return NamedSharding(mesh, P("x", None))


@pytest.fixture
def x(rows):
    return jax.device_put(jnp.arange(64.).reshape(8, 8), rows)


def test_programs_run_where_their_arguments_are(x, rows):
    f = jax.jit(lambda x: (x * 2, x.sum(), x.T, x @ x))
    for _ in range(3):  # by Python, then by C++
        doubled, total, transposed, product = f(x)
        assert doubled.sharding == rows
        assert total.sharding == NamedSharding(rows.mesh, P()) and total == 2016
        assert transposed.sharding.spec == P(None, "x")
        np.testing.assert_array_equal(product, np.asarray(x) @ np.asarray(x))
    assert (x + 1).sharding == rows and jnp.sin(x).sharding == rows  # operations too


def test_in_and_out_shardings(mesh):
    f = jax.jit(lambda x: x + 1, in_shardings=NamedSharding(mesh, P("x")),
                out_shardings=NamedSharding(mesh, P("y")))
    for given in (jnp.ones(8), np.ones(8, "f4"),
                  jax.device_put(np.ones(8), NamedSharding(mesh, P("x")))):
        for _ in range(3):
            out = f(given)
            assert out.sharding == NamedSharding(mesh, P("y")) and out.tolist() == [2] * 8
    assert jax.eval_shape(f, jnp.ones(8)).sharding == NamedSharding(mesh, P("y"))
    compiled = f.lower(jnp.ones(8)).compile()
    assert compiled.input_shardings[0] == (NamedSharding(mesh, P("x")),)
    assert compiled.output_shardings == NamedSharding(mesh, P("y"))
    assert compiled(jnp.ones(8)).sharding == NamedSharding(mesh, P("y"))


def test_arguments_that_are_cut_alike_move_to_the_devices_that_are_asked_for():
    devices = jax.devices()
    first, last, backwards = [
        jax.make_mesh((4,), ("x",), devices=some, axis_types=(AxisType.Auto,))
        for some in (devices[:4], devices[4:], devices[3::-1])]
    for here, there in ((first, last), (last, first), (first, backwards)):
        f = jax.jit(lambda x: x + 1, in_shardings=NamedSharding(there, P("x")))
        given = jax.device_put(np.ones(8), NamedSharding(here, P("x")))
        for _ in range(3):
            out = f(given)
            assert out.sharding == NamedSharding(there, P("x")) and out.tolist() == [2] * 8
        with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
            f(jax.device_put(np.ones(8), NamedSharding(here, P())))


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda s: jax.jit(lambda x, y=1: x, in_shardings=(None,))(1, y=2), ValueError, "kwargs when"),
    (lambda s: jax.jit(lambda x: x, in_shardings=(None, None))(1), ValueError, "a tree prefix"),
    (lambda s: jax.jit(lambda x: x, in_shardings={"x": None})(1), ValueError, "a tree prefix"),
    (lambda s: jax.jit(lambda x: x, out_shardings=(None,))(1), ValueError, "a tree prefix"),
    (lambda s: jax.jit(lambda x: x, out_shardings=[None])((1,)), ValueError, "a tree prefix"),
    (lambda s: jax.jit(lambda x: x, in_shardings=s), ValueError, "Unconstrained dims"),
    (lambda s: jax.jit(lambda x: x, out_shardings=(s,)), ValueError, "Unconstrained dims"),
    (lambda s: jax.jit(lambda x: x, in_shardings=s.spec), ValueError, "Unconstrained dims"),
])
def test_shardings_that_are_refused(mesh, call, error, message):
    with pytest.raises(error, match=message):
        call(NamedSharding(mesh, P(P.UNCONSTRAINED, "x")))


def test_a_list_of_shardings_of_arguments(mesh):
    rows = NamedSharding(mesh, P("x"))
    out = jax.jit(lambda x, y: x + y, in_shardings=[rows, None])(np.ones(8), 1.)
    assert out.tolist() == [2] * 8 and out.sharding.device_set == set(mesh.devices.flat)


def test_a_constraint_over_the_shape_of_an_arrays_mesh(mesh):
    x = jax.device_put(np.ones((8, 4), "f4"), NamedSharding(mesh, P("x", "y")))
    shape = mesh.abstract_mesh
    constrain = jax.lax.with_sharding_constraint
    assert constrain(x, NamedSharding(shape, P("y"))).sharding == NamedSharding(mesh, P("y"))
    free = constrain(x, NamedSharding(shape, P(P.UNCONSTRAINED, None)))
    assert free.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
    taken = constrain(x, NamedSharding(shape, P(P.UNCONSTRAINED, "x")))
    assert taken.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2)
    other = NamedSharding(jax.sharding.AbstractMesh((8,), ("z",), AxisType.Auto), P("z"))
    for value, target, error, message in (
            (np.ones(8), NamedSharding(shape, P()), ValueError, "to be a `jax.Array`"),
            (jnp.ones(8), NamedSharding(shape, P()), TypeError, "must be a `NamedSharding`"),
            (x, other, ValueError, "Mesh shape of the input")):
        with pytest.raises(error, match=message):
            constrain(value, target)
    with pytest.raises(ValueError, match=r"not implemented for `jax.sharding.AbstractMesh`"):
        jax.device_put(x, NamedSharding(shape, P("y")))


def test_shardings_are_prefixes_of_trees(mesh):
    cut, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    f = jax.jit(lambda a, b: {"a": a, "b": [b["p"], b["q"]]}, in_shardings=(cut, {"p": whole,
                                                                                 "q": None}),
                out_shardings={"a": None, "b": cut})
    out = f(jnp.ones(4), {"p": jnp.ones(4), "q": jnp.ones(4)})
    assert [x.sharding for x in (out["a"], *out["b"])] == [cut, cut, cut]
    with pytest.raises(ValueError, match="must be a tree prefix"):
        jax.jit(lambda a, b: a, in_shardings=(cut,))(1., 2.)
    with pytest.raises(ValueError, match="does not support kwargs"):
        jax.jit(lambda a: a, in_shardings=(cut,))(a=jnp.ones(8))
    with pytest.raises(TypeError, match="expected to be PartitionSpec instances or None"):
        jax.jit(lambda a: a, in_shardings=("x",))


def test_nested_and_differentiated(mesh):
    cut = NamedSharding(mesh, P("x"))
    inner = jax.jit(lambda x: jnp.sin(x) * x, in_shardings=cut, out_shardings=cut)
    x = jnp.arange(8.)
    expected = np.cos(x) * x + np.sin(x)
    np.testing.assert_allclose(jax.grad(lambda x: inner(x).sum())(x), expected, rtol=1e-6)
    outer = jax.jit(jax.grad(lambda x: inner(x).sum()))
    np.testing.assert_allclose(outer(x), expected, rtol=1e-6)
    assert outer.lower(x).as_text().count("sdy.sharding_constraint") >= 2
    np.testing.assert_allclose(jax.vmap(inner)(jnp.stack([x, x]))[1], np.sin(x) * x, rtol=1e-6)


def test_constraints(mesh, x):
    columns = NamedSharding(mesh, P(None, "y"))
    f = jax.jit(lambda x: with_sharding_constraint(x * 2, columns) + 1)
    assert "sdy.sharding_constraint %1 <@mesh, [{}, {\"y\"}]>" in f.lower(x).as_text()
    assert f(x).sharding == columns
    assert with_sharding_constraint(x, columns).sharding == columns  # eager
    free = NamedSharding(mesh, P(P.UNCONSTRAINED, "y"))
    text = jax.jit(lambda x: with_sharding_constraint(x, free)).lower(x).as_text()
    assert '<@mesh, [{?}, {"y"}]>' in text
    assert with_sharding_constraint(x, free).sharding == NamedSharding(mesh, P("x", "y"))
    with jax.set_mesh(mesh):
        assert jax.jit(lambda x: with_sharding_constraint(x, P("y")))(jnp.ones(8)).sharding.spec \
            == P("y")
    with pytest.raises(RuntimeError, match="requires a non-empty mesh in context"):
        jax.jit(lambda x: with_sharding_constraint(x, P("y")))(jnp.ones(8))
    with pytest.raises(ValueError, match="rank at least 3"):
        with_sharding_constraint(x, NamedSharding(mesh, P("x", None, "y")))


def test_the_mesh_that_is_set(mesh):
    with jax.set_mesh(mesh):
        out = jax.jit(lambda x: x + 1, out_shardings=P("x"))(jnp.ones(8))
        assert out.sharding == NamedSharding(mesh, P("x"))
        assert jax.jit(lambda x: x + 1)(1.).sharding == NamedSharding(mesh, P())
    assert len(jax.jit(lambda x: x + 1)(1.).devices()) == 1


def test_abstract_meshes_get_the_devices_of_others(mesh, x):
    auto = AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    abstract = NamedSharding(auto, P(None, "y"))
    out = jax.jit(lambda x: with_sharding_constraint(x, abstract))(x)
    assert out.sharding == NamedSharding(mesh, P(None, "y"))


def test_lowering_for_described_arguments(rows):
    lowered = jax.jit(lambda x: x * 2).lower(jax.ShapeDtypeStruct((8, 8), "float32",
                                                                  sharding=rows))
    text = lowered.as_text()
    assert "mhlo.num_partitions = 8" in text
    assert 'sdy.mesh @mesh = <["x"=4, "y"=2]>' in text
    assert '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}' in text
    assert lowered.compile().output_shardings == rows


def test_constants_are_moved_to_where_the_program_runs(mesh, x):
    y = jax.device_put(np.ones(8, "f4"), NamedSharding(mesh, P("y")))
    one = jax.device_put(np.ones(8, "f4"), jax.devices()[1])
    for f in (jax.jit(lambda a: a * y), jax.jit(lambda a: a * one)):
        for _ in range(2):
            assert len(f(2.).devices()) == 1 and float(f(2.)[7]) == 2
            assert f(jax.device_put(2., jax.devices()[2])).devices() == {jax.devices()[2]}
            np.testing.assert_array_equal(f(x), x)
            assert f(x).devices() == x.devices()
    big = np.arange(64, dtype="f4").reshape(8, 8)
    np.testing.assert_array_equal(jax.jit(lambda a: a + big)(x), 2 * big)


def test_donation(mesh, rows):
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jax.device_put(jnp.zeros((8, 8)), rows)
    f(x)
    assert x.is_deleted()


def test_errors(mesh, x):
    cut = NamedSharding(mesh, P("x"))
    with pytest.raises(ValueError, match="Sharding passed to jit does not match the sharding on"):
        jax.jit(lambda a: a, in_shardings=cut)(jax.device_put(jnp.ones(8),
                                                              NamedSharding(mesh, P("y"))))
    with pytest.raises(ValueError, match=r"Received incompatible devices for jitted computation. "
                       r"Got argument a of .* with shape float32\[8,8\] and with device ids \[0, 1"
                       r".* and argument b .* device ids \[0\] on platform CPU"):
        jax.jit(lambda a, b: (a, b))(x, jax.device_put(1., jax.devices()[0]))
    with pytest.raises(ValueError, match="Sharding passed to jit does not match the sharding on"):
        jax.jit(lambda a: a, in_shardings=cut)(jax.device_put(jnp.ones(8), jax.devices()[1]))
    with pytest.raises(ValueError, match="key path a is incompatible with its sharding annotation"):
        jax.jit(lambda a: a, in_shardings=NamedSharding(mesh, P("x", "y")))(jnp.ones(8))
    with pytest.raises(RuntimeError, match=r"jit requires a non-empty mesh .* to in_shardings"):
        jax.jit(lambda a: a, in_shardings=P("x"))(jnp.ones(8))
    for f, what in ((jax.jit(lambda a: a, in_shardings=cut), "arguments with pytree key path a"),
                    (jax.jit(lambda a: {"r": a}, out_shardings=cut),
                     r"outputs with pytree key path result\['r'\]")):
        with pytest.raises(ValueError, match=f"One of pjit {what} was given the sharding .*array "
                           "axis 0 is partitioned 4 times, but the dimension size is 7"):
            f(jnp.ones(7))
    with pytest.raises(ValueError, match="cannot be: they say where it runs"):
        jax.jit(lambda a: a, in_shardings=cut, device=jax.devices()[0])


@pytest.mark.parametrize("old,new", [("x", None), (None, "x"), ("x", "y")])
@pytest.mark.parametrize("size", [64, 4096])  # through the host, and by a program
def test_what_lies_otherwise_outlives_the_source(mesh, old, new, size):
    old, new = NamedSharding(mesh, P(old)), NamedSharding(mesh, P(None, new))
    values = np.random.default_rng(0).normal(size=(size, size)).astype("f4")
    given = jax.jit(jnp.negative)(jax.device_put(values, old))
    moved = jax.device_put(given, new)
    spent = jax.jit(lambda x: 0 * x, donate_argnums=0)(given)
    np.testing.assert_array_equal(moved, -values)
    assert moved.sharding == new and not spent.any()


def test_resharding(mesh, x):
    for spec in (P("y", "x"), P(), P(("x", "y")), P(None, ("y", "x")), P("x", "y")):
        moved = jax.device_put(x, NamedSharding(mesh, spec))
        assert moved.sharding == NamedSharding(mesh, spec)
        np.testing.assert_array_equal(moved, x)
        again = jax.jit(lambda a: a * 1)(moved)
        assert again.sharding.is_equivalent_to(moved.sharding, 2)


def test_keys(mesh):
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh, P("x")))
    draws = jax.jit(jax.vmap(jax.random.normal))(keys)
    np.testing.assert_array_equal(
        draws, jax.vmap(jax.random.normal)(jax.random.split(jax.random.key(0), 8)))


def test_scans_and_outlined_blocks(mesh):
    """Repeated layers stay one function of the text, sharded too."""
    rows, columns = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "y"))

    def layer(x, w):
        return jnp.tanh(with_sharding_constraint(x @ w, rows))

    ws = [jax.device_put(np.random.RandomState(i).randn(16, 16).astype("f4"), columns)
          for i in range(6)]

    @jax.jit
    def loss(x, ws):
        for w in ws:
            x = layer(x, w)
        return (x ** 2).sum()

    x = jax.device_put(np.ones((8, 16), "f4"), rows)
    one = jax.devices()[0]
    host = jax.device_put(np.asarray(x), one), [jax.device_put(np.asarray(w), one) for w in ws]

    @jax.jit
    def plain(x, ws):
        for w in ws:
            x = jnp.tanh(x @ w)
        return (x ** 2).sum()

    for got, want in zip(jax.tree.leaves(jax.grad(loss, (0, 1))(x, ws)),
                         jax.tree.leaves(jax.grad(plain, (0, 1))(*host)), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-6)

    def step(x, w):
        return layer(x, w), x.sum()

    stacked = jax.device_put(np.stack([np.asarray(w) for w in ws]),
                             NamedSharding(mesh, P(None, None, "y")))
    out, sums = jax.jit(lambda x, ws: jax.lax.scan(step, x, ws))(x, stacked)
    expected = host[0]
    for w in host[1]:
        expected = jnp.tanh(expected @ w)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    assert sums.shape == (6,)


def test_callbacks_are_made_once_with_whole_values(mesh, x, capsys):
    seen = []

    @jax.jit
    def f(x):
        jax.debug.print("sum {s}", s=x.sum())
        jax.debug.callback(lambda v: seen.append(np.shape(v)), x)
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + x

    for _ in range(2):
        out = f(x)
        np.testing.assert_allclose(out, np.sin(x) + np.asarray(x), rtol=1e-6)
    jax.effects_barrier()
    assert capsys.readouterr().out == "sum 2016.0\n" * 2 and seen == [(8, 8)] * 2
    order = []

    @jax.jit
    def g(x):
        for i in range(3):
            x = jax.experimental.io_callback(lambda v, i=i: (order.append(i), v + 1)[1],
                                             jax.ShapeDtypeStruct(x.shape, x.dtype), x,
                                             ordered=True)
        return x

    for _ in range(2):
        np.testing.assert_array_equal(g(x), np.asarray(x) + 3)
    assert order == [0, 1, 2] * 2
    with pytest.raises(ValueError, match="ordered effects are not supported for more than 1"):
        jax.jit(lambda x: (jax.debug.print("{}", x, ordered=True), x)[1])(x)


def test_foreign_functions_map_over_batches(mesh):
    stack = np.stack([np.eye(4, dtype="f4") * (i + 1) for i in range(8)])
    cut = NamedSharding(mesh, P("x"))
    values, vectors = jnp.linalg.eigh(jax.device_put(stack, cut))
    assert values.sharding.spec == P("x") and vectors.sharding.spec == P("x")
    np.testing.assert_allclose(values, np.arange(1, 9)[:, None] * np.ones(4), rtol=1e-6)
    whole = jnp.linalg.cholesky(jax.device_put(np.eye(8, dtype="f4") * 4, cut))
    np.testing.assert_allclose(whole, np.eye(8) * 2)


def test_constants_on_a_part_of_the_devices(mesh):
    halves = [NamedSharding(jax.sharding.Mesh(np.array(jax.devices()[a:a + 4]), ("h",)), P("h"))
              for a in (0, 4)]
    backwards = NamedSharding(jax.sharding.Mesh(np.array(jax.devices()[3::-1]), ("h",)), P("h"))
    x = jax.device_put(np.arange(8, dtype="f4"), halves[0])
    for where in (halves[1], backwards):
        captured = jax.device_put(np.arange(8, dtype="f4"), where)
        np.testing.assert_array_equal(jax.jit(lambda a, c=captured: a + c)(x), 2. * np.arange(8))


def test_abstract_meshes_need_their_number_of_devices(mesh):
    over_eight = jax.shard_map(lambda x: jax.lax.psum(x, "e"), mesh=AbstractMesh((8,), ("e",)),
                               in_specs=P(), out_specs=P(), check_vma=False)
    for given in (np.ones(8, "f4"), jax.device_put(np.ones(8, "f4"), jax.devices()[1])):
        with pytest.raises(ValueError, match="has 8 devices, and runs on 1"):
            jax.jit(over_eight)(given)


def test_the_device_asked_for(mesh, x):
    third = jax.devices()[2]
    f = jax.jit(lambda a: a + 1, device=third)
    for value in (x, jax.device_put(1., jax.devices()[5]), 1.):
        assert f(value).devices() == {third}
        assert f.lower(value).compile()(value).devices() == {third}
    for g in (f, jax.jit(lambda a: a + 1, backend="cpu")):
        with jax.set_mesh(mesh), pytest.raises(ValueError, match="when backend or device is also"):
            g(1.)


FOREIGN = {
    "one device": lambda mesh: jax.devices()[0],
    "other devices": lambda mesh: NamedSharding(mesh.update(devices=mesh.devices[::-1]), P("x")),
    "fewer": lambda mesh: NamedSharding(jax.sharding.Mesh(jax.devices()[:2], ("x",)), P("x")),
}


@pytest.mark.filterwarnings("ignore:.with mesh")
@pytest.mark.parametrize("name", FOREIGN)
def test_the_mesh_that_is_set_is_where_programs_run(mesh, name):
    there = jax.device_put(np.ones(8, "f4"), FOREIGN[name](mesh))
    for f in (jax.jit(lambda v: v * 2), jnp.sum, lambda v: v + 1):
        with jax.set_mesh(mesh), pytest.raises(
                ValueError, match=r"incompatible devices .* context mesh .* argument"):
            f(there)
    with jax.set_mesh(mesh):  # moving is what is asked for
        assert jax.device_put(there, NamedSharding(mesh, P("x"))).tolist() == [1] * 8
    with mesh:  # the statement is no word to jit, but to pjit
        assert jax.jit(lambda v: v * 2)(there).tolist() == [2] * 8
        with pytest.raises(ValueError, match=r"incompatible devices .* context mesh"):
            pjit(lambda v: v * 2)(there)


@pytest.mark.filterwarnings("ignore:.with mesh")
def test_pjit_on_the_mesh_of_a_with_statement(mesh):
    one = jax.sharding.Mesh(jax.devices()[:1], ("x",))
    with mesh:
        for out in (pjit(jnp.tanh)(jnp.arange(8.)), pjit(lambda: 3)()):
            assert out.sharding == NamedSharding(mesh, P())
        f = pjit(lambda v: v + 1, in_shardings=P("x"), out_shardings=None)
        assert f(np.ones((8, 2))).sharding == NamedSharding(mesh, P())
        assert pjit(lambda v: v, in_shardings=None)(np.ones(8)).sharding == NamedSharding(mesh, P())
        with pytest.raises(ValueError, match="when backend or device is also specified"):
            pjit(lambda v: v, device=jax.devices()[0])(1.)

        def nested(v):
            with one:
                return pjit(lambda w: w + 1)(v)

        with pytest.raises(ValueError, match="cannot change the size of the mesh"):
            pjit(nested)(np.ones(8))
    assert pjit(lambda v: v, in_shardings=None)(1.).devices() == {jax.devices()[0]}


def test_what_is_on_other_devices_is_named(mesh):
    x = jax.device_put(np.ones(8), jax.devices()[5])
    pair = NamedSharding(jax.sharding.Mesh(jax.devices()[:2], ("x",)), P("x"))
    for f, what in ((jax.jit(lambda v: with_sharding_constraint(v, pair)), "_constraint inside"),
                    (jax.jit(lambda v: v, out_shardings=pair), "output sharding"),
                    (jax.jit(lambda v: jax.device_put(v, pair)), "device_put inside jit")):
        with pytest.raises(ValueError, match=rf"argument v .*ids \[5\].*{what}.*ids \[0, 1\]"):
            f(x)
    with jax.set_mesh(mesh):
        for what in ("in_shardings", "out_shardings"):
            with pytest.raises(ValueError, match=f"A single {what} specification"):
                jax.jit(lambda v: v, **{what: P("x", "x")})(np.ones((8, 8)))


def test_mapped_device_put(mesh):
    row = NamedSharding(mesh, P("x"))
    batch = jnp.ones((3, 8))
    out = jax.jit(jax.vmap(lambda r: jax.device_put(r, row)))(batch)
    assert out.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2)


def test_transforms_before_any_sharding_is_named(mesh):
    late = NamedSharding(mesh, P("x"))
    with jax.set_mesh(mesh):
        out = jax.jit(lambda a: with_sharding_constraint(jnp.fft.fft(a).real, late))(jnp.ones(8))
    np.testing.assert_allclose(out, [8] + [0] * 7, atol=1e-6)


def test_parts_go_from_device_to_device(mesh, monkeypatch):
    """What a device with memory of its own has does not pass through the host."""
    from pyjx.runtime import transfers

    monkeypatch.setattr(transfers, "_is_read", lambda x, sharding: False)
    monkeypatch.setattr(transfers, "value", None)
    one = jax.device_put(np.arange(8, dtype="f4"), jax.devices()[3])
    everywhere = jax.device_put(one, NamedSharding(mesh, P()))
    half = jax.make_mesh((2, 2), ("x", "y"), devices=jax.devices()[2:6])
    rows = jax.device_put(everywhere, NamedSharding(mesh, P("y")))
    fewer = jax.device_put(rows, NamedSharding(half, P("x")))
    back = jax.device_put(fewer, NamedSharding(mesh, P("y")))
    for x in (everywhere, rows, fewer, back):
        for shard in x.addressable_shards:
            assert np.asarray(shard.data).tolist() == list(range(8))[shard.index[0]]
    monkeypatch.undo()
    np.testing.assert_array_equal(jax.device_put(fewer, NamedSharding(mesh, P("x"))), np.arange(8))


def test_a_device_assignment_keeps_the_names_of_each_mesh(mesh, x):
    other = jax.sharding.Mesh(mesh.devices.reshape(2, 4), ("a", "b"))
    lowered = jax.jit(lambda x, y: x + y, out_shardings=NamedSharding(other, P("b"))).lower(
        x, jax.device_put(np.ones((8, 8), "f4"), NamedSharding(mesh, P("x"))))
    turned = tuple(jax.devices()[::-1])
    compiled = lowered.compile(device_assignment=turned)
    assert compiled.output_shardings.mesh.axis_names == ("a", "b")
    assert tuple(compiled.output_shardings._internal_device_list) == turned


@pytest.mark.parametrize("shape", [(1, 1), (4, 2)])
def test_results_do_not_take_shardings_of_more_dimensions(shape):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:shape[0] * shape[1]]).reshape(shape),
                             ("x", "y"))
    x = jax.device_put(np.ones((8, 8), "f4"),
                       NamedSharding(mesh, P("x" if shape == (1, 1) else None, None)))
    f = jax.jit(lambda x: (x, x.sum(0)))
    _, total = f(x)
    assert len(total.sharding.spec) <= 1
    np.testing.assert_array_equal(jax.jit(lambda t: t + 1)(total), np.full(8, 9))


def test_arrays_like_others_lie_as_these(mesh):
    rows = NamedSharding(mesh, P(mesh.axis_names[0]))
    x = jax.device_put(jnp.ones((8, 4)), rows)
    for like in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: jnp.full_like(x, 2),
                 lambda x: jax.lax.full_like(x, 2)):
        assert like(x).sharding == rows
        assert like(jax.ShapeDtypeStruct((8, 4), "f4", sharding=rows)).sharding == rows
    second = jax.device_put(jnp.ones(3), jax.devices()[1])
    assert jnp.zeros_like(second).devices() == {jax.devices()[1]}
    assert jnp.zeros_like(jnp.ones(3)).devices() == {jax.devices()[0]}


# -- arguments that do not fit ---------------------------------------------------------------------


def test_a_compiled_program_refuses_arguments_that_lie_otherwise(mesh):
    compiled = jax.jit(lambda x: x * 2, in_shardings=NamedSharding(mesh, P("x", "y"))).lower(
        np.ones((8, 4), np.float32)).compile()
    compiled(np.ones((8, 4), np.float32))
    x = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("y", "x")))
    with pytest.raises(ValueError, match="compiled for input shardings that disagree"):
        compiled(x)
    one = jax.jit(lambda x: x + 1).lower(x=jax.ShapeDtypeStruct((3,), np.float32)).compile()
    with pytest.raises(ValueError, match="compiled for input shardings that disagree"):
        one(x=jax.device_put(np.ones(3, np.float32), jax.devices()[1]))


def test_a_constraint_that_does_not_divide(mesh):
    rows = NamedSharding(mesh, P("x"))
    f = jax.jit(lambda x: jax.lax.with_sharding_constraint(2 * x, rows) + 1)
    for n in (3, 6):
        x = np.arange(n, dtype="f4")
        np.testing.assert_array_equal(f(x), 2 * x + 1)
        np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: (f(x) ** 2).sum()))(x),
                                      8 * x + 4)
    with pytest.raises(ValueError, match="the dimension size is 6"):
        jax.lax.with_sharding_constraint(np.ones(6), rows)


def test_parts_of_wrong_shape_or_dtype_are_refused(mesh):
    cut, x = NamedSharding(mesh, P("x", "y")), np.ones((8, 4), np.float32)
    with pytest.raises(ValueError, match=r"Expected shard shape \(2, 2\) doesn't match"):
        jax.make_array_from_callback(x.shape, cut, lambda i: x)
    with pytest.raises(ValueError, match="must match the dtype of the addressable shards"):
        jax.make_array_from_callback(x.shape, cut, lambda i: x[i], dtype="bfloat16")


# -- device_put in a program -----------------------------------------------------------------------


@pytest.mark.parametrize("types", ["Auto", "Explicit"])
def test_a_known_value_is_put_by_the_program(types):
    mesh = jax.make_mesh((4, 2), ("x", "y"), (jax.sharding.AxisType[types],) * 2)
    known, rows = np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x"))
    with jax.set_mesh(mesh):
        out = jax.jit(lambda: jax.device_put(known, P("x")))()
        assert out.sharding == rows
    f = jax.jit(lambda x: x + jax.device_put(known, rows))
    if types == "Auto":
        np.testing.assert_array_equal(f(known), 2 * known)
    assert f(jax.device_put(known, rows)).sharding.mesh == mesh
    assert "device_put" in str(jax.make_jaxpr(lambda: jax.device_put([known, known], rows))())


def test_specs_in_a_program_need_a_mesh():
    for f in (lambda x: jax.device_put(x, P("x")), lambda x: jax.device_put(np.ones(8), P("x"))):
        with pytest.raises(ValueError, match="Please set a mesh via"):
            jax.jit(f)(np.ones(8))


def test_an_out_sharding_brings_its_devices():
    """Where no mesh is set, that of `out_sharding` has the devices."""
    mesh = jax.make_mesh((8,), ("z",))
    x = jax.device_put(np.arange(16, dtype="f4").reshape(8, 2), NamedSharding(mesh, P("z")))
    rows = x.at[jnp.array([1, 2])].get(out_sharding=NamedSharding(mesh, P()))
    assert str(jax.typeof(rows)) == "float32[2,2]" and rows.sharding.mesh == mesh
    np.testing.assert_array_equal(rows, [[2, 3], [4, 5]])


@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f])
def test_constraints_name_auto_axes(wrap):
    explicit = jax.make_mesh((4, 2), ("x", "y"))
    mixed = explicit.update(axis_types=(AxisType.Auto, AxisType.Explicit))
    x = jnp.ones((8, 4))

    def constrained(x, mesh, *spec):
        return wrap(lambda x: with_sharding_constraint(x, NamedSharding(mesh, P(*spec))))(x)

    for mesh, spec in ((explicit, ("x",)), (explicit, (None, "y")), (mixed, ("x", "y"))):
        with pytest.raises(ValueError, match=r"can only refer to Auto axes of the mesh.*You "
                                             "probably meant to use `reshard`"):
            constrained(x, mesh, *spec)
    rows = NamedSharding(mixed, P("x"))
    assert constrained(x, mixed, "x").sharding.is_equivalent_to(rows, 2)
    constrained(jax.device_put(x, NamedSharding(explicit, P("x"))), explicit)  # says nothing


def test_specs_where_no_mesh_is_set():
    explicit = jax.make_mesh((8,), ("x",))
    x = jax.device_put(np.arange(8.), NamedSharding(explicit, P("x")))
    for call in (lambda: x.at[0].get(out_sharding=P()),
                 lambda: x.at[jnp.array([0])].add(1, out_sharding=P("x"))):
        with pytest.raises(ValueError, match="Please pass a NamedSharding instance or enter into "
                                             "a mesh context"):
            call()
    assert x.at[3].get(out_sharding=NamedSharding(explicit, P())) == 3
    double = jax.sharding.auto_axes(lambda x: 2 * x, out_sharding=P("x"))
    for f in (double, jax.jit(double)):  # over the mesh of the argument, if it has one
        assert f(x).sharding.spec == P("x") and f(np.ones(8)).tolist() == [2] * 8


def test_messages_say_what_to_give(mesh, rows):
    def message(call):
        with pytest.raises((TypeError, ValueError, NameError)) as raised:
            call()
        return str(raised.value)

    for spec in ("x", ("x",), ["x"]):
        assert "is a PartitionSpec, such as jax.P('x'); got" in message(
            lambda: NamedSharding(mesh, spec))  # noqa: B023
    assert "such as (8,); got 8" in message(lambda: jax.make_mesh(8, "x"))
    assert "jax.devices('cpu')[0]" in message(lambda: jax.device_put(1, "cpu"))
    odd = message(lambda: jax.device_put(np.ones((9, 4)), rows))
    assert "was given the sharding NamedSharding(" in odd and "Pad the array" in odd
    assert "({'x', 'y'}), but:\n\n  in_specs refers to 'z', which the mesh has not: its axes are " \
        "('x', 'y')" in message(lambda: jax.shard_map(
            lambda x: x, mesh=mesh, in_specs=P("z"), out_specs=P("x"))(np.ones(8)))
    assert "axes here are ['x', 'y']; name one of them" in message(lambda: jax.shard_map(
        lambda x: jax.lax.psum(x, "z"), mesh=mesh, in_specs=P("x"), out_specs=P())(np.ones(8)))


def test_a_program_that_moves_values_needs_devices():
    with jax.set_mesh(jax.make_mesh((8,), ("x",))):
        program = jax.make_jaxpr(lambda v: jax.reshard(v, jax.P("x")))(jnp.ones((8, 3)))
    with pytest.raises(ValueError, match="no devices to put an array on"):
        jax.core.eval_jaxpr(program.jaxpr, program.consts, np.ones((8, 3), np.float32))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_in_shardings_by_names_of_axes_and_arguments_along_them(kind):
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind,) * 2)
    x = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("y")))
    with jax.set_mesh(mesh):
        f = jax.jit(lambda x: x * 2, in_shardings=P("y"))
        for _ in range(3):
            assert f(x).sharding.is_equivalent_to(x.sharding, 2)
        with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
            jax.jit(lambda x: x * 2, in_shardings=P("x"))(x)


def test_arguments_of_one_device_go_where_in_shardings_ask(mesh):
    """What `in_shardings` asks of an argument on one device is compared by its parts, as in JAX:
    what is not to be cut is moved."""
    x, devices = np.arange(16.0, dtype=np.float32).reshape(8, 2), jax.devices()
    for asked in (NamedSharding(mesh, P()), SingleDeviceSharding(devices[2])):
        f = jax.jit(lambda x: x * 2, in_shardings=asked)
        for i in range(4):  # by Python, then by C++
            out = f(jax.device_put(x + i, devices[i]))
            assert out.sharding.is_equivalent_to(asked, 2)
            np.testing.assert_array_equal(out, (x + i) * 2)
    f = jax.jit(lambda x: x * 2, in_shardings=NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
        f(jax.device_put(x, devices[0]))


def test_types_of_lowered_results_have_devices():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    x = jax.device_put(np.ones((8, 4)), NamedSharding(mesh, P("x")))
    assert jax.jit(lambda x: x * 2).lower(x).out_info.sharding == x.sharding.update(
        spec=P("x", None))


@pytest.mark.parametrize("n", [1, 2])
def test_results_have_the_names_of_the_first_argument(n):
    """Where XLA's choice has several names, as along axes of size 1, JAX takes these."""
    one = jax.make_mesh((n, 1), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2,
                        devices=jax.devices()[:n])

    def put(shape, *spec):
        return jax.device_put(jnp.ones(shape), NamedSharding(one, P(*spec)))

    def specs(f, *args):
        return [out.sharding.spec for out in jax.jit(f)(*args)]

    rows, columns, vector = put((4, 4), "y"), put((4, 4), None, "y"), put((4,), "y")
    outs = specs(lambda a, b: (a + b, b * 2, a.sum(0), b.ravel()), rows, columns)
    assert outs == [P("y"), P("y"), P(), P()]
    assert specs(lambda a, b: (a + b, b * 2), columns, rows) == [P(None, "y")] * 2
    assert specs(lambda a, b: (a * 2, b * 2, b[0]), vector, rows) == [P("y"), P(), P("y")]
    assert specs(lambda a, b: (b * 2, b[None]), rows, columns) == [P(None, "y"), P()]


def test_pjit_reads_the_mesh_of_a_with_statement(mesh):
    f = pjit(lambda x: x * 2, in_shardings=P("x"), out_shardings=P("y"))
    rows = jax.device_put(np.ones((8, 2)), NamedSharding(mesh, P("x")))
    with pytest.deprecated_call(), mesh:
        for value in (np.ones((8, 2)), rows):
            assert f(value).sharding.is_equivalent_to(NamedSharding(mesh, P("y")), 2)
    with pytest.raises(RuntimeError, match="requires a non-empty mesh in context"):
        f(np.ones((8, 2)))


def test_keys_lie_on_the_mesh_that_is_set(mesh):
    with jax.set_mesh(mesh):
        for made in (jax.random.key(0), jax.random.PRNGKey(0)):
            assert made.sharding == NamedSharding(mesh, P())


# -- lowered before devices are known --------------------------------------------------------------

SHAPE = AbstractMesh((4,), ("a",), (AxisType.Auto,))
ROWS = NamedSharding(SHAPE, P("a"))
STRUCT = jax.ShapeDtypeStruct((8,), "float32", sharding=ROWS)


def lowered(x=STRUCT, platform="cpu", **options):
    return jax.jit(lambda v: v * 2 + np.arange(v.size), **options).trace(x).lower(
        lowering_platforms=(platform,))


@pytest.mark.parametrize("options", [{}, {"in_shardings": ROWS, "out_shardings": ROWS}])
def test_lowering_over_the_shape_of_a_mesh(options):
    program = lowered(**options)
    assert "num_partitions = 4" in program.as_text()
    devices = tuple(jax.devices()[2:6])
    compiled = program.compile(device_assignment=devices)
    there = NamedSharding(jax.sharding.Mesh(np.array(devices), ("a",)), P("a"))
    assert compiled.input_shardings[0][0] == there
    out = compiled(np.arange(8, dtype="f4"))
    assert out.tolist() == list(range(0, 24, 3)) and out.sharding.device_set == set(devices)
    assert not options or compiled.output_shardings == there
    explicit = NamedSharding(SHAPE.update(axis_types=AxisType.Explicit), P("a"))
    typed = lowered(STRUCT.update(sharding=explicit)).compile(device_assignment=devices)
    assert typed.output_shardings.spec == P("a")


def test_lowering_under_the_shape_of_a_mesh():
    plain = jax.ShapeDtypeStruct((8,), "float32")
    other = plain.update(sharding=NamedSharding(SHAPE.update(axis_sizes=(2,)), P("a")))
    with jax.sharding.use_abstract_mesh(SHAPE):
        assert "num_partitions = 4" in lowered(plain, "tpu").as_text()
        with pytest.raises(ValueError, match=r"same size across all shardings. Got context mesh"):
            lowered(other, "tpu")
        assert jax.jit(lambda v: v * 2)(np.ones(2)).tolist() == [2, 2]


def test_what_programs_without_devices_refuse():
    with pytest.raises(RuntimeError, match="device_assignment cannot be `None`"):
        lowered().compile()
    with pytest.raises(RuntimeError, match=r"Length of device_assignment \(1\)"):
        lowered().compile(device_assignment=jax.devices()[:1])
    with pytest.raises(ValueError, match="Passing lowering_platforms via"):
        jax.jit(jnp.sin).lower(STRUCT)
    with pytest.raises(ValueError, match="which has 4 devices"):
        jax.jit(jnp.sin, in_shardings=ROWS)(np.ones(8))
    with pytest.raises(ValueError, match="the dimension size is 6"):
        lowered(STRUCT.update(shape=(6,)))
    pair = NamedSharding(jax.sharding.Mesh(jax.devices()[:2], ("x",)), P("x"))
    program = jax.jit(jnp.sin).lower(STRUCT.update(sharding=pair))
    for count in (0, 1, 3):
        with pytest.raises(ValueError, match=r"device_assignment passed to `.compile` must match"):
            program.compile(device_assignment=jax.devices()[:count])


def test_device_put_gives_up_what_the_same_devices_take_in_another_order():
    devices = np.array(jax.devices())
    mesh = jax.sharding.Mesh(devices, "x")
    backwards, half = jax.sharding.Mesh(devices[::-1], "x"), jax.sharding.Mesh(devices[:4], "x")
    swapped = jax.sharding.Mesh(devices.reshape(2, 2, 2).swapaxes(0, 1).reshape(-1), "x")
    cut = NamedSharding(mesh, P("x"))

    def given_up(old, new):
        x, y = [jax.device_put(np.arange(8.0), old) for _ in range(2)]
        a, b = jax.device_put((x, y), new, donate=(True, False))
        assert (np.asarray(a) == np.arange(8.0)).all() and (a == b).all() and not y.is_deleted()
        return x.is_deleted()

    assert given_up(cut, NamedSharding(backwards, P("x")))
    assert given_up(cut, NamedSharding(swapped, P("x")))  # some parts stay where they are
    for new in (cut, NamedSharding(mesh, P()), NamedSharding(half, P("x")), devices[1]):
        assert not given_up(cut, new)
    assert not given_up(devices[0], devices[1])


def test_operators_on_two_devices_name_operands_as_functions_do():
    x, y = [jax.device_put(jnp.ones(3), d) for d in jax.devices()[:2]]
    with pytest.raises(ValueError, match=r"argument x of add with .* and argument y of add with"):
        x + y
    with pytest.raises(ValueError, match=r"argument x of matmul with .* and argument y of matmul"):
        x @ y


@pytest.mark.parametrize("fun", [
    lambda mesh: lambda x: with_sharding_constraint(x, NamedSharding(mesh, P("x"))),
    lambda mesh: jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P("x")),
], ids=["constraint", "shard_map"])
def test_a_program_that_brings_its_mesh_keeps_it_elsewhere(fun, mesh):
    x = jnp.arange(16.0)
    for platform in ("cpu", "cuda", "tpu"):
        lowered = jax.jit(fun(mesh)).trace(x).lower(lowering_platforms=(platform,))
        assert "num_partitions = 8" in lowered.as_text()
    program = jax.inspect.trace(fun(mesh), x)
    np.testing.assert_array_equal(program.compiled()(x), x)
    assert program.memory.argument * 4 == x.nbytes
    assert jax.inspect.measure(program, [x], 1).seconds > 0


def test_a_program_is_traced_lowered_and_compiled_over_the_mesh_it_is_given(mesh):
    x = jnp.arange(16.0)
    program = jax.inspect.trace(jax.shard_map(
        lambda x: jax.lax.all_gather(x, "x", tiled=True), in_specs=P("x"), out_specs=P(),
        check_vma=False), x, mesh=mesh, jit_options={"memory_budget": "1MiB"})
    assert "num_partitions = 8" in program.stablehlo() and "all-gather" in program.hlo_opt
    assert program.emit("html") and "live ranges" in program.emit("memory")
    np.testing.assert_array_equal(program.compiled()(x), x)
