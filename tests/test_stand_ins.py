"""Modules of JAX that are not there yet can be imported, and refuse when they are called."""

import enum
import functools
import importlib
import importlib.util
import inspect
import pickle
import subprocess
import sys
import types
import typing
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

import pyjx as jax
from pyjx.experimental import jax2tf, pallas
from pyjx.experimental.mosaic import gpu as mgpu
from pyjx.experimental.pallas import fuser, mosaic_gpu, tpu, tpu_sc, triton
from pyjx.experimental.pallas.ops.tpu import splash_attention
from pyjx.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask
from pyjx.not_yet import TABLES, stand_ins

ENTRIES = {name: stand_ins.modules(table)[name]
           for table in {*TABLES.values()} for name in stand_ins.modules(table)}


def refused(name):
    return pytest.raises(NotImplementedError, match=rf"^pyjx\.\S*{name} is not there yet\. Mean")


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_modules_have_the_names_of_their_table(name):
    module = importlib.import_module(name)
    assert {*ENTRIES[name]} <= {*dir(module)}
    for public, entry in ENTRIES[name].items():
        value = getattr(module, public)
        if entry.kind not in ("value", "from", "primitive", "jaxlib"):
            assert (value.__module__, value.__qualname__) == (name, public)
            assert pickle.loads(pickle.dumps(value)) is value
    assert not hasattr(module, "no_such_name")


def test_parents_of_modules_are_there():
    for name in ENTRIES:
        parent = importlib.import_module(name.rpartition(".")[0])
        importlib.import_module(name)  # a folder of JAX's without a module of its own names none
        found = getattr(parent, name.rpartition(".")[2], None)
        assert isinstance(found, types.ModuleType) or parent.__name__ in ENTRIES


FUNCTIONS = [(name, public, entry) for name, entries in ENTRIES.items()
             for public, entry in entries.items() if entry.kind in ("function", "class")]


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_what_is_called_refuses(name):
    for module, public, entry in FUNCTIONS:
        if module == name and "builtins" not in entry.bases:
            called = getattr(importlib.import_module(name), public)
            parameters = inspect.signature(called).parameters.values()
            args = [0 for p in parameters if p.default is p.empty and p.kind in (
                p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            named = {p.name: 0 for p in parameters
                     if p.default is p.empty and p.kind is p.KEYWORD_ONLY}
            with pytest.raises(NotImplementedError, match=rf"\.{public} is not there yet\."):
                called(*args, **named)


def test_signatures_and_wrong_arguments():
    assert str(inspect.signature(tpu.matmul_pop)) == "(acc)"
    assert [*inspect.signature(tpu.PrefetchScalarGridSpec).parameters] == [
        "num_scalar_prefetch", "grid", "in_specs", "out_specs", "scratch_shapes"]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument"):
        tpu.emit_pipeline_with_allocations(1)


def test_what_makes_functions_refuses_when_these_are_called():
    @mosaic_gpu.kernel(out_type=())
    def kernel(ref):
        "Adds."

    @functools.partial(fuser.fusible, output_fusion_prefix=None)
    def fusible(x):
        return x

    assert (kernel.__name__, kernel.__doc__) == ("kernel", "Adds.")
    with refused("kernel"):
        kernel(1)
    with refused("fusible"):
        fusible(1)
    with refused("convert"):
        jax2tf.convert(jax.numpy.sin)(1.0)


def test_classes_are_derived_from_and_annotate():
    class Striped(splash_attention_mask.Mask):
        def __init__(self, step):
            self.step = step

    assert Striped(2).step == 2
    assert isinstance(Striped(1), splash_attention.Mask) and not isinstance(1, pallas.BlockSpec)
    assert issubclass(mosaic_gpu.BlockSpec, pallas.BlockSpec)
    assert issubclass(tpu_sc.SparseCorePushStreamWarning, UserWarning)

    @dataclass
    class Config:
        spec: pallas.BlockSpec | None
        masks: list[splash_attention.Mask]

    assert typing.get_args(fuser.Fusion[[int], float]) == ([int], float)

    def f(x: tpu.MemorySpace | mgpu.FragmentedArray) -> triton.CompilerParams | None:
        return x

    assert typing.get_type_hints(Config)["spec"] == pallas.BlockSpec | None
    assert typing.get_type_hints(f)["return"] == triton.CompilerParams | None


def test_data_is_made_and_compared():
    spec = pallas.BlockSpec((8, 128), memory_space=tpu.VMEM)
    assert spec == pallas.BlockSpec(block_shape=(8, 128), memory_space=tpu.VMEM)
    assert spec != replace(spec, block_shape=(8, 8))
    spec.index_map = max
    assert spec.index_map is max and "block_shape=(8, 128)" in repr(spec)
    with pytest.raises(TypeError, match="unhashable"):
        hash(spec)
    params = tpu.CompilerParams(dimension_semantics=("parallel",))
    assert {params: 1}[tpu.CompilerParams(("parallel",))] == 1 and params.vmem_limit_bytes is None
    with pytest.raises(FrozenInstanceError):
        params.flags = {}
    grid = tpu.PrefetchScalarGridSpec(1, (2,))
    assert (grid.num_scalar_prefetch, grid.grid) == (1, (2,)) and isinstance(grid, pallas.GridSpec)
    assert mosaic_gpu.RefUnion(1, 2).refs == (1, 2)
    assert splash_attention.SegmentIds(q=1, kv=2) == (1, 2)
    assert mgpu.WGMMA_LAYOUT == replace(mgpu.WGMMA_LAYOUT) != mgpu.TCGEN05_LAYOUT


def test_constants_and_enumerations():
    assert tpu.VMEM is tpu.MemorySpace.VMEM is tpu.MemorySpace("vmem")
    assert isinstance(tpu.PARALLEL, enum.Enum) and tpu.PARALLEL != tpu.ARBITRARY
    assert mgpu.OOBFillMode.ZEROS == 2
    assert pallas.HOST is jax.memory.Space.Host
    assert pallas.pallas_call_p.name == "pallas_call"
    assert splash_attention.splash_attention_kernel.NUM_LANES == 128


def test_what_members_of_spaces_are_called_with_is_kept():
    assert tpu.VMEM((8, 128), "float32") == tpu.VMEM((8, 128), "float32") != tpu.SMEM((1,), "int32")
    layout = mosaic_gpu.Layout.TCGEN05.reduce(0)
    assert {layout: 1}[mosaic_gpu.Layout.TCGEN05.reduce(0)] == 1 and layout.reduce(1) != layout


def test_what_is_there_is_the_same_object():
    from pyjx.experimental.mosaic.dialects import tpu as dialect
    assert dialect.__name__ == "jaxlib.mosaic.python.tpu" and mgpu.dialect.__name__[:6] == "jaxlib"
    assert pallas.ds is pallas.dslice is jax.ds
    assert mosaic_gpu.CopyPartition is mgpu.CopyPartition
    assert splash_attention_mask.CausalMask is splash_attention.CausalMask


def test_a_function_stays_where_a_module_has_its_name():
    from pyjx.experimental.pallas.ops.tpu import megablox
    assert importlib.import_module(f"{megablox.__name__}.gmm").tgmm
    assert isinstance(megablox.gmm, types.FunctionType)


def test_questions_about_the_device():
    assert not tpu.is_tpu_device()
    if jax.default_backend() == "cpu":
        assert not triton.is_gpu_device()
        for ask, kind in ((tpu.get_tpu_info, "TPU"), (triton.get_gpu_info, "GPU"),
                          (tpu_sc.get_sparse_core_info, "TPU")):
            with pytest.raises(ValueError, match=f"^Unsupported {kind} device kind: "):
                ask()


@pytest.mark.parametrize("x", [0, 1, 2, 7, 128, 1000])
def test_arithmetic_of_sizes(x):
    assert pallas.cdiv(x, 8) == len(range(0, x, 8))
    assert pallas.align_to(x, 8) % 8 == 0 <= pallas.align_to(x, 8) - x < 8
    power = pallas.next_power_of_2(x)
    assert power >= x and power & (power - 1) == 0 and (power < 2 * x or power == 1)
    with pytest.raises(ValueError, match="requires a non-negative integer"):
        pallas.next_power_of_2(-1)
    assert pallas.strides_from_shape((x, 3, 4)) == (12, 4, 1)


def test_who_asks_whether_there_is_such_a_module_hears_that_there_is():
    assert importlib.util.find_spec("pyjx.experimental.pallas.tpu")
    assert importlib.util.find_spec("pyjx.experimental.pallas.no_such") is None
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'pyjx\.\S*pallas\.no_such'$"):
        importlib.import_module("pyjx.experimental.pallas.no_such")
    with pytest.raises(ImportError, match=r"^cannot import name 'no_such'"):
        from pyjx.experimental.pallas.tpu import no_such  # noqa: F401


def test_tables_are_read_when_one_is_used():
    script = "import sys, pyjx.experimental\nassert 'pyjx.not_yet.stand_ins' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
