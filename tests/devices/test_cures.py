"""What errors over several devices say is to be written, and that it serves."""

import traceback

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core import advice
from pyjx.core.frames import is_internal
from pyjx.experimental import multihost_utils
from pyjx.experimental.array_serialization import serialization
from pyjx.experimental.custom_partitioning import custom_partitioning
from pyjx.experimental.layout import Format, Layout
from pyjx.sharding import AxisType, Mesh, NamedSharding
from pyjx.sharding import PartitionSpec as P

X, V = np.arange(32, dtype=np.float32).reshape(8, 4), np.arange(8, dtype=np.float32)
AUTO = (AxisType.Auto,)
MESH, LINE = jax.make_mesh((8,), ("x",), AUTO), jax.make_mesh((8,), ("x",))
GRID = jax.make_mesh((4, 2), ("data", "model"), AUTO * 2)
TYPED = jax.make_mesh((4, 2), ("data", "model"))
TYPED_X = jax.device_put(X, NamedSharding(TYPED, P("data", "model")))
HALVES = [NamedSharding(jax.make_mesh((4,), ("x",), AUTO, devices=devices), P("x"))
          for devices in (jax.devices()[:4], jax.devices()[4:])]
ROWS = P("x")


def smap(f, in_specs=ROWS, out_specs=ROWS, **options):
    return jax.shard_map(f, in_specs=in_specs, out_specs=out_specs, **{"mesh": MESH, **options})


def gathered(x, to="reduced"):
    return lax.all_gather(x, "x", tiled=True, to=to)


def opened(x):
    return lax.pcast(x, "x", to="unreduced")


def line(f, out_specs=ROWS):
    """The function on the parts of an array whose type says that it is cut."""
    return smap(f, ROWS, out_specs, mesh=LINE)(jax.device_put(V, NamedSharding(LINE, ROWS)))


def set_mesh(mesh, call):
    with jax.set_mesh(mesh):
        return call()


def typed(call):
    """The call with an array that is cut along both axes of a mesh, which is set."""
    return lambda *more: set_mesh(TYPED, lambda: call(
        jax.device_put(X, P("data", "model")), *more))


def typed_rows():
    return jax.device_put(X, NamedSharding(TYPED, P("data")))


def convolved(x):
    return lax.conv(x[None, None], x[None, None], (1, 1), "SAME")


def tokens():
    return jax.device_put(np.zeros((4, 2), int), P("data"))


def apart():
    return jax.device_put(X, NamedSharding(MESH, P("x")))


def put_alone():
    return jax.device_put(jnp.ones((4, 1)), jax.devices()[0])


def for_mesh():
    like = jax.ShapeDtypeStruct((8,), "f4", sharding=NamedSharding(MESH, P("x")))
    return jax.jit(jnp.sin).lower(like).compile()


def along_x(f=abs, **given):
    with jax.set_mesh(MESH):
        return jax.smap(f, **{"in_axes": 0, "out_axes": 0, "axis_name": "x", **given})(V)


def partitioned(partition):
    f = custom_partitioning(lambda x: abs(x))
    f.def_partition(partition=partition, sharding_rule="i j -> i j",
                    infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding)
    return jax.jit(f)(apart())


def entered(context):
    with context:
        pass


# What is wrong, what is said, and for the most what is written then.
CASES = {
    "types-of-axes": (lambda: jax.make_mesh((4, 2), ("x", "y"), AxisType.Auto),
                      "(AxisType.Auto,) * 2", lambda: jax.make_mesh((4, 2), ("x", "y"), AUTO * 2)),
    "names-of-types": (lambda: jax.make_mesh((8,), ("x",), ("auto",)), "Give one of AxisType.Auto"),
    "names-first": (lambda: jax.make_mesh(("x", "y"), (4, 2)), "the sizes come first: make_mesh("),
    "sizes-of-mesh": (lambda: Mesh((4, 2), ("x", "y")), "jax.make_mesh((4, 2), ('x', 'y'))",
                      lambda: jax.make_mesh((4, 2), ("x", "y"))),
    "list-of-spec": (lambda: NamedSharding(MESH, [P("x")]), "such as P('x',);"),
    "no-spec": (lambda: NamedSharding(MESH, None), "NamedSharding(): spec must not be None"),
    "spec-left-out": (lambda: NamedSharding(MESH), "required positional argument: 'spec'"),
    "pspec": (lambda: NamedSharding(MESH, pspec=P("x")), "unexpected keyword argument 'pspec'"),
    "mesh-for-spec": (lambda: NamedSharding(MESH, MESH), "such as jax.P('x');"),
    "two-meshes": (lambda: TYPED_X + jax.device_put(X, NamedSharding(
        jax.make_mesh((8,), ("x",)), P("x"))), "Put them on one by jax.device_put."),
    "sums-along-parts": (lambda: jnp.cumsum(TYPED_X), "]. Call jax.reshard on it before"),
    "sums-along-rows": (lambda: jnp.cumsum(typed_rows()), "Give axis=1, or call jax.reshard on it",
                        lambda: jnp.cumsum(typed_rows(), axis=1)),
    "old-abstract-mesh": (lambda: jax.sharding.AbstractMesh((("x", 8),)),
                          "must be a sequence of names, such as ('x', 'y'), got None"),
    "parts-of-numpy": (lambda: jax.make_array_from_single_device_arrays(
        (8,), NamedSharding(MESH, P("x")), [*V.reshape(8, 1)]), "jax.device_put makes one.",
        lambda: jax.make_array_from_single_device_arrays((8,), NamedSharding(MESH, P("x")), [
            jax.device_put(x, d) for x, d in zip(V.reshape(8, 1), jax.devices(), strict=True)])),
    "devices": (lambda: jax.device_put(X, jax.devices()), "a sharding, jax.NamedSharding(mesh, "),
    "mesh": (lambda: jax.device_put(X, MESH), "jax.NamedSharding(mesh, jax.P('x'))",
             lambda: jax.device_put(X, jax.NamedSharding(MESH, jax.P("x")))),
    "array-first": (lambda: jax.device_put(jax.devices()[0], X), "float32[8,4]. The array comes"),
    "sharding": (lambda: jax.device_put(X, sharding=NamedSharding(MESH, P())), "mean 'device'?"),
    "spec-of-one": (lambda: jnp.ones(3).sharding.spec, "Use jax.NamedSharding(mesh, spec)"),
    "device-called": (lambda: jnp.ones(3).device(), "Use x.device, which is no method."),
    "shards": (lambda: jnp.ones(3).shards, "Use x.addressable_shards."),
    "positions": (lambda: jax.shard_map(lambda x: x, MESH, P("x"), P("x")),
                  "The arguments are f, *, out_specs, in_specs, mesh, axis_names, check_vma."),
    "by-name": (lambda: smap(lambda x: x)(x=V), "'x': what shard_map gives takes its arguments by"),
    "string-spec": (lambda: smap(lambda x: x, "x"), "Give jax.P('x')"),
    "sharding-spec": (lambda: smap(lambda x: x, NamedSharding(MESH, P("x"))), "Give P('x',)"),
    "no-out_specs": (lambda: smap(lambda x: (x, x), out_specs=(P("x"), None))(V),
                     "jax.P() is for what is the same on all devices."),
    "no-in_specs": (lambda: jax.shard_map(lambda x: x, mesh=MESH, out_specs=P("x"))(V),
                    "how arguments are cut: give in_specs."),
    "axis_names": (lambda: smap(lambda x: x, axis_names=("x",)), "write {'x'}",
                   lambda: smap(lambda x: x, axis_names={"x"})(V)),
    "axis_names-of-text": (lambda: smap(lambda x: x, axis_names="x"), "write {'x'}"),
    "misspelt-axis": (lambda: smap(lambda x: x, P("data"), P("data"), mesh=GRID,
                                   axis_names={"date"})(V), "Did you mean 'data'?"),
    "not-mapped": (lambda: smap(lambda x: x, P("model"), mesh=GRID, axis_names={"data"})(V),
                   "'model', which is none of the axis_names"),
    "other-mesh": (lambda: set_mesh(GRID, lambda: smap(lambda x: x)(V)), "or call it outside of",
                   lambda: smap(lambda x: x)(V)),
    "within": (lambda: smap(lambda x: smap(lambda x: x)(x))(V), "call the function itself",
               lambda: smap(lambda x: (lambda x: x)(x))(V)),
    "put-within": (lambda: smap(lambda x: jax.device_put(x, NamedSharding(MESH, P("x"))))(V),
                   "device_put: P('x',) contains manual axes, which shard_map maps over here",
                   lambda: smap(lambda x: jax.device_put(x, NamedSharding(MESH, P())))(V)),
    "name-first": (lambda: smap(lambda x: lax.psum("x", x))(V), "The array comes first, as"),
    "psum-axis": (lambda: smap(lambda x: lax.psum(x, axis="x"))(V), "Did you mean 'axis_name'?"),
    "no-axis": (lambda: lax.psum(V, "x"), "or `shard_map` over a mesh with such an axis"),
    "to-invarying": (lambda: smap(lambda x: lax.pcast(x, "x", to="invarying"))(V),
                     "by psum, pmax or all_gather(..., to='invarying')",
                     lambda: smap(lambda x: lax.pmax(x, "x"), out_specs=P())(V)),
    "sum-of-copies": (lambda: smap(lambda x: lax.psum(gathered(x), "x"), out_specs=P())(V),
                      "each device's copy is to count, cast it before: jax.lax.pcast(..., to='v",
                      lambda: smap(lambda x: lax.psum(lax.pcast(gathered(x), "x", to="varying"),
                                                      "x"), out_specs=P())(V)),
    "gathered-reduced": (lambda: smap(gathered, out_specs=P())(V),
                         "the same on all devices: make it by all_gather(..., to='invarying').",
                         lambda: smap(lambda x: gathered(x, "invarying"), out_specs=P())(V)),
    "gathered-explicit": (lambda: line(gathered),
                          "to='invarying'), or let out_specs be P(None, reduced={'x'}).",
                          lambda: line(gathered, P(None, reduced={"x"}))),
    "open-sum": (lambda: line(opened, P()), "Sum it by psum, or let out_specs be P(unreduced={'x'}",
                 lambda: line(opened, P(unreduced={"x"})),
                 lambda: line(lambda x: lax.psum(opened(x), "x"), P())),
    "said-reduced": (lambda: line(lambda x: lax.psum(x, "x"), P(reduced={"x"})),
                     "or cast what is the same on all by pcast(..., to='reduced').",
                     lambda: line(lambda x: lax.pcast(lax.psum(x, "x"), "x", to="reduced"),
                                  P(reduced={"x"}))),
    "said-unreduced": (lambda: line(abs, P(unreduced={"x"})),
                       "cast what differs from device to device by pcast(..., to='unreduced').",
                       lambda: line(opened, P(unreduced={"x"}))),
    "to-invariant": (lambda: smap(lambda x: lax.all_gather(x, "x", to="invariant"))(V),
                     "Did you mean 'invarying'?"),
    "static": (lambda: jax.jit(lambda x, n: x * n, static_argnums=1, in_shardings=(None, None))(
        X, 3), "an entry for each positional argument that is not static."),
    "auto": (lambda: set_mesh(GRID, lambda: jax.reshard(X, P("data"))), "jax.device_put puts arr",
             lambda: set_mesh(GRID, lambda: jax.device_put(X, P("data")))),
    "text": (typed(lambda x: jax.reshard(x, "data")), "A spec is jax.P('data').",
             typed(lambda x: jax.reshard(x, jax.P("data")))),
    "indivisible": (typed(lambda x: jax.reshard(jnp.ones(6), P("data"))), "Pad the array, or"),
    "set-within": (lambda: jax.jit(lambda x: set_mesh(MESH, lambda: x))(X), "around the call of"),
    "scanned": (typed(lambda x: lax.scan(lambda c, r: (c, r), 0.0, x)),
                "with P(None, 'model').",
                typed(lambda x: lax.map(lambda r: r, jax.reshard(x, P(None, "model"))))),
    "mapped": (typed(lambda x: jax.vmap(jnp.add)(x, X)), "Call jax.reshard on one of them before",
               typed(lambda x: jax.vmap(jnp.add)(x, jax.reshard(X, P("data"))))),
    "product": (typed(lambda x: x @ x.T), "out_sharding=...), give it as P(...), or call",
                typed(lambda x: jnp.matmul(x, x.T, out_sharding=P("data")))),
    "inner": (typed(lambda x: jnp.inner(x, x)), "or call jax.reshard on an operand before.",
              typed(lambda x: jnp.inner(x, jax.reshard(x, P())))),
    "convolved": (typed(lambda x: convolved(x)), "or call jax.reshard on the operands before.",
                  typed(lambda x: convolved(jax.reshard(x, P())))),
    "updated": (typed(lambda x: lax.dynamic_update_slice(x, jnp.ones((2, 4)), (0, 0))),
                "Call jax.reshard on one of them before, with P(...).",
                typed(lambda x: lax.dynamic_update_slice(
                    jax.reshard(x, P()), jnp.ones((2, 4)), (0, 0)))),
    "permuted": (typed(lambda x: jax.random.permutation(jax.random.key(0), x)),
                 "or call jax.reshard on the operand before.",
                 typed(lambda x: jax.random.permutation(jax.random.key(0), jax.reshard(x, P())))),
    "gathered": (typed(lambda x: jax.reshard(x, P(None, "model"))[tokens()]),
                 "or call jax.reshard on the operand and indices before.",
                 typed(lambda x: jax.reshard(x, P())[jax.reshard(tokens(), P())])),
    "gathered-at": (typed(lambda x: x[jax.reshard(tokens(), P())]), "on the operand before."),
    "gathered-by": (typed(lambda x: jax.reshard(x, P())[tokens()]), "on the indices before.",
                    typed(lambda x: jax.reshard(x, P())[jax.reshard(tokens(), P())])),
    "pmap-of-number": (lambda: jax.pmap(lambda x: x)(1.0), "without pmap, as nothing else is mapp"),
    "pmap-without-name": (lambda: jax.pmap(lambda x: lax.psum(x, "i"))(V), "axes here are []"),
    "pmap-static": (lambda: jax.pmap(lambda x, n: x, static_argnums=1), "'static_broadcasted_arg"),
    "pmap-asks": (lambda: jax.pmap(lambda n, x, **k: x if k["z"]["a"] > n else -x,
                                   static_broadcasted_argnums=0)(3, V, z={"a": V}),
                  "for pmap. This concrete value was not available in Python because it depends "
                  "on the value of the argument k['z']['a']."),
    "pmap-result": (lambda: jax.pmap(lambda x: {"k": "a"})(V), "<class 'str'> at output component"),
    "local-data": (lambda: jax.make_array_from_process_local_data(X, NamedSharding(MESH, P())),
                   "the sharding comes first, got float32[8,4] for it."),
    "no-data": (lambda: jax.make_array_from_callback((8,), NamedSharding(MESH, P()), print),
                "data_callback returned None. Is a `return` missing?"),
    "spec-for-mesh": (lambda: multihost_utils.host_local_array_to_global_array(X, P(), MESH),
                      "global_mesh must be a Mesh, got P() ('PartitionSpec' object has no "
                      "attribute 'local_mesh')"),
    "apart": (lambda: jax.grad(lambda w: (apart() @ w).sum())(put_alone()),
              "Got an array with shape float32[8,4] and with device ids [0, 1, 2, 3, 4, 5, 6, 7]",
              lambda: jax.grad(lambda w: (apart() @ w).sum())(jax.device_put(
                  put_alone(), NamedSharding(MESH, P())))),
    "padding": (typed(lambda x: jnp.pad(x, 1)), "Call jax.reshard on it before, with P(...).\nMore",
                typed(lambda x: jnp.pad(jax.reshard(x, P()), 1))),
    "perm": (lambda: smap(lambda x: lax.ppermute(x, "x", [(0, lax.axis_index("x"))]))(V),
             "must be known while it is traced. Compute it of numbers that Python has.",
             lambda: smap(lambda x: lax.ppermute(x, "x", [(0, lax.axis_size("x") - 1)]))(V)),
    "memory-kind": (lambda: jax.device_put(X, "pinned_host"), "mean jax.memory.Space.Host?",
                    lambda: jax.device_put(X, jax.memory.Space.Host)),
    "layout": (lambda: jax.device_put(X, Layout((1, 0))), "jax.experimental.layout.Format(layout",
               lambda: jax.device_put(X, Format(Layout((1, 0)), NamedSharding(MESH, P())))),
    "of-device": (lambda: jax.devices()[0].foo, "'Device' object has no attribute 'foo'"),
    "set-sharding": (lambda: setattr(jnp.ones(3), "sharding", 1), "jax.device_put(x, sharding)."),
    "partition": (lambda: partitioned(lambda mesh, args, result: (mesh, abs)),
                  "INTERNAL: custom_partitioner: ValueError: custom_partitioning: <lambda> must "
                  "return (mesh, function, result_shardings, arg_shardings), got (",
                  lambda: partitioned(lambda mesh, args, result: (
                      mesh, abs, result.sharding, (args[0].sharding,)))),
    "smap-name": (lambda: along_x(axis_name="y"),
                  "smap: axis_name must be an axis of the mesh, one of ('x',), got 'y'."),
    "smap-alone": (lambda: jax.smap(abs, in_axes=0, out_axes=0, axis_name="x")(V),
                   "`jax.set_mesh(mesh)` to enter into a mesh context.", along_x),
    "smap-tree": (lambda: along_x(in_axes=(0, 0)), "smap in_axes specification must be a tree"),
    "smap-axis": (lambda: along_x(in_axes=1), "given an in_axes entry which is too long"),
    "smap-last": (lambda: along_x(in_axes=1), "Its last axis is 0."),
    "smap-same": (lambda: along_x(out_axes=None),
                  "or say an axis in out_axes, for the parts of all devices side by side."),
    "smap-number": (lambda: along_x(lambda x: lax.psum(x.sum(), "x")), "out_axes entry of None.",
                    lambda: along_x(lambda x: lax.psum(x.sum(), "x"), out_axes=None)),
    "numbers": (lambda: smap(lambda x: x)([1, 2, 3]), "give jnp.array of it."),
    "rank": (lambda: jax.device_put(V, NamedSharding(GRID, P("data", "model"))),
             "Its spec must have no more entries than that.",
             lambda: jax.device_put(V, NamedSharding(GRID, P("data")))),
    "compiled": (lambda: for_mesh()(jax.device_put(V, jax.devices()[1])), "by jax.device_put.",
                 lambda: for_mesh()(jax.device_put(V, NamedSharding(MESH, P("x"))))),
    "checkpoints": (lambda: serialization.foo, "serialization' has no attribute 'foo'"),
    "lowered": (lambda: jax.jit(abs).compile(), "Use f.lower(*args).compile()."),
    "options-apart": (lambda: jax.jit(jnp.add, in_shardings=(HALVES[0], HALVES[1]))(V, V),
                      "Give in_shardings and out_shardings over the same devices."),
    "result-apart": (lambda: jax.jit(abs, in_shardings=HALVES[0], out_shardings=HALVES[1])(V),
                     "Give in_shardings and out_shardings over the same devices."),
    "given-apart": (lambda: jax.jit(abs, out_shardings=HALVES[1])(jax.device_put(V, HALVES[0])),
                    "Move one of them with device_put.",
                    lambda: jax.jit(abs, out_shardings=HALVES[1])(jax.device_put(V, HALVES[1]))),
    "memory": (lambda: jax.jit(abs).memory("1GiB"), "Use f.trace(*args).memory(budget)."),
    "flags": (lambda: jax.config("jax_enable_x64", True), "Use jax.config.update(name, value)."),
    "a-flag": (lambda: jax.config.enable_x46, "Did you mean 'jax_enable_x64'?"),
    "context": (lambda: entered(jax.enable_x64), "It is called, as in `with context(True):`."),
    "named-sizes": (lambda: jax.ShapeDtypeStruct(("n", 3), "f4"), "jax.export.symbolic_shape('n')"),
    "asked": (lambda: jax.jit(lambda x: x.sharding)(X), "inspect_array_sharding(x, callback=print)",
              lambda: jax.jit(lambda x: jax.debug.inspect_array_sharding(x, callback=print))(X)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_serves_is_said(name):
    wrong, words, *cured = CASES[name]
    with pytest.raises(Exception) as caught:
        wrong()
    advice.complete(caught.value)  # as of what Python raises as it is shown
    assert words in str(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)[1:]
    assert not [f for f in frames if is_internal(f.filename)]
    for serves in cured:
        serves()


def test_an_abstract_mesh_in_a_jitted_function():
    @jax.jit
    def f(x):
        with jax.sharding.use_abstract_mesh(GRID.abstract_mesh):
            return x * 2

    np.testing.assert_array_equal(f(X), 2 * X)
