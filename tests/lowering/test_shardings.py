"""Shardings as text, without devices."""

import numpy as np

from lowering.program import lower
from lowering.shardings import Meshes, Partitioning, batch_rule, sharding_text
from pyjx.core.avals import ShapedArray
from pyjx.core.meshes import AbstractMesh, AxisType
from pyjx.core.places import Space
from pyjx.core.specs import PartitionSpec as P
from pyjx.core.trace import trace_to_jaxpr
from pyjx.runtime.device_put import device_put
from pyjx.runtime.sharding import NamedSharding

F32 = np.float32
MESH = AbstractMesh((4, 2), ("x", "y"))
AUTO = AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)


def test_specs():
    meshes = Meshes()

    def text(*entries, ndim=2, mesh=MESH, **more):
        return sharding_text(meshes, NamedSharding(mesh, P(*entries, **more)), ndim)

    assert text("x") == '<@mesh, [{"x"}, {}]>'
    assert text(("y", "x"), P.UNCONSTRAINED, mesh=AUTO) == '<@mesh, [{"y", "x"}, {?}]>'
    assert text(None, "y", unreduced={"x"}) == '<@mesh, [{}, {"y"}], unreduced={"x"}>'
    assert text(ndim=0) == "<@mesh, []>"
    other = NamedSharding(AbstractMesh((8,), ("z",)), P("z"))
    assert sharding_text(meshes, other, 1) == '<@mesh_0, [{"z"}]>'
    assert meshes.text() == ('  sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
                             '  sdy.mesh @mesh_0 = <["z"=8]>\n')


def test_arguments_results_and_donations():
    rows, columns = NamedSharding(MESH, P("x")), NamedSharding(MESH, P(None, "y"))
    closed = trace_to_jaxpr(lambda a, b, c: [a * 2, b * 3],
                            [ShapedArray((8, 8), F32), ShapedArray((4, 8), F32),
                             ShapedArray((2,), F32)])
    program = lower(closed, "f", donated=[True, True, False], keep_unused=False,
                    partitioning=Partitioning(
                        8, (rows, rows, None), (rows, columns), (),
                        ((None, "pinned_host", None), (None, None)),
                        ((None, None, None), ("{0,1}", None))))
    lines = program.text.splitlines()
    assert "mhlo.num_partitions = 8" in lines[0]
    assert lines[2].strip() == (
        'func.func public @main(%arg0: tensor<8x8xf32> {jax.buffer_donor = true, sdy.sharding '
        '= #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4x8xf32> {jax.buffer_donor = true, '
        'sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>, mhlo.memory_kind = "pinned_host"}) -> '
        '(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>, mhlo.layout_mode = '
        '"{0,1}"}, tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {')


def test_memory_is_shared_where_both_lie_alike():
    rows, columns = NamedSharding(MESH, P("x")), NamedSharding(MESH, P(None, "y"))
    closed = trace_to_jaxpr(lambda a: [a * 2], [ShapedArray((8, 8), F32)])
    for ins, outs, attribute in (((rows,), (rows,), "tf.aliasing_output = 0"),
                                 ((rows,), (columns,), "jax.buffer_donor = true"),
                                 ((None,), (None,), "jax.buffer_donor = true")):
        text = lower(closed, "f", donated=[True], partitioning=Partitioning(8, ins, outs)).text
        assert attribute in text


def test_memories_on_accelerators():
    closed = trace_to_jaxpr(lambda a: [device_put(a, Space.Host) * 2], [ShapedArray((8,), F32)])
    assert "annotate_device_placement" in lower(closed, "f", platform="tpu").text
    assert "annotate_device_placement" not in lower(closed, "f", platform="cpu").text


def test_rules_of_batches():
    matrix, vector = ShapedArray((8, 3, 4, 4), F32), ShapedArray((8, 3, 4), F32)
    assert batch_rule([matrix], [matrix, vector], 2) == (
        "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k, l])->([i, j, m, n], [i, j, o]) "
        "{i=8, j=3, k=4, l=4, m=4, n=4, o=4}, custom>")
